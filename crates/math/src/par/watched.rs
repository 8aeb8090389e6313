//! [`Watched`]: loops of a pool that are given up when nobody wants what they compute.

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;

use super::{Par, Pool};

/// So many grains of a loop run between two looks: a grain is some microseconds of work or more.
const GRAINS_BETWEEN_LOOKS: usize = 512;

/// Says when a computation has become pointless. Asked from any thread, often: it must be cheap.
pub trait Watch: Send + Sync {
    /// Whether nobody wants the result any more.
    fn is_over(&self) -> bool;
}

/// What a computation unwinds with that is given up. It is no panic: no panic hook hears of it.
#[derive(Debug)]
pub struct GivenUp;

impl GivenUp {
    /// Whether this is what was unwound with.
    pub fn is_in(payload: &(dyn Any + Send)) -> bool {
        payload.is::<GivenUp>()
    }
}

/// A pool whose loops stop between two parts once the watch says so: they unwind with [`GivenUp`].
///
/// Only for computations whose half-done results nobody can see.
pub struct Watched<W> {
    pool: Arc<Pool>,
    watch: W,
}

impl<W: Watch + 'static> Watched<W> {
    /// The loops of `pool`, for as long as `watch` is not over.
    pub fn new(pool: Arc<Pool>, watch: W) -> Watched<W> {
        Watched { pool, watch }
    }

    /// Runs `work` on this thread; [`poll`] ends it once the watch is over.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        let _here = Here::watched_by(&self.watch);
        work()
    }
}

// SAFETY: the pool's ranges are disjoint and inside `0..len`, and each is cut into parts that are disjoint and inside it; the
// pool does not return before all bodies have.
unsafe impl<W: Watch + 'static> Par for Watched<W> {
    fn threads(&self) -> usize {
        self.pool.threads()
    }

    fn for_each(&self, len: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
        self.poll();
        let stretch = grain.max(1).saturating_mul(GRAINS_BETWEEN_LOOKS);
        self.pool.for_each(len, grain, &|range| {
            let _here = Here::watched_by(&self.watch);
            let mut begin = range.start;
            while range.end - begin > stretch {
                body(begin..begin + stretch);
                begin += stretch;
                self.poll();
            }
            body(begin..range.end);
        });
    }

    fn poll(&self) {
        if self.watch.is_over() {
            give_up();
        }
    }
}

/// For steps of long computations that are handed no [`Par`]: if what this thread computes is watched, and that is over, it is
/// given up here.
#[inline]
pub fn poll() {
    if let Some(watch) = HERE.get() {
        // SAFETY: who set it lends it for as long as it is set, see `Here`.
        let watch = unsafe { &*watch };
        if watch.is_over() {
            give_up();
        }
    }
}

/// [`poll`] after every 64th step of a loop whose steps are short.
#[inline]
pub fn poll_at(step: usize) {
    if step % 64 == 63 {
        poll();
    }
}

#[cold]
fn give_up() {
    resume_unwind(Box::new(GivenUp));
}

thread_local! {
    /// Who watches what this thread computes.
    static HERE: Cell<Option<*const dyn Watch>> = const { Cell::new(None) };
}

/// While it lives, its watch is this thread's; then the one before is again.
struct Here(Option<*const dyn Watch>);

impl Here {
    /// The guard must be dropped before `watch`: it stays a local variable of who has the reference.
    fn watched_by(watch: &(dyn Watch + 'static)) -> Here {
        Here(HERE.replace(Some(watch)))
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}
