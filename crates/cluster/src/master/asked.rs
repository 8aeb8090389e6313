//! [`Asked`]: other tasks that were asked the same, and what they answer. Whoever is awaited is named: in the log while
//! it lasts, in the error when time is up.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tensorfleet_status::{Code, Result, Status, deadline_exceeded, internal};
use tokio::task::JoinSet;

use super::deadline::Deadline;
use crate::api::WorkerApi;
use crate::task::TaskName;

/// How often the log says who is awaited.
const REMIND_EVERY: Duration = Duration::from_secs(10);

/// Calls to other tasks on behalf of one of the master's calls.
pub(super) struct Asked<A> {
    /// What the tasks are to do, as in "did not …".
    what: &'static str,
    calls: JoinSet<(TaskName, Result<A>)>,
    missing: Missing,
}

/// The tasks that have not answered yet. Whoever gives up waiting leaves a word in the log.
struct Missing {
    /// The master's call.
    call: &'static str,
    tasks: Vec<(TaskName, Arc<dyn WorkerApi>)>,
}

impl<A: Send + 'static> Asked<A> {
    pub(super) fn new(call: &'static str, what: &'static str) -> Asked<A> {
        Asked {
            what,
            calls: JoinSet::new(),
            missing: Missing {
                call,
                tasks: Vec::new(),
            },
        }
    }

    /// Asks one more task.
    pub(super) fn ask<F>(
        &mut self,
        task: TaskName,
        worker: Arc<dyn WorkerApi>,
        call: impl FnOnce(Arc<dyn WorkerApi>) -> F,
    ) where
        F: Future<Output = Result<A>> + Send + 'static,
    {
        let answer = call(worker.clone());
        self.missing.tasks.push((task.clone(), worker));
        self.calls.spawn(async move { (task, answer.await) });
    }

    /// What the tasks answer; the first error ends it.
    pub(super) async fn answers(mut self, deadline: &Deadline) -> Result<Vec<(TaskName, A)>> {
        let all = self.missing.tasks.len();
        let mut answers = Vec::with_capacity(all);
        let mut remind = tokio::time::interval(REMIND_EVERY);
        remind.tick().await;
        while !self.calls.is_empty() {
            tokio::select! {
                biased;
                Some(joined) = self.calls.join_next() => {
                    let (task, answer) = joined
                        .map_err(|error| internal!("asking another task failed: {error}"))?;
                    self.missing.tasks.retain(|(other, _)| *other != task);
                    match answer {
                        Ok(answer) => answers.push((task, answer)),
                        Err(error) => {
                            self.missing.tasks.clear();
                            return Err(self.refused(&task, error));
                        }
                    }
                }
                () = deadline.passed() => {
                    let reasons = self.missing.reasons();
                    return Err(deadline_exceeded!(
                        "Deadline Exceeded: {} of {all} other tasks did not {}: {}",
                        reasons.len(),
                        self.what,
                        reasons.join(", ")
                    ));
                }
                _ = remind.tick() => for reason in self.missing.reasons() {
                    tracing::info!("{} still waiting for response from worker: {reason}", self.missing.call);
                },
            }
        }
        Ok(answers)
    }

    fn refused(&self, task: &TaskName, error: Status) -> Status {
        let call = self.missing.call;
        tracing::warn!("{call} failed because worker {task} returned error: {error}");
        if error.code() == Code::Unimplemented {
            return error.append(format_args!(
                "\nThe server at the address of {task} is none of TensorFlow's"
            ));
        }
        error
    }
}

impl Missing {
    /// Each task and what is known about it.
    fn reasons(&self) -> Vec<String> {
        let reasons = self.tasks.iter().map(|(task, worker)| {
            let trouble = worker.trouble();
            format!("{task} ({})", trouble.as_deref().unwrap_or("no answer yet"))
        });
        reasons.collect()
    }
}

impl Drop for Missing {
    fn drop(&mut self) {
        if !self.tasks.is_empty() {
            tracing::warn!(
                "{} was given up: no answer from {}",
                self.call,
                self.reasons().join(", ")
            );
        }
    }
}
