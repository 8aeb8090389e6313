//! Copies that go past the caches, for places that were not read before and will not be read soon: a cache would first fetch
//! what is overwritten anyway, and drop something else for it.

#[cfg(target_arch = "x86_64")]
use crate::num::isa::{Level, level};

/// Bytes of a table that no cache holds.
const LARGE: usize = 32 << 20;
/// What the memory system writes at once.
const LINE: usize = 64;

/// Whether rows of `row` bytes of this table are better written past the caches: whole lines of much memory.
pub(super) fn pays(table: &[u8], row: usize) -> bool {
    cfg!(target_arch = "x86_64")
        && table.len() >= LARGE
        && row.is_multiple_of(LINE)
        && table.as_ptr().addr().is_multiple_of(LINE)
}

/// Copies whole lines; other threads may see them only after [`finish`].
///
/// # Panics
/// If the lengths differ or `dst` is not whole lines.
#[inline]
pub(super) fn copy(src: &[u8], dst: &mut [u8]) {
    assert!(src.len() == dst.len() && dst.as_ptr().addr().is_multiple_of(LINE));
    let (from, rest) = src.as_chunks::<LINE>();
    assert!(rest.is_empty(), "no whole lines");
    let (to, _) = dst.as_chunks_mut::<LINE>();
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the machine has AVX-512, and `to` begins with a line.
        Level::Avx512 => unsafe { x86::copy_at_once(from, to) },
        // SAFETY: `to` begins with a line.
        _ => unsafe { x86::copy_by_quarters(from, to) },
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

/// Lines that are stored at once go to memory as they are; parts of lines are gathered first.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm_stream_si128, _mm512_loadu_si512, _mm512_stream_si512,
    };

    use super::LINE;

    /// # Safety
    /// The machine has AVX-512F; `to` is aligned to lines.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn copy_at_once(from: &[[u8; LINE]], to: &mut [[u8; LINE]]) {
        for (from, to) in from.iter().zip(to) {
            // SAFETY: a line is there; the load needs no alignment.
            let line = unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
            // SAFETY: there is room for a line, aligned by contract; `finish` orders the store before what follows.
            unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), line) };
        }
    }

    /// # Safety
    /// `to` is aligned to lines.
    pub(super) unsafe fn copy_by_quarters(from: &[[u8; LINE]], to: &mut [[u8; LINE]]) {
        for (from, to) in from
            .as_flattened()
            .as_chunks::<16>()
            .0
            .iter()
            .zip(to.as_flattened_mut().as_chunks_mut::<16>().0)
        {
            // SAFETY: 16 bytes are there; the load needs no alignment.
            let value = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
            // SAFETY: there is room for 16 bytes, aligned as lines are; `finish` orders the store before what follows.
            unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), value) };
        }
    }
}

/// Makes what [`copy`] wrote visible before anything that this thread writes later.
pub(super) fn finish() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; it only orders stores.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Lines([u8; 256]);

    #[test]
    fn copies_whole_lines() {
        let from: Vec<u8> = (0..=255).collect();
        let mut to = Lines([0; 256]);
        copy(&from[..192], &mut to.0[64..]);
        finish();
        assert_eq!(to.0[..64], [0; 64]);
        assert_eq!(to.0[64..], from[..192]);
    }

    #[test]
    fn takes_only_large_tables_of_whole_lines() {
        assert!(!pays(&Lines([0; 256]).0, 64));
        let table = vec![0; LARGE + LINE];
        let first = table.as_ptr().addr().next_multiple_of(LINE) - table.as_ptr().addr();
        let aligned = &table[first..first + LARGE];
        assert_eq!(pays(aligned, 128), cfg!(target_arch = "x86_64"));
        assert!(!pays(aligned, 96));
        assert!(!pays(&table[first + 4..], 128));
    }
}
