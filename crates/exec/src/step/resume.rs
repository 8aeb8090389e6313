//! Where a step goes on when an answer comes: on a pool thread, or on the thread that brought the answer.

use std::cell::Cell;
use std::sync::Arc;

use super::{Driver, Step, drive};
use crate::plan::PlanNode;

thread_local! {
    static ALLOWED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; a step that it brings an answer goes on right here if it lately had little to do then,
/// because waking another thread takes longer.
///
/// For callers that hold no lock and may be kept for as long as a small step takes.
pub fn resume_here<T>(work: impl FnOnce() -> T) -> T {
    let _before = Allowed::set(true);
    work()
}

/// Lets a step whose driver rested go on. `answer` is the asynchronous node that set it going, if one did.
pub(super) fn resume(step: &Arc<Step>, driver: Box<Driver>, answer: Option<u32>) {
    let node = answer.map(|answer| &step.plan.nodes[answer as usize]);
    if ALLOWED.get() && node.is_some_and(PlanNode::is_quickly_followed) {
        // What this step does may bring others an answer: those go on elsewhere, not on top of it.
        let _before = Allowed::set(false);
        return drive_after(step, *driver, answer);
    }
    let step = step.clone();
    let pool = step.env.pool.clone();
    pool.spawn(Box::new(move || drive_after(&step, *driver, answer)));
}

/// Drives, and learns how long that takes after such an answer.
fn drive_after(step: &Arc<Step>, driver: Driver, answer: Option<u32>) {
    let began = step.now();
    drive(step, driver);
    if let Some(answer) = answer {
        let took = step.now().saturating_sub(began);
        step.plan.nodes[answer as usize].learn(took.as_nanos() as u64);
    }
}

/// Puts the permission back as it was.
struct Allowed(bool);

impl Allowed {
    fn set(allowed: bool) -> Allowed {
        Allowed(ALLOWED.replace(allowed))
    }
}

impl Drop for Allowed {
    fn drop(&mut self) {
        ALLOWED.set(self.0);
    }
}
