//! Says in the log what a synchronous training waits for when it stands still.

use std::time::Duration;

use tensorfleet_client::{Output, Session};
use tensorfleet_status::Result;

use super::Built;
use crate::coordinator::Coordinator;

/// A step that takes longer than this is worth a word.
const LOOK: Duration = Duration::from_secs(20);

/// What a worker looks at now and then while it trains.
#[derive(Clone)]
pub(super) struct Watch {
    global_step: Output,
    /// By variable: how many gradients have come for it.
    counts: Vec<(String, Output)>,
    wanted: u32,
}

impl Watch {
    pub(super) fn new(built: &Built, wanted: u32) -> Watch {
        let accumulators = built.accumulators.iter();
        Watch {
            global_step: built.global_step.read(),
            counts: accumulators
                .map(|one| (one.variable.clone(), one.count.clone()))
                .collect(),
            wanted,
        }
    }

    /// Where the global step stands.
    pub(super) fn step(&self, session: &Session) -> Result<i64> {
        session.run(&self.global_step)?.to_scalar::<i64>()
    }

    /// Watches until the session ends.
    pub(super) fn start(&self, session: &Session, coordinator: &Coordinator) -> Result<()> {
        let (watch, session, stop) = (self.clone(), session.clone(), coordinator.clone());
        coordinator.spawn("watch of synchronous replicas", move || {
            // Who loses its servers is told so by its next step.
            let _ = watch.run(&session, &stop);
            Ok(())
        })
    }

    fn run(&self, session: &Session, stop: &Coordinator) -> Result<()> {
        let mut last = None;
        while !stop.wait_for_stop(LOOK) {
            let step = self.step(session)?;
            if last == Some(step) {
                tracing::warn!("{}", self.awaited(session, step)?);
            }
            last = Some(step);
        }
        Ok(())
    }

    /// Who is awaited at this step.
    fn awaited(&self, session: &Session, step: i64) -> Result<String> {
        let mut missing = Vec::new();
        for (variable, count) in &self.counts {
            let count = session.run(count)?.to_scalar::<i32>()?;
            if i64::from(count) < i64::from(self.wanted) {
                missing.push(format!("{count} of {} for {variable}", self.wanted));
            }
        }
        let awaited = if missing.is_empty() {
            "all gradients have come; the chief, which applies them, is slow or gone".to_owned()
        } else {
            let missing = missing.join(", ");
            format!("gradients are missing ({missing}); a worker or the chief is slow or gone")
        };
        Ok(format!(
            "synchronous training stands at step {step} for {LOOK:?}: {awaited}"
        ))
    }
}
