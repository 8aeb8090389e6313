//! Recycled per-thread work space for packed operands.

use std::cell::Cell;

/// A cache line; its alignment is what keeps packed panels aligned.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// What a thread keeps between calls, in bytes; more is returned to the system.
const KEEP: usize = 9 << 20;
/// Lines that a large buffer is a multiple of; a small one is a power of two.
const LINES: usize = (1 << 20) / 64;

thread_local! {
    static FREE: [Cell<Vec<Line>>; 2] = const { [Cell::new(Vec::new()), Cell::new(Vec::new())] };
}

/// Types whose every bit pattern is a value.
///
/// # Safety
/// No padding, no invalid bit pattern, alignment at most 64.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: plain numbers.
unsafe impl Plain for f32 {}
// SAFETY: plain numbers.
unsafe impl Plain for f64 {}
// SAFETY: plain numbers.
unsafe impl Plain for i32 {}

/// Calls `body` with `len` elements of this thread's buffer `slot` (0 or 1); their content is arbitrary.
pub(crate) fn with<T: Plain, R>(slot: usize, len: usize, body: impl FnOnce(&mut [T]) -> R) -> R {
    FREE.with(|free| {
        // Taken out, so that a nested call gets a fresh buffer instead of this one.
        let mut lines = free[slot].take();
        let need = (len * size_of::<T>()).div_ceil(64);
        if lines.len() < need {
            lines.clear();
            let room = need.next_power_of_two().min(need.next_multiple_of(LINES));
            lines.resize(room, Line([0; 64]));
        }
        // SAFETY: `need` lines hold `len` elements, aligned to 64, initialised, and any bits are a `T`.
        let data = unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<T>(), len) };
        let result = body(data);
        if lines.len() * 64 <= KEEP {
            free[slot].set(lines);
        }
        result
    })
}
