//! What a training leaves on parameter servers that live on.
//!
//! | it was… | it left | the next chief |
//! |---|---|---|
//! | ended | a closed queue of tokens and one of the end, gradients that came too late | drops them |
//! | interrupted: its chief was lost | gradients of lost steps, and workers that wait for tokens which the lost chief owed them, their gradients taken | drops the gradients, pays the tokens |
//!
//! Whoever comes to a closed queue before the next chief waits for it, unless that training ended while it was on its way:
//! then it was its own.

use std::time::{Duration, Instant};

use tensorfleet_client::{DType, Operation, Output, Session};
use tensorfleet_status::Result;

use super::accumulator::Accumulator;
use super::ending::{EndTime, Ending};
use super::shared_queue;
use crate::coordinator::Coordinator;

/// How long a worker waits before it looks at the queue again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a worker looks for the chief of the next training.
const PATIENCE: Duration = Duration::from_secs(60);

/// A queue of tokens that may be closed.
pub(super) struct TokenQueue {
    is_closed: Output,
}

impl TokenQueue {
    pub(super) fn new(queue: &Output) -> TokenQueue {
        let node = queue.graph().op("QueueIsClosedV2");
        let node = node.name("sync_token_q_is_closed").input(queue);
        TokenQueue {
            is_closed: node.colocate_with(&queue.op()).output(),
        }
    }

    fn is_closed(&self, session: &Session) -> Result<bool> {
        session.run(&self.is_closed)?.to_scalar::<bool>()
    }

    /// Waits a while for the chief if the queue is closed. Not if it was closed after this worker began: its training
    /// went on without it, and is over.
    pub(super) fn wait(
        &self,
        session: &Session,
        coordinator: &Coordinator,
        last_end: &EndTime,
        began: Instant,
    ) -> Result<()> {
        let here = Instant::now();
        let mut told = false;
        while self.is_closed(session)? && here.elapsed() < PATIENCE {
            // Looked at before the server is asked, whose answer takes a while.
            let since = began.elapsed();
            if last_end.ago(session)?.is_some_and(|ago| ago < since) {
                break;
            }
            if !told {
                tracing::warn!(
                    "the last synchronous training on these parameter servers has ended; waiting up to {PATIENCE:?} for the chief of the next"
                );
                told = true;
            }
            if coordinator.wait_for_stop(PAUSE) {
                break;
            }
        }
        Ok(())
    }
}

/// What the chief makes good.
pub(super) struct Leftovers {
    tokens: TokenQueue,
    /// After it, the name of the queue stands for a new one.
    drop_queue: Operation,
    /// By accumulator: how many gradients it has, and what takes them out.
    gradients: Vec<(Output, Operation)>,
    chiefs: Chiefs,
}

impl Leftovers {
    pub(super) fn new(queue: &Output, accumulators: &[Accumulator]) -> Leftovers {
        let drop_queue = queue.graph().op("DestroyResourceOp").input(queue);
        let gradients = accumulators.iter();
        Leftovers {
            tokens: TokenQueue::new(queue),
            drop_queue: drop_queue.colocate_with(&queue.op()).build(),
            gradients: gradients
                .map(|one| (one.count.clone(), one.take(1).values().op()))
                .collect(),
            chiefs: Chiefs::new(queue),
        }
    }

    /// Clears away what a training left; whether it was interrupted and its chief may owe tokens.
    pub(super) fn clear(&self, session: &Session, ending: &Ending) -> Result<bool> {
        let ended = self.tokens.is_closed(session)?;
        let interrupted = self.chiefs.enter(session)? && !ended;
        if !ended && !interrupted {
            // Whatever gradients are there are of workers that were faster than their first chief.
            return Ok(false);
        }
        for (count, take) in &self.gradients {
            if session.run(count)?.to_scalar::<i32>()? > 0 {
                session.run(take)?;
            }
        }
        if ended {
            ending.reset(session)?;
            session.run(&self.drop_queue)?;
        }
        Ok(interrupted)
    }
}

/// Remembers, where the tokens are and as long as they are, that there was a chief.
struct Chiefs {
    count: Output,
    add: Operation,
}

impl Chiefs {
    fn new(tokens: &Output) -> Chiefs {
        let g = tokens.graph();
        let _near = g.colocate_with(&tokens.op());
        let queue = shared_queue(g, "sync_chief_q", DType::Bool);
        let count = g.op("QueueSizeV2").input(&queue).output();
        let one = g.constant(true);
        let add = g.op("QueueEnqueueV2").input(&queue).list(&[one]).build();
        Chiefs { count, add }
    }

    /// Adds this chief; whether there was one before.
    fn enter(&self, session: &Session) -> Result<bool> {
        let before = session.run(&self.count)?.to_scalar::<i32>()?;
        if before == 0 {
            session.run(&self.add)?;
        }
        Ok(before > 0)
    }
}
