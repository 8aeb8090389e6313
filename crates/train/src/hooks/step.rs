//! [`StepReader`]: the global step as a hook sees it.

use tensorfleet_client::{Graph, Output, Session};
use tensorfleet_status::{Result, failed_precondition};

use super::{RunArgs, RunValues};
use crate::global_step::global_step_read;

/// Finds the global step in [`begin`](super::SessionRunHook::begin); fetches it with a run, or reads it on its own.
#[derive(Default)]
pub(crate) struct StepReader {
    step: Option<Output>,
}

impl StepReader {
    /// Finds the step of the graph.
    pub(crate) fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.step = Some(global_step_read(graph)?);
        Ok(())
    }

    fn step(&self) -> Result<&Output> {
        self.step.as_ref().ok_or_else(|| {
            failed_precondition!("begin of a hook that needs the global step was not called")
        })
    }

    /// Fetches it first of all with a run.
    pub(crate) fn fetch(&self) -> Result<RunArgs> {
        Ok(RunArgs::fetch(self.step()?))
    }

    /// What [`fetch`](Self::fetch) gave: the step before or after the run's own update.
    pub(crate) fn fetched(values: &RunValues<'_>) -> Result<i64> {
        let first = values.tensors().first();
        let first = first.ok_or_else(|| failed_precondition!("the global step was not fetched"))?;
        first.to_scalar::<i64>()
    }

    /// Where it stands now.
    pub(crate) fn read(&self, session: &Session) -> Result<i64> {
        session.run(self.step()?)?.to_scalar::<i64>()
    }
}
