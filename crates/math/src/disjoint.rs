//! A mutable slice that several tasks write at places of their own.

use std::marker::PhantomData;

use crate::movement::prefetch::prefetch_at;

/// A borrowed mutable slice from which tasks take pieces that nobody else has.
///
/// Where pieces are plain ranges, the splitters of [`crate::par`] do this safely; this is for rows picked by index and for loops
/// over several slices at once.
pub(crate) struct Disjoint<'a, T> {
    base: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: the only access is by `slice`, whose callers keep pieces apart, so sharing it sends `T`s between threads, no more.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self {
            base: slice.as_mut_ptr(),
            len: slice.len(),
            borrow: PhantomData,
        }
    }

    /// The elements from `offset` on, `len` of them.
    ///
    /// # Panics
    /// If the piece does not lie inside the slice.
    ///
    /// # Safety
    /// While the result lives, no other piece may overlap it.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the caller's promise")]
    #[inline(always)]
    pub(crate) unsafe fn slice(&self, offset: usize, len: usize) -> &mut [T] {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: `offset` is inside the slice or just behind it, by the assertion.
        let first = unsafe { self.base.add(offset) };
        // SAFETY: the piece is inside the slice and the caller keeps it exclusive; the borrow outlives it.
        unsafe { std::slice::from_raw_parts_mut(first, len) }
    }

    /// Asks the memory system for the elements from `offset` on, `len` of them, whoever may have them.
    #[inline(always)]
    pub(crate) fn prefetch(&self, offset: usize, len: usize) {
        let first = self.base.wrapping_add(offset);
        prefetch_at(first.cast(), len * size_of::<T>());
    }
}
