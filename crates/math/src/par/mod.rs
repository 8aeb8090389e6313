//! Data parallelism over index ranges: the [`Par`] trait every numeric loop takes, [`Serial`] and [`Pool`].
//!
//! Loops never spawn threads themselves; they hand `0..len` and a grain to a [`Par`] and get disjoint ranges back. The safe
//! helpers in [`split`] turn that into disjoint `&mut` slices. What a loop computes must not depend on how its range is cut.

mod claims;
mod pool;
mod split;
#[cfg(test)]
mod tests;
mod watched;

use std::ops::Range;

use claims::Claims;
pub(crate) use claims::{Member, crew};
pub use pool::{Job, Pool};
pub use split::{chunks_mut, rows_mut, rows2_mut};
pub use watched::{GivenUp, Watch, Watched, poll, poll_at};

/// Something that can run a loop body over sub-ranges, perhaps on several threads.
///
/// # Safety
/// `for_each` must hand out ranges that are pairwise disjoint and lie inside `0..len`, and must not return (nor unwind) while
/// `body` still runs: the mutable splitters build exclusive slices from these ranges.
pub unsafe trait Par: Sync {
    /// How many threads a loop may use, the calling one included; at least 1.
    fn threads(&self) -> usize;

    /// Runs `body` over disjoint sub-ranges that cover `0..len`, possibly in parallel, and returns when all are done.
    ///
    /// Each range starts at a multiple of `grain` and is a multiple of `grain` long, but the last may be shorter. A panic in
    /// `body` is re-raised in the caller; ranges not begun by then may be left out. `body` is not called for `len == 0`.
    fn for_each(&self, len: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync));

    /// For loops that are not handed out: a point at which a long computation is given up if nobody wants its result any
    /// more. Only a [`Watched`] pool ever does that, by unwinding.
    fn poll(&self) {}
}

/// Runs everything inline on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

// SAFETY: the one range is `0..len` and `body` has returned before `for_each` does.
unsafe impl Par for Serial {
    fn threads(&self) -> usize {
        1
    }

    fn for_each(&self, len: usize, _grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
        if len > 0 {
            body(0..len);
        }
    }
}
