//! Running a registered graph for one step: all its devices together, to the end, the first error or the cancel.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorfleet_exec::{StepReport, StepView, lend, start};
use tensorfleet_kernel::{CallFrame, CancelToken, Rendezvous, ResourceManager, StepEnv};
use tensorfleet_math::par::Watched;
use tensorfleet_proto::DeviceStepStats;
use tensorfleet_session::RunMetadata;
use tensorfleet_status::{Result, Status};
use tokio::sync::oneshot;

use super::exchange::Awaited;
use super::graph::RegisteredGraph;

/// What a step runs with.
pub(crate) struct StepInput {
    pub(crate) step_id: i64,
    /// The client's feeds and fetches, unless they go through the rendezvous.
    pub(crate) call_frame: Arc<CallFrame>,
    pub(crate) rendezvous: Arc<dyn Rendezvous>,
    /// What it awaits from other tasks, if it may.
    pub(crate) awaited: Option<Arc<Awaited>>,
    pub(crate) cancel: CancelToken,
    /// Whether to record the times of every node.
    pub(crate) record: bool,
}

/// What a step reports: times per device if they were recorded.
pub(crate) type StepStats = Vec<DeviceStepStats>;

type Done = Box<dyn FnOnce(Result<StepStats>) + Send>;

/// A step whose feeds and fetches go through its rendezvous one by one.
pub(crate) struct Stepwise {
    pub(crate) rendezvous: Arc<dyn Rendezvous>,
    /// Tells of its end.
    pub(crate) ended: oneshot::Receiver<Result<StepStats>>,
    /// Starts it.
    pub(crate) start: Box<dyn FnOnce() + Send>,
}

/// Several devices at work on one step.
pub(super) struct Together {
    left: usize,
    failed: Option<Status>,
    stats: StepStats,
    done: Option<Done>,
    /// What each device does.
    pub(super) views: Vec<StepView>,
}

impl RegisteredGraph {
    /// Starts a step, on this thread if the graph lately took it no long time.
    pub(super) fn launch(self: &Arc<Self>, input: StepInput, done: Done) -> Arc<Mutex<Together>> {
        let together = Arc::new(Mutex::new(Together {
            left: self.parts.len(),
            failed: None,
            stats: Vec::new(),
            done: Some(done),
            views: Vec::new(),
        }));
        if self.is_quick() {
            let ((), left) = lend(|| self.start(input, &together));
            if left {
                self.took(u64::MAX);
            }
        } else {
            let (graph, together) = (self.clone(), together.clone());
            let start = move || graph.start(input, &together);
            self.env.pool.spawn(Box::new(start));
        }
        together
    }

    /// Starts all devices; drives the step on this thread as far as it goes without waiting.
    fn start(&self, input: StepInput, together: &Arc<Mutex<Together>>) {
        let (began, began_wall) = (self.env.now(), self.env.clock.wall());
        if self.parts.is_empty() {
            return finish(together);
        }
        let step_resources = Arc::new(ResourceManager::new());
        for part in &self.parts {
            let env = Arc::new(StepEnv {
                step_id: input.step_id as u64,
                device: part.device.clone(),
                resources: part.device.resources.clone(),
                step_resources: step_resources.clone(),
                rendezvous: input.rendezvous.clone(),
                cancel: input.cancel.clone(),
                pool: self.env.pool.clone(),
                par: Watched::new(self.env.pool.clone(), input.cancel.clone()),
                functions: part.functions.clone(),
                clock: self.env.clock.clone(),
                call_frame: input.call_frame.clone(),
            });
            let (of_step, plan, device) =
                (together.clone(), part.plan.clone(), part.device.clone());
            let (rendezvous, cancel) = (input.rendezvous.clone(), input.cancel.clone());
            let (record, several) = (input.record, self.parts.len() > 1);
            let ended = move |result: Result<StepReport>| {
                let mut state = lock(&of_step);
                match result {
                    Ok(report) if record => {
                        let metadata =
                            RunMetadata::new(&device.name, &plan, report, began_wall, began);
                        state.stats.extend(metadata.to_step_stats().dev_stats);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        error.clone().note(&mut state.failed);
                        drop(state);
                        // The others must not wait for what will not come.
                        rendezvous.abort(error.clone().derived());
                        if several {
                            cancel.cancel(error.derived());
                        }
                        state = lock(&of_step);
                    }
                }
                state.left -= 1;
                let last = state.left == 0;
                drop(state);
                if last {
                    finish(&of_step);
                }
            };
            let view = start(part.plan.clone(), env, input.record, Box::new(ended));
            lock(together).views.push(view);
        }
        let took = self.env.now().saturating_sub(began);
        self.took(took.as_nanos() as u64);
    }
}

fn finish(together: &Mutex<Together>) {
    let mut state = lock(together);
    let result = match state.failed.take() {
        Some(status) => Err(status),
        None => Ok(std::mem::take(&mut state.stats)),
    };
    let done = state.done.take();
    drop(state);
    if let Some(done) = done {
        done(result);
    }
}

pub(super) fn lock(together: &Mutex<Together>) -> MutexGuard<'_, Together> {
    together.lock().unwrap_or_else(PoisonError::into_inner)
}
