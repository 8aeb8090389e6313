//! [`GlobalStepWaiterHook`]: starts a worker later than others.

use std::time::Duration;

use tensorfleet_client::{Graph, Session};
use tensorfleet_status::Result;

use super::{RunArgs, RunContext, SessionRunHook, StepReader};
use crate::coordinator::Coordinator;

/// How often the step is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Lets the first run wait until the global step has reached a value: workers that begin one after the other
/// disturb each other less at the start.
///
/// ```
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::{GlobalStepWaiterHook, MonitoredTrainingSession, get_or_create_global_step};
///
/// let g = Graph::new();
/// let step = get_or_create_global_step(&g)?;
/// // Stands for the workers that began earlier.
/// let others = step.assign_add(&g.constant(100i64));
/// let mut session = MonitoredTrainingSession::new(&g).hook(GlobalStepWaiterHook::new(100)).start()?;
/// session.raw_session()?.run(&others)?;
/// assert_eq!(session.run(&step)?.to_scalar::<i64>()?, 100);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct GlobalStepWaiterHook {
    wait_until: i64,
    started: bool,
    step: StepReader,
    coordinator: Option<Coordinator>,
}

impl GlobalStepWaiterHook {
    /// Waits until this step.
    pub fn new(wait_until_step: i64) -> GlobalStepWaiterHook {
        GlobalStepWaiterHook {
            wait_until: wait_until_step,
            started: false,
            step: StepReader::default(),
            coordinator: None,
        }
    }
}

impl SessionRunHook for GlobalStepWaiterHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.step.begin(graph)
    }

    fn after_create_session(&mut self, _: &Session, coordinator: &Coordinator) -> Result<()> {
        self.coordinator = Some(coordinator.clone());
        Ok(())
    }

    fn before_run(&mut self, context: &RunContext<'_>) -> Result<RunArgs> {
        while !self.started {
            let now = self.step.read(context.session())?;
            // A coordinator that stops ends the wait, too.
            let stopped = |coordinator: &Coordinator| coordinator.wait_for_stop(LOOK);
            self.started = now >= self.wait_until || self.coordinator.as_ref().is_none_or(stopped);
        }
        Ok(RunArgs::default())
    }
}
