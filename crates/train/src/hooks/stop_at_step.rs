//! [`StopAtStepHook`]: ends training at a global step.

use tensorfleet_client::{Graph, Output, Session};
use tensorfleet_status::{Result, invalid_argument};

use super::{RunArgs, RunContext, RunValues, SessionRunHook, step_of};
use crate::coordinator::Coordinator;
use crate::global_step::global_step_read;

/// Ends training when the global step reaches a value, whichever worker made the last step.
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
    step: Option<Output>,
}

impl StopAtStepHook {
    /// At this global step.
    pub fn at(last_step: i64) -> StopAtStepHook {
        StopAtStepHook {
            num_steps: None,
            last_step: Some(last_step),
            step: None,
        }
    }

    /// After so many more steps than there were when the first session began.
    pub fn after(num_steps: i64) -> StopAtStepHook {
        StopAtStepHook {
            num_steps: Some(num_steps),
            last_step: None,
            step: None,
        }
    }

    fn step(&self) -> Result<&Output> {
        let step = self.step.as_ref();
        step.ok_or_else(|| invalid_argument!("begin was not called"))
    }
}

impl SessionRunHook for StopAtStepHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.step = Some(global_step_read(graph)?);
        Ok(())
    }

    fn after_create_session(&mut self, session: &Session, _: &Coordinator) -> Result<()> {
        if let (None, Some(steps)) = (self.last_step, self.num_steps) {
            // Counted once: a recovered session goes on to the same end.
            let now = session.run(self.step()?)?.to_scalar::<i64>()?;
            self.last_step = Some(now + steps);
        }
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(RunArgs::fetch(self.step()?))
    }

    fn after_run(&mut self, context: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        let last = self.last_step.unwrap_or(i64::MAX);
        // The fetched value may be from before this step's update.
        if step_of(values)? + 1 >= last {
            let now = context.session().run(self.step()?)?.to_scalar::<i64>()?;
            if now >= last {
                context.request_stop();
            }
        }
        Ok(())
    }
}
