//! Where workers that have seen the last step wait for the end of training.
//!
//! A queue of its own: who waited at the queue of tokens would take those that the chief, or a slower worker, needs for
//! its last step. The chief closes it at the end; one that comes back after a loss puts a word into it for each worker.

use tensorfleet_client::{Code, DType, Operation, Output, Session};
use tensorfleet_status::Result;

use super::{dequeue, shared_queue};

/// The waiting worker's side.
pub(super) struct Waiting {
    next_word: Output,
}

/// What woke a waiting worker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Training has ended.
    End,
    /// A chief came back: training may go on.
    Chief,
}

impl Waiting {
    /// Beside the queue of tokens.
    pub(super) fn new(tokens: &Output) -> Waiting {
        let next_word = dequeue(&queue(tokens), DType::Bool);
        Waiting { next_word }
    }

    /// Waits for the chief.
    pub(super) fn wait(&self, session: &Session) -> Result<News> {
        match session.run(&self.next_word) {
            Ok(_) => Ok(News::Chief),
            Err(status) if status.code() == Code::OutOfRange => Ok(News::End),
            Err(status) => Err(status),
        }
    }
}

/// The chief's side.
pub(super) struct Ending {
    is_closed: Output,
    close: Operation,
    /// After it, the queue's name stands for a new one.
    forget: Operation,
    /// A word for each worker.
    words: Operation,
}

impl Ending {
    /// Beside the queue of tokens; for so many workers.
    pub(super) fn new(tokens: &Output, workers: u32) -> Ending {
        let queue = queue(tokens);
        let g = queue.graph();
        let _near = g.colocate_with(&queue.op());
        let count = g.constant([i32::try_from(workers).unwrap_or(i32::MAX)]);
        let words = g.op("Fill").input(count).input(g.constant(true)).output();
        let words = g.op("QueueEnqueueManyV2").input(&queue).list(&[words]);
        Ending {
            is_closed: g.op("QueueIsClosedV2").input(&queue).output(),
            close: g.op("QueueCloseV2").input(&queue).build(),
            forget: g.op("DestroyResourceOp").input(&queue).build(),
            words: words.build(),
        }
    }

    /// Wakes who waits for a chief that was lost.
    pub(super) fn tell(&self, session: &Session) -> Result<()> {
        session.run(&self.words)
    }

    /// Lets all workers leave.
    pub(super) fn close(&self, session: &Session) -> Result<()> {
        if session.run(&self.is_closed)?.to_scalar::<bool>()? {
            return Ok(());
        }
        session.run(&self.close)
    }

    /// Readies the next training: whoever still waits for the end of the last one leaves.
    pub(super) fn reset(&self, session: &Session) -> Result<()> {
        self.close(session)?;
        session.run(&self.forget)
    }
}

fn queue(tokens: &Output) -> Output {
    let g = tokens.graph();
    let _near = g.colocate_with(&tokens.op());
    shared_queue(g, "sync_end_q", DType::Bool)
}
