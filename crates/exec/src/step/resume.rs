//! Which thread a step runs on: one of the pool, or one that is lent to it for a while.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::{Driver, Step, drive};
use crate::plan::{PlanNode, QUICK_NANOS};

/// Steps leave a thread that is lent to them after this long, at the next kernel's end.
const LENT_TIME: Duration = Duration::from_millis(1);

thread_local! {
    static ALLOWED: Cell<bool> = const { Cell::new(false) };
    static LOAN: Cell<Option<Loan>> = const { Cell::new(None) };
}

/// A thread that has other things to do than steps.
#[derive(Clone, Copy, Default)]
struct Loan {
    /// When it ends, once a step runs. It is one for all steps that this one starts, such as those of functions.
    end: Option<Duration>,
    /// Whether a step was too long for it.
    left: bool,
}

/// Runs `work`, which starts steps, on a thread that has other things to do: a step that turns out to be
/// long goes on in the pool. Says whether one did.
pub fn lend<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let before = Restored::set(&LOAN, Some(Loan::default()));
    let result = work();
    let left = LOAN.get().is_some_and(|loan| loan.left);
    drop(before);
    (result, left)
}

/// Runs `work`; a step that it brings an answer goes on right here if it lately had little to do then,
/// because waking another thread takes longer.
///
/// For callers that hold no lock and may be kept for as long as a small step takes.
pub fn resume_here<T>(work: impl FnOnce() -> T) -> T {
    let _before = Restored::set(&ALLOWED, true);
    work()
}

/// When a step that is driven here has to leave this thread.
pub(super) fn leave_at(step: &Step) -> Option<Duration> {
    let mut loan = LOAN.get()?;
    let end = *loan.end.get_or_insert_with(|| step.now() + LENT_TIME);
    LOAN.set(Some(loan));
    Some(end)
}

/// Lets the pool drive on.
#[cold]
pub(super) fn leave(step: &Arc<Step>, driver: Driver) {
    // A pool without threads drives right here.
    let loan = Restored::set(&LOAN, None);
    on_pool(step, move |step| drive(step, driver));
    drop(loan);
    LOAN.set(LOAN.get().map(|loan| Loan { left: true, ..loan }));
}

/// Has a thread of the pool do something for a step.
pub(super) fn on_pool(step: &Arc<Step>, work: impl FnOnce(&Arc<Step>) + Send + 'static) {
    let step = step.clone();
    step.env.pool.clone().spawn(Box::new(move || work(&step)));
}

/// Lets a step whose driver rested go on. `answer` is the asynchronous node that set it going, if one did.
pub(super) fn resume(step: &Arc<Step>, driver: Box<Driver>, answer: Option<u32>) {
    let node = answer.map(|answer| &step.plan.nodes[answer as usize]);
    if ALLOWED.get() && node.is_some_and(PlanNode::is_quickly_followed) {
        // What this step does may bring others an answer: those go on elsewhere, not on top of it.
        let _before = Restored::set(&ALLOWED, false);
        let ((), left) = lend(|| drive_after(step, *driver, answer));
        if let Some(node) = node.filter(|_| left) {
            node.learn(10 * u64::from(QUICK_NANOS));
        }
        return;
    }
    on_pool(step, move |step| drive_after(step, *driver, answer));
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

/// Puts a thread's setting back as it was.
struct Restored<T: Copy + 'static> {
    setting: &'static std::thread::LocalKey<Cell<T>>,
    before: T,
}

impl<T: Copy> Restored<T> {
    fn set(setting: &'static std::thread::LocalKey<Cell<T>>, value: T) -> Restored<T> {
        let before = setting.replace(value);
        Restored { setting, before }
    }
}

impl<T: Copy> Drop for Restored<T> {
    fn drop(&mut self) {
        self.setting.set(self.before);
    }
}
