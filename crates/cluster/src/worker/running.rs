//! [`RunningStep`]: a step in progress, which says what it waits for if it takes long.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tensorfleet_kernel::CancelToken;
use tensorfleet_status::{Result, aborted, internal};
use tokio::sync::oneshot;

use super::exchange::Awaited;
use super::graph::RegisteredGraph;
use super::step::{StepInput, StepStats, Together, lock};

/// A step that takes longer is reported in the log, then rarer and rarer.
pub(crate) const REPORT_AFTER: Duration = Duration::from_secs(30);
/// The longest time between two reports of a step.
const REPORT_EVERY: Duration = Duration::from_secs(600);

/// What is listed at most: a step may wait for thousands of things.
const LISTED: usize = 10;

/// How long to wait until the next report of a step.
pub(crate) fn later(patience: Duration) -> Duration {
    (patience * 2).min(REPORT_EVERY)
}

/// Some of many, and how many more there are.
pub(crate) fn listed(mut things: Vec<String>) -> String {
    let more = things.len().saturating_sub(LISTED);
    things.truncate(LISTED);
    let mut text = things.join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// A step in progress. Dropping it cancels the step.
pub(crate) struct RunningStep {
    graph: Arc<RegisteredGraph>,
    step_id: i64,
    began: Duration,
    together: Arc<Mutex<Together>>,
    awaited: Option<Arc<Awaited>>,
    told: oneshot::Receiver<Result<StepStats>>,
    /// `None` once it ended.
    cancel: Option<CancelToken>,
}

impl RegisteredGraph {
    /// Starts a step.
    pub(crate) fn begin(self: Arc<Self>, input: StepInput) -> RunningStep {
        let (tell, told) = oneshot::channel();
        let done = Box::new(move |result| {
            // Whoever waited may be gone.
            let _ = tell.send(result);
        });
        let (step_id, began) = (input.step_id, self.env.now());
        let (awaited, cancel) = (input.awaited.clone(), input.cancel.clone());
        RunningStep {
            together: self.launch(input, done),
            graph: self,
            step_id,
            began,
            awaited,
            told,
            cancel: Some(cancel),
        }
    }
}

impl RunningStep {
    /// Waits for the end of the step; meanwhile the log says what it waits for.
    pub(crate) async fn ended(&mut self) -> Result<StepStats> {
        let mut patience = REPORT_AFTER;
        let result = loop {
            tokio::select! {
                biased;
                told = &mut self.told => break told,
                () = tokio::time::sleep(patience) => {}
            }
            patience = later(patience);
            tracing::info!("{} still runs: {}", self.name(), self.waits_for());
        };
        self.cancel = None;
        result.unwrap_or_else(|_| Err(internal!("the step ended without an answer")))
    }

    /// What it waits for on this task, in words.
    pub(crate) fn waits_for(&self) -> String {
        let mut nodes = Vec::new();
        for view in &lock(&self.together).views {
            nodes.extend(view.waits_for());
        }
        if nodes.is_empty() {
            return "it computes".to_owned();
        }
        let mut text = format!("it waits for nodes {}", listed(nodes));
        let tensors = self.awaited.as_ref().map(|awaited| awaited.listed());
        if let Some(tensors) = tensors.filter(|tensors| !tensors.is_empty()) {
            text.push_str(&format!(", for tensors {}", listed(tensors)));
        }
        text
    }

    /// The step and how long it has run.
    fn name(&self) -> String {
        let ran = self.graph.env.now().saturating_sub(self.began);
        let (task, step) = (&self.graph.task, self.step_id);
        format!("step {step} on {task}, begun {} s ago,", ran.as_secs())
    }
}

impl Drop for RunningStep {
    fn drop(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            if !cancel.is_cancelled() {
                tracing::info!("{} is given up: {}", self.name(), self.waits_for());
            }
            // Only others who receive from the step see this, if their own master does not know better.
            cancel.cancel(aborted!("Step was cancelled: nobody waits for it any more").derived());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_some_and_counts_the_rest() {
        let things = |count: usize| (0..count).map(|i| i.to_string()).collect();
        assert_eq!(listed(things(2)), "0, 1");
        assert_eq!(
            listed(things(12)),
            "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
        );
    }

    #[test]
    fn reports_get_rarer() {
        assert_eq!(later(REPORT_AFTER), Duration::from_secs(60));
        assert_eq!(later(Duration::from_secs(500)), REPORT_EVERY);
    }
}
