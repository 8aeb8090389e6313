//! [`StopAtStepHook`]: ends training at a global step.

use tensorfleet_client::{Graph, Session};
use tensorfleet_status::Result;

use super::{RunArgs, RunContext, RunValues, SessionRunHook, StepReader};
use crate::coordinator::Coordinator;

/// Ends training when the global step reaches a value, whichever worker made the last step. A session that begins
/// there ends before its first run.
///
/// ```
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::{MonitoredTrainingSession, StopAtStepHook, get_or_create_global_step};
///
/// let g = Graph::new();
/// let count = get_or_create_global_step(&g)?.assign_add(&g.constant(1i64));
/// let mut session = MonitoredTrainingSession::new(&g).hook(StopAtStepHook::at(3)).start()?;
/// let mut runs = 0;
/// while !session.should_stop() {
///     session.run(&count)?;
///     runs += 1;
/// }
/// session.close()?;
/// assert_eq!(runs, 3);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct StopAtStepHook {
    /// Steps from where this session begins, if not counted from zero.
    num_steps: Option<i64>,
    last_step: Option<i64>,
    step: StepReader,
}

impl StopAtStepHook {
    /// At this global step.
    pub fn at(last_step: i64) -> StopAtStepHook {
        StopAtStepHook {
            num_steps: None,
            last_step: Some(last_step),
            step: StepReader::default(),
        }
    }

    /// After so many more steps than there were when the first session began.
    pub fn after(num_steps: i64) -> StopAtStepHook {
        StopAtStepHook {
            num_steps: Some(num_steps),
            last_step: None,
            step: StepReader::default(),
        }
    }
}

impl SessionRunHook for StopAtStepHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.step.begin(graph)
    }

    /// Only now: a worker that waits for its chief may see the step of an earlier training until then.
    fn before_first_run(&mut self, session: &Session, coordinator: &Coordinator) -> Result<()> {
        let now = self.step.read(session)?;
        let steps = self.num_steps.unwrap_or(0);
        // Counted once: a recovered session goes on to the same end.
        let last = *self.last_step.get_or_insert(now + steps);
        if now >= last {
            coordinator.request_stop();
        }
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        self.step.fetch()
    }

    fn after_run(&mut self, context: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        let last = self.last_step.unwrap_or(i64::MAX);
        // The fetched value may be from before this step's update.
        if StepReader::fetched(values)? + 1 >= last && self.step.read(context.session())? >= last {
            context.request_stop();
        }
        Ok(())
    }
}
