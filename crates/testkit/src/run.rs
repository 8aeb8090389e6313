//! Runs cases on our session.

use anyhow::Result;
use tensorfleet_session::{Session, SessionOptions};
use tensorfleet_status::Status;
use tensorfleet_tensor::Tensor;

use crate::cases::Case;

/// What came of one step.
pub type StepResult = std::result::Result<Vec<Tensor>, Status>;

/// Runs a case in a session of its own.
pub fn run(case: &Case, options: SessionOptions) -> Result<Vec<StepResult>> {
    let session = Session::with_registry(options, case.graph.registry().clone())?;
    session.extend(&case.graph.export()?)?;
    let mut results = Vec::with_capacity(case.steps.len());
    for step in &case.steps {
        let fetches: Vec<&str> = step.fetches.iter().map(String::as_str).collect();
        let targets: Vec<&str> = step.targets.iter().map(String::as_str).collect();
        results.push(session.run(&[], &fetches, &targets));
    }
    Ok(results)
}
