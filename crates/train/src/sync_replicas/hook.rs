//! What a monitored session does so that synchronous replicas run.

use tensorfleet_client::{Graph, Operation, Output, Session};
use tensorfleet_status::{Result, failed_precondition};
use tensorfleet_tensor::Bytes;

use super::SyncReplicas;
use super::leftovers::{Leftovers, TokenQueue};
use crate::coordinator::Coordinator;
use crate::hooks::SessionRunHook;
use crate::queue_runner::QueueRunner;

/// Readies this worker's step whenever a session begins; on the chief also the accumulators, the first tokens
/// and the thread that updates. A training can follow another on the same parameter servers. Made by
/// [`SyncReplicas::make_session_run_hook`].
pub struct SyncReplicasHook {
    local_init: Operation,
    ready_for_local_init: Output,
    role: Role,
}

enum Role {
    Chief(Chief),
    Other(TokenQueue),
}

struct Chief {
    leftovers: Leftovers,
    init_tokens: Operation,
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
        if !is_chief {
            return Ok(SyncReplicasHook {
                local_init: self.local_step_init_op()?,
                ready_for_local_init,
                role: Role::Other(TokenQueue::new(&built.token_queue)),
            });
        }
        let hook = SyncReplicasHook {
            local_init: self.chief_init_op()?,
            ready_for_local_init,
            role: Role::Chief(Chief {
                leftovers: Leftovers::new(&built.token_queue, &built.accumulators),
                init_tokens: self.init_tokens_op(num_tokens)?,
                runner: self.chief_queue_runner()?,
                coordinator: None,
            }),
        };
        g.check()?;
        Ok(hook)
    }
}

impl SessionRunHook for SyncReplicasHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        if self.local_init.graph().is(graph) {
            return Ok(());
        }
        Err(failed_precondition!(
            "the hook of synchronous replicas is of another graph than the session"
        ))
    }

    fn after_create_session(&mut self, session: &Session, coordinator: &Coordinator) -> Result<()> {
        let missing = session.run(&self.ready_for_local_init)?;
        let missing = missing.slice::<Bytes>()?;
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|n| String::from_utf8_lossy(n)).collect();
            return Err(failed_precondition!(
                "synchronous replicas cannot start: variables not initialized: {}",
                names.join(", ")
            ));
        }
        match &mut self.role {
            Role::Chief(chief) => {
                chief.leftovers.clear(session)?;
                session.run(&self.local_init)?;
                session.run(&chief.init_tokens)?;
                chief.runner.start(session, coordinator)?;
                chief.coordinator = Some(coordinator.clone());
                Ok(())
            }
            Role::Other(tokens) => {
                tokens.wait(session, coordinator)?;
                session.run(&self.local_init)
            }
        }
    }

    /// Closes the queue of tokens: workers that wait for one get OUT_OF_RANGE, which ends training well.
    fn end(&mut self, session: &Session) -> Result<()> {
        let Role::Chief(chief) = &self.role else {
            return Ok(());
        };
        if let Some(coordinator) = &chief.coordinator {
            coordinator.request_stop();
        }
        session.run(&chief.runner.cancel)
    }
}
