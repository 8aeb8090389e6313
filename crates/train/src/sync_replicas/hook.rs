//! What a monitored session does so that synchronous replicas run.

use std::time::Instant;

use tensorfleet_client::{Graph, Operation, Output, Session};
use tensorfleet_status::{Result, aborted, failed_precondition};
use tensorfleet_tensor::TString;

use super::ending::{EndTime, Ending, News, Waiting};
use super::leftovers::{Leftovers, TokenQueue};
use super::watch::Watch;
use super::{SyncReplicas, enqueue_tokens};
use crate::coordinator::Coordinator;
use crate::hooks::SessionRunHook;
use crate::queue_runner::QueueRunner;

/// Readies this worker's step whenever a session begins; on the chief also the accumulators, the first tokens
/// and the thread that updates. A training can follow another on the same parameter servers, and a chief that was
/// lost and comes back goes on with the workers that wait for it. Made by [`SyncReplicas::make_session_run_hook`].
pub struct SyncReplicasHook {
    local_init: Operation,
    ready_for_local_init: Output,
    watch: Watch,
    /// When the program asked for a session.
    began: Instant,
    role: Role,
}

enum Role {
    Chief(Box<Chief>),
    Other(Other),
}

struct Other {
    local_step: Output,
    tokens: TokenQueue,
    last_end: EndTime,
    waiting: Waiting,
}

struct Chief {
    leftovers: Leftovers,
    ending: Ending,
    init_tokens: Operation,
    /// As many as a lost chief may have owed.
    owed_tokens: Operation,
    runner: QueueRunner,
    /// Of the session that is open.
    coordinator: Option<Coordinator>,
}

impl SyncReplicas {
    /// The hook that every worker's session needs. `num_tokens` as for
    /// [`init_tokens_op`](Self::init_tokens_op). To be called after `minimize`.
    pub fn make_session_run_hook(
        &self,
        is_chief: bool,
        num_tokens: Option<u32>,
    ) -> Result<SyncReplicasHook> {
        let built = self.built()?;
        let ready_for_local_init = self.ready_for_local_init_op()?;
        let g = built.global_step.graph();
        let _root = g.name_scope("");
        let queue = &built.token_queue;
        let (local_init, role) = if is_chief {
            let chief = Chief {
                leftovers: Leftovers::new(queue, &built.accumulators),
                ending: Ending::new(queue, self.tokens_per_step()),
                init_tokens: self.init_tokens_op(num_tokens)?,
                owed_tokens: enqueue_tokens(queue, self.tokens_per_step(), &built.global_step),
                runner: self.chief_queue_runner()?,
                coordinator: None,
            };
            (self.chief_init_op()?, Role::Chief(Box::new(chief)))
        } else {
            let other = Other {
                local_step: built.local_step.read(),
                tokens: TokenQueue::new(queue),
                last_end: EndTime::new(queue),
                waiting: Waiting::new(queue),
            };
            (self.local_step_init_op()?, Role::Other(other))
        };
        let hook = SyncReplicasHook {
            local_init,
            ready_for_local_init,
            watch: Watch::new(built, self.replicas_to_aggregate),
            began: Instant::now(),
            role,
        };
        g.check()?;
        Ok(hook)
    }
}

impl SessionRunHook for SyncReplicasHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.began = Instant::now();
        if self.local_init.graph().is(graph) {
            return Ok(());
        }
        Err(failed_precondition!(
            "the hook of synchronous replicas is of another graph than the session"
        ))
    }

    fn after_create_session(&mut self, session: &Session, coordinator: &Coordinator) -> Result<()> {
        let missing = session.run(&self.ready_for_local_init)?;
        let missing = missing.slice::<TString>()?;
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|n| String::from_utf8_lossy(n)).collect();
            return Err(failed_precondition!(
                "synchronous replicas cannot start: variables not initialized: {}",
                names.join(", ")
            ));
        }
        match &mut self.role {
            Role::Chief(chief) => {
                let interrupted = chief.leftovers.clear(session, &chief.ending)?;
                session.run(&self.local_init)?;
                if interrupted {
                    session.run(&chief.owed_tokens)?;
                    chief.ending.tell(session)?;
                } else {
                    session.run(&chief.init_tokens)?;
                }
                chief.runner.start(session, coordinator)?;
                chief.coordinator = Some(coordinator.clone());
            }
            Role::Other(other) => {
                let Other {
                    tokens, last_end, ..
                } = other;
                tokens.wait(session, coordinator, last_end, self.began)?;
                session.run(&self.local_init)?;
            }
        }
        self.watch.start(session, coordinator)
    }

    /// A worker does not leave before its chief, which may be lost before it has written the last checkpoint
    /// and need all workers again.
    fn stopping(&mut self, session: &Session) -> Result<()> {
        let Role::Other(other) = &self.role else {
            return Ok(());
        };
        // What this worker has seen, not where a chief that came back meanwhile may stand.
        let seen = session.run(&other.local_step)?.to_scalar::<i64>()?;
        let last = self.watch.step(session)?.max(seen);
        while other.waiting.wait(session)? == News::Chief {
            let now = self.watch.step(session)?;
            if now < last {
                return Err(aborted!(
                    "the chief was lost at step {last} and came back at step {now}: training goes on from there"
                ));
            }
        }
        Ok(())
    }

    /// Closes the queue of tokens: workers that wait for one get OUT_OF_RANGE, which ends training well. Those that
    /// wait for the end may leave.
    fn end(&mut self, session: &Session) -> Result<()> {
        let Role::Chief(chief) = &self.role else {
            return Ok(());
        };
        if let Some(coordinator) = &chief.coordinator {
            coordinator.request_stop();
        }
        chief.ending.note(session)?;
        session.run(&chief.runner.cancel)?;
        chief.ending.close(session)
    }
}
