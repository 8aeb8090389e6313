//! [`Awaited`]: which tasks a step still waits for, for the log and for errors.

use std::time::Duration;

use tensorfleet_status::{Status, deadline_exceeded};

use super::executable::Executable;
use super::session::MasterSession;
use crate::task::TaskName;
use crate::worker::running::{REPORT_AFTER, RunningStep, later, listed};

/// What has not ended of a step.
pub(super) struct Awaited<'a> {
    session: &'a MasterSession,
    step_id: i64,
    /// Other tasks.
    pub(super) tasks: Vec<TaskName>,
    /// The part of the master's own task.
    pub(super) local: bool,
    began: Duration,
    patience: Duration,
    next_report: Duration,
}

impl<'a> Awaited<'a> {
    pub(super) fn new(
        session: &'a MasterSession,
        executable: &Executable,
        step_id: i64,
    ) -> Awaited<'a> {
        let began = session.worker.env().now();
        Awaited {
            session,
            step_id,
            tasks: executable
                .remote
                .iter()
                .map(|part| part.task.clone())
                .collect(),
            local: true,
            began,
            patience: REPORT_AFTER,
            next_report: began + REPORT_AFTER,
        }
    }

    fn now(&self) -> Duration {
        self.session.worker.env().now()
    }

    /// Waits until it is time for a report.
    pub(super) async fn patience(&self) {
        let left = self.next_report.saturating_sub(self.now());
        tokio::time::sleep(left).await;
    }

    /// Tells the log which tasks are awaited. Each of them tells its own log why it takes so long.
    pub(super) fn report(&mut self) {
        self.patience = later(self.patience);
        self.next_report = self.now() + self.patience;
        tracing::info!(
            "step {} of session {}, begun {} s ago, still runs on {}",
            self.step_id,
            self.session.handle(),
            self.now().saturating_sub(self.began).as_secs(),
            listed(self.tasks.iter().map(TaskName::to_string).collect())
        );
    }

    /// The error of a step that did not end in time.
    pub(super) fn deadline_exceeded(&self, local: &RunningStep) -> Status {
        let mut awaited: Vec<String> = self
            .tasks
            .iter()
            .map(|task| format!("{task} has not ended its part"))
            .collect();
        if self.local {
            awaited.push(format!(
                "on {} {}",
                self.session.view.own,
                local.waits_for()
            ));
        }
        deadline_exceeded!(
            "Deadline Exceeded: the step did not end within {:.3} s: {}",
            self.now().saturating_sub(self.began).as_secs_f64(),
            listed(awaited)
        )
    }
}
