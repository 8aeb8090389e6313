//! Asking for rows before their turn: rows picked by index lie where no hardware prefetcher looks.

/// How many rows ahead to ask: far enough to cover a memory access, near enough to still be in the first-level cache.
pub(crate) const AHEAD: usize = 16;

/// Asks the memory system for `row`; has no other effect.
#[inline(always)]
pub(crate) fn prefetch<T>(row: &[T]) {
    prefetch_at(row.as_ptr().cast(), size_of_val(row));
}

/// Asks the memory system for `len` bytes from `first` on, which nobody need have access to; has no other effect.
#[inline(always)]
pub(crate) fn prefetch_at(first: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // The first lines start the page walk and the hardware's own run; more would only fill the queues.
        for line in (0..len.min(512)).step_by(64) {
            // SAFETY: a hint that accesses nothing, wherever it points.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.cast::<i8>().wrapping_add(line)) };
        }
    }
    let _ = (first, len);
}
