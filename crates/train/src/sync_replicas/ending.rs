//! Where workers that have seen the last step wait for the end of training.
//!
//! A queue of its own: who waited at the queue of tokens would take those that the chief, or a slower worker, needs for
//! its last step. The chief closes it at the end; one that comes back after a loss puts a word into it for each worker.
//!
//! When the end was is noted beside it, so that a worker can tell whether a training that has ended was its own.

use std::time::Duration;

use tensorfleet_client::{Code, DType, Operation, Output, PartialShape, Session};
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
    /// Notes the time.
    time: Operation,
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
            time: EndTime::new(tokens).note,
        }
    }

    /// Notes that training ends now: before anybody can see that it has.
    pub(super) fn note(&self, session: &Session) -> Result<()> {
        session.run(&self.time)
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

/// When the last training ended, by the clock of the server that has the queues.
pub(super) struct EndTime {
    note: Operation,
    seconds_ago: Output,
}

impl EndTime {
    /// Beside the queue of tokens.
    pub(super) fn new(tokens: &Output) -> EndTime {
        let g = tokens.graph();
        let _near = g.colocate_with(&tokens.op());
        let time = g.op("VarHandleOp").attr("shared_name", "sync_end_time");
        let time = time
            .attr("dtype", DType::F64)
            .attr("shape", PartialShape::scalar())
            .output();
        let now = g.op("Timestamp").output();
        let noted = g.op("ReadVariableOp").attr("dtype", DType::F64);
        let noted = noted.input(&time).output();
        let note = g.op("AssignVariableOp").attr("dtype", DType::F64);
        EndTime {
            note: note.input(&time).input(&now).build(),
            seconds_ago: now - noted,
        }
    }

    /// How long ago it was; nothing if none has ended here.
    pub(super) fn ago(&self, session: &Session) -> Result<Option<Duration>> {
        match session.run(&self.seconds_ago) {
            Ok(seconds) => {
                let seconds = seconds.to_scalar::<f64>()?;
                Ok(Some(
                    Duration::try_from_secs_f64(seconds).unwrap_or_default(),
                ))
            }
            Err(status) if status.code() == Code::FailedPrecondition => Ok(None),
            Err(status) => Err(status),
        }
    }
}

fn queue(tokens: &Output) -> Output {
    let g = tokens.graph();
    let _near = g.colocate_with(&tokens.op());
    shared_queue(g, "sync_end_q", DType::Bool)
}
