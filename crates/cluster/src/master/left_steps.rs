//! [`LeftSteps`]: steps whose end another task has still to be told.
//!
//! A step that went well leaves hardly anything behind. Its end is told together with the next step, whose
//! message wakes the task anyway, or soon by itself if none comes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tensorfleet_proto as pb;
use tokio::runtime::Handle;

use super::tell::tell;
use crate::api::WorkerApi;
use crate::task::TaskName;

/// A step's end is told at last so long after it.
const TELL_WITHIN: Duration = Duration::from_millis(10);

/// The steps of one part on another task. Clones are the same.
#[derive(Clone)]
pub(super) struct LeftSteps {
    task: TaskName,
    worker: Arc<dyn WorkerApi>,
    runtime: Handle,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    steps: Vec<i64>,
    /// Whether somebody tells them in time.
    in_time: bool,
}

impl LeftSteps {
    pub(super) fn new(task: TaskName, worker: Arc<dyn WorkerApi>, runtime: Handle) -> LeftSteps {
        LeftSteps {
            task,
            worker,
            runtime,
            state: Arc::default(),
        }
    }

    /// The step may be forgotten, soon.
    pub(super) fn add(&self, step_id: i64) {
        let in_time = {
            let mut state = self.lock();
            state.steps.push(step_id);
            std::mem::replace(&mut state.in_time, true)
        };
        if !in_time {
            let left = self.clone();
            self.runtime.spawn(async move {
                tokio::time::sleep(TELL_WITHIN).await;
                left.lock().in_time = false;
                left.tell();
            });
        }
    }

    /// Tells all that is left to tell; nobody waits for that.
    pub(super) fn tell(&self) {
        let steps = std::mem::take(&mut self.lock().steps);
        for step_id in steps {
            self.tell_now(step_id);
        }
    }

    /// Lets the task forget a step at once.
    pub(super) fn tell_now(&self, step_id: i64) {
        let worker = self.worker.clone();
        let call = async move {
            let request = pb::CleanupGraphRequest { step_id };
            worker.cleanup_graph(request).await
        };
        tell(&self.runtime, self.task.clone(), "clean up a step", call);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
