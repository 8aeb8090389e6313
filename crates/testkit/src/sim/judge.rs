//! Which errors a client may see, and whom they must blame.

use std::time::Duration;

use tensorfleet_status::{Code, Status};

use super::world::World;

/// What a client lets a call take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// It waits.
    None,
    /// DEADLINE_EXCEEDED, by gRPC.
    Deadline(Duration),
    /// It goes away without a word.
    GivesUp(Duration),
}

/// What else may end a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Excuses {
    /// The session is being closed meanwhile.
    pub(super) closing: bool,
    /// The step has a timeout or its call a deadline.
    pub(super) deadline: bool,
    /// The step reads a variable that may not be there after a restart.
    pub(super) uninitialized: bool,
}

/// ABORTED by a master itself, about its own tables.
const OF_THE_MASTER: &[&str] = &["is not found.", "was received twice", "Current version is"];

impl World {
    /// Objects to an error that this world does not explain.
    pub(super) fn judge(&self, what: &str, excuses: Excuses, status: &Status) {
        let text = status.message();
        let explained = match status.code() {
            Code::Aborted if excuses.closing && text.contains("is not found.") => true,
            Code::Aborted | Code::Unavailable if !self.setup.faults.can_fail() => false,
            Code::Aborted if OF_THE_MASTER.iter().any(|known| text.contains(known)) => true,
            Code::Aborted | Code::Unavailable => self.blames_rightly(text),
            Code::Cancelled => excuses.closing,
            Code::DeadlineExceeded => excuses.deadline,
            Code::FailedPrecondition if text.contains("Session is closed.") => excuses.closing,
            Code::FailedPrecondition => {
                excuses.uninitialized && text.contains("uninitialized") && text.contains("late")
            }
            _ => false,
        };
        if !explained {
            self.violated(format!("{what} failed without a reason: {status}"));
        }
    }

    /// Whether an error names a task that something befell.
    fn blames_rightly(&self, text: &str) -> bool {
        let mut tasks = self.setup.tasks.iter().enumerate();
        tasks.any(|(index, task)| text.contains(&task.to_string()) && self.is_troubled(index))
    }
}
