//! [`Task`]: work that goes on whenever it is woken, on one thread at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Poll, Wake, Waker};

use tensorfleet_math::par::Pool;
use tensorfleet_status::{internal, panic_text};

use super::value::{Iterate, Next};

/// Work that is done in pieces.
pub(super) trait Work: Send + Sync + 'static {
    /// Goes on as far as it can; `waker` is to be woken when there is more to do.
    fn work(&self, waker: &Waker);

    /// The threads it runs on.
    fn pool(&self) -> &Arc<Pool>;
}

/// Work, and whether somebody is at it.
pub(super) struct Task<W> {
    state: AtomicU8,
    pub(super) work: W,
}

const RESTS: u8 = 0;
const RUNS: u8 = 1;
/// It runs, and was woken since.
const RUNS_AGAIN: u8 = 2;

impl<W: Work> Task<W> {
    pub(super) fn new(work: W) -> Arc<Task<W>> {
        Arc::new(Task {
            state: AtomicU8::new(RESTS),
            work,
        })
    }

    /// Has a thread of the pool go on.
    pub(super) fn go_on(self: &Arc<Task<W>>) {
        if self.claim() {
            let task = self.clone();
            self.work.pool().spawn(Box::new(move || task.run()));
        }
    }

    /// Goes on right here. Not for callers that a task has called: that could use up the stack.
    pub(super) fn go_on_here(self: &Arc<Task<W>>) {
        if self.claim() {
            self.run();
        }
    }

    /// Whether the caller has to run it.
    fn claim(&self) -> bool {
        let next = |state| match state {
            RESTS => Some(RUNS),
            RUNS => Some(RUNS_AGAIN),
            _ => None,
        };
        let order = (Ordering::AcqRel, Ordering::Acquire);
        self.state.fetch_update(order.0, order.1, next) == Ok(RESTS)
    }

    fn run(self: &Arc<Task<W>>) {
        let waker = Waker::from(self.clone());
        self.state.store(RUNS, Ordering::Release);
        self.work.work(&waker);
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let rests = self.state.compare_exchange(RUNS, RESTS, order.0, order.1);
        if rests.is_err() {
            // Woken meanwhile: others may have their turn before.
            let task = self.clone();
            self.work.pool().spawn(Box::new(move || task.run()));
        }
    }
}

impl<W: Work> Wake for Task<W> {
    fn wake(self: Arc<Self>) {
        self.go_on();
    }
}

/// Asks an iterator; its panic is an error.
pub(super) fn guarded(iterator: &mut dyn Iterate, waker: &Waker) -> Next {
    match catch_unwind(AssertUnwindSafe(|| iterator.next(waker))) {
        Ok(next) => next,
        Err(panic) => Poll::Ready(Err(internal!(
            "the dataset panicked: {}",
            panic_text(&*panic)
        ))),
    }
}
