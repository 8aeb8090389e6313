//! [`SummarySaverHook`]: writes summaries to event files.

use std::time::Duration;

use tensorfleet_client::{Graph, Output, keys};
use tensorfleet_proto::session_log::SessionStatus;
use tensorfleet_status::Result;

use super::{RunArgs, RunContext, RunValues, SecondOrStepTimer, SessionRunHook, StepReader};
use crate::writer::FileWriter;

/// Evaluates the summary op now and then and writes what it gives.
///
/// ```
/// use tensorfleet_client::{Graph, ops};
/// use tensorfleet_train::{MonitoredTrainingSession, SummarySaverHook, get_or_create_global_step};
///
/// let dir = tempfile::tempdir().unwrap();
/// let g = Graph::new();
/// let count = get_or_create_global_step(&g)?.assign_add(&g.constant(1i64));
/// let loss = ops::scalar_summary(g.constant("loss"), g.constant(0.25f32)).output();
/// let hook = SummarySaverHook::every_steps(dir.path().to_str().unwrap(), 100)?.summary(&loss);
/// let mut session = MonitoredTrainingSession::new(&g).hook(hook).start()?;
/// session.run(&count)?;
/// session.close()?;
/// assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1); // events.out.tfevents.…
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct SummarySaverHook {
    timer: SecondOrStepTimer,
    dir: String,
    summary: Option<Output>,
    writer: Option<FileWriter>,
    step: StepReader,
    /// The step the next run will be at, as far as is known; `None` before the first.
    next_step: Option<i64>,
    asked: bool,
}

impl SummarySaverHook {
    /// Every so many steps, into event files of this directory.
    pub fn every_steps(dir: &str, steps: i64) -> Result<SummarySaverHook> {
        Ok(SummarySaverHook::with(
            dir,
            SecondOrStepTimer::every_steps(steps)?,
        ))
    }

    /// Every so much time.
    pub fn every(dir: &str, time: Duration) -> SummarySaverHook {
        SummarySaverHook::with(dir, SecondOrStepTimer::every(time))
    }

    fn with(dir: &str, timer: SecondOrStepTimer) -> SummarySaverHook {
        SummarySaverHook {
            timer,
            dir: dir.to_owned(),
            summary: None,
            writer: None,
            step: StepReader::default(),
            next_step: None,
            asked: false,
        }
    }

    /// This summary, instead of all that the graph has.
    #[must_use]
    pub fn summary(mut self, summary: &Output) -> Self {
        self.summary = Some(summary.clone());
        self
    }
}

impl SessionRunHook for SummarySaverHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.step.begin(graph)?;
        self.writer = Some(FileWriter::open(&self.dir)?);
        Ok(())
    }

    fn before_run(&mut self, context: &RunContext<'_>) -> Result<RunArgs> {
        if self.summary.is_none() {
            // Made when the session's scaffold was finished.
            let graph = context.session().graph();
            self.summary = graph.outputs_in(keys::SUMMARY_OP).into_iter().next();
        }
        let due = self
            .next_step
            .is_none_or(|step| self.timer.should_trigger(step));
        self.asked = due && self.summary.is_some();
        let args = self.step.fetch()?;
        Ok(match &self.summary {
            Some(summary) if self.asked => args.and_fetch(summary),
            _ => args,
        })
    }

    fn after_run(&mut self, _: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        let step = StepReader::fetched(values)?;
        let summary = values.tensors().get(1);
        let first = self.next_step.is_none();
        self.next_step = Some(step + 1);
        if let (Some(writer), Some(summary)) = (&self.writer, summary) {
            if first {
                writer.add_session_log(SessionStatus::Start, "", step)?;
            }
            self.timer.triggered(step);
            writer.add_summary(summary, step)?;
        }
        Ok(())
    }

    fn end(&mut self, _: &tensorfleet_client::Session) -> Result<()> {
        self.writer.as_ref().map_or(Ok(()), FileWriter::flush)
    }
}
