//! [`StepCounterHook`]: measures steps per second.

use std::time::Duration;

use tensorfleet_client::Graph;
use tensorfleet_status::Result;

use super::{RunArgs, RunContext, RunValues, SecondOrStepTimer, SessionRunHook, StepReader};
use crate::writer::FileWriter;

/// Logs global steps per second, and writes them as summary `global_step/sec`.
///
/// ```
/// use std::time::Duration;
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::{MonitoredTrainingSession, StepCounterHook, get_or_create_global_step};
///
/// let g = Graph::new();
/// let count = get_or_create_global_step(&g)?.assign_add(&g.constant(1i64));
/// let hook = StepCounterHook::every(Duration::from_secs(10)); // logs "global_step/sec: …"
/// let mut session = MonitoredTrainingSession::new(&g).hook(hook).start()?;
/// session.run(&count)?;
/// session.close()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct StepCounterHook {
    timer: SecondOrStepTimer,
    dir: Option<String>,
    writer: Option<FileWriter>,
    step: StepReader,
}

impl StepCounterHook {
    /// Every so many steps.
    pub fn every_steps(steps: i64) -> Result<StepCounterHook> {
        Ok(StepCounterHook::with(SecondOrStepTimer::every_steps(
            steps,
        )?))
    }

    /// Every so much time.
    pub fn every(time: Duration) -> StepCounterHook {
        StepCounterHook::with(SecondOrStepTimer::every(time))
    }

    fn with(timer: SecondOrStepTimer) -> StepCounterHook {
        StepCounterHook {
            timer,
            dir: None,
            writer: None,
            step: StepReader::default(),
        }
    }

    /// Writes the summary into event files of this directory.
    #[must_use]
    pub fn output_dir(mut self, dir: &str) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }
}

impl SessionRunHook for StepCounterHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.step.begin(graph)?;
        self.writer = self.dir.as_deref().map(FileWriter::open).transpose()?;
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        self.step.fetch()
    }

    fn after_run(&mut self, _: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        let step = StepReader::fetched(values)?;
        if !self.timer.should_trigger(step) {
            return Ok(());
        }
        if let Some((time, steps)) = self.timer.triggered(step) {
            let rate = steps as f64 / time.as_secs_f64();
            tracing::info!("global_step/sec: {rate:.6}");
            if let Some(writer) = &self.writer {
                writer.add_scalar("global_step/sec", rate as f32, step)?;
            }
        }
        Ok(())
    }
}
