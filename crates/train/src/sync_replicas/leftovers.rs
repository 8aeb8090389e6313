//! What a training that has ended leaves on parameter servers that live on.
//!
//! The chief closes the queue of tokens at its end, and gradients that came too late stay in the accumulators.
//! The chief of the next training finds the queue closed, drops it and takes out the gradients; whoever comes
//! before this chief waits for it.

use std::time::Duration;

use tensorfleet_client::{Operation, Output, Session};
use tensorfleet_status::Result;

use super::accumulator::Accumulator;
use crate::coordinator::Coordinator;

/// How long a worker waits before it looks at the queue again.
const PAUSE: Duration = Duration::from_millis(100);
/// How often a worker looks for the chief of the next training. One that is late for the last training looks in vain.
const LOOKS: u32 = 100;

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

    /// Waits a while for the chief if the queue is closed.
    pub(super) fn wait(&self, session: &Session, coordinator: &Coordinator) -> Result<()> {
        for _ in 0..LOOKS {
            if !self.is_closed(session)? || coordinator.wait_for_stop(PAUSE) {
                break;
            }
        }
        Ok(())
    }
}

/// What the chief clears away.
pub(super) struct Leftovers {
    tokens: TokenQueue,
    /// After it, the name of the queue stands for a new one.
    drop_queue: Operation,
    /// By accumulator: how many gradients it has, and what takes them out.
    gradients: Vec<(Output, Operation)>,
}

impl Leftovers {
    pub(super) fn new(queue: &Output, accumulators: &[Accumulator]) -> Leftovers {
        let drop_queue = queue.graph().op("DestroyResourceOp").input(queue);
        let gradients = accumulators.iter();
        Leftovers {
            tokens: TokenQueue::new(queue),
            drop_queue: drop_queue.colocate_with(&queue.op()).build(),
            gradients: gradients
                .map(|one| (one.count(), one.take(1).values().op()))
                .collect(),
        }
    }

    /// Clears away what a training that has ended left; nothing if one goes on.
    pub(super) fn clear(&self, session: &Session) -> Result<()> {
        if !self.tokens.is_closed(session)? {
            return Ok(());
        }
        for (count, take) in &self.gradients {
            if session.run(count)?.to_scalar::<i32>()? > 0 {
                session.run(take)?;
            }
        }
        session.run(&self.drop_queue)
    }
}
