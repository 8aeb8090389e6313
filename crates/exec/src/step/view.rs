//! [`StepView`]: a look at a step from outside, for whoever wonders why it does not end.

use std::sync::Weak;

use super::Step;

/// Sees a step for as long as it runs.
pub struct StepView(pub(super) Weak<Step>);

impl StepView {
    /// The nodes that were started and have not ended, as `name (Op)`. None while a thread drives the step,
    /// and none after its end.
    pub fn waits_for(&self) -> Vec<String> {
        let Some(step) = self.0.upgrade() else {
            return Vec::new();
        };
        let inbox = step.inbox();
        let Some(driver) = &inbox.resting else {
            return Vec::new();
        };
        let nodes = driver.state.started.iter().map(|node| {
            let info = &step.plan.nodes[*node as usize].info;
            format!("{} ({})", info.name, info.op)
        });
        nodes.collect()
    }
}
