//! Copies that go past the caches, for places that were not read before and will not be read soon: a cache would first fetch
//! what is overwritten anyway, and drop something else for it.

use std::ops::Range;

use super::index::Index;
use super::overwrite::Rows;
#[cfg(target_arch = "x86_64")]
use crate::num::isa::{Level, level};

/// Bytes of a table that no cache holds.
const LARGE: usize = 32 << 20;
/// What the memory system writes at once.
const LINE: usize = 64;

type Lines = [[u8; LINE]];

/// Whether rows of `row` bytes of this table are better written past the caches: whole lines of much memory.
pub(super) fn pays(table: &[u8], row: usize) -> bool {
    cfg!(target_arch = "x86_64")
        && table.len() >= LARGE
        && row.is_multiple_of(LINE)
        && table.as_ptr().addr().is_multiple_of(LINE)
}

/// As [`Rows::write_block`]; other threads may see the rows only after [`finish`].
///
/// # Panics
/// If rows are not whole lines.
///
/// # Safety
/// As there.
pub(super) unsafe fn write_block<I: Index>(
    rows: &Rows<'_, I>,
    block: Range<usize>,
    seen: &mut [i32],
) {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the caller's promise; and the machine has AVX-512.
        Level::Avx512 => unsafe { x86::write_block_at_once(rows, block, seen) },
        // SAFETY: the caller's promise.
        _ => unsafe { rows.write_block(block, seen, x86::copy_by_quarters) },
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        rows.write_block(block, seen, <[u8]>::copy_from_slice);
    };
}

/// The lines of a row and of its place.
///
/// # Panics
/// If there are no whole lines, or the lengths differ.
#[inline(always)]
fn lines<'a>(src: &'a [u8], dst: &'a mut [u8]) -> (&'a Lines, &'a mut Lines) {
    assert!(src.len() == dst.len() && dst.as_ptr().addr().is_multiple_of(LINE));
    let (from, rest) = src.as_chunks();
    assert!(rest.is_empty(), "no whole lines");
    (from, dst.as_chunks_mut().0)
}

/// Lines that are stored at once go to memory as they are; parts of lines are gathered first.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm_stream_si128, _mm512_loadu_si512, _mm512_stream_si512,
    };
    use std::ops::Range;

    use super::lines;
    use crate::movement::index::Index;
    use crate::movement::overwrite::Rows;

    /// # Safety
    /// As [`Rows::write_block`]; and the machine has AVX-512F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn write_block_at_once<I: Index>(
        rows: &Rows<'_, I>,
        block: Range<usize>,
        seen: &mut [i32],
    ) {
        let copy = |src: &[u8], dst: &mut [u8]| {
            let (from, to) = lines(src, dst);
            for (from, to) in from.iter().zip(to) {
                // SAFETY: a line is there; the load needs no alignment.
                let line = unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
                // SAFETY: there is room for a line, which is aligned; `finish` orders the store before what follows.
                unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), line) };
            }
        };
        // SAFETY: the caller's promise.
        unsafe { rows.write_block(block, seen, copy) };
    }

    #[inline]
    pub(super) fn copy_by_quarters(src: &[u8], dst: &mut [u8]) {
        let (from, to) = lines(src, dst);
        let (from, _) = from.as_flattened().as_chunks::<16>();
        let (to, _) = to.as_flattened_mut().as_chunks_mut::<16>();
        for (from, to) in from.iter().zip(to) {
            // SAFETY: 16 bytes are there; the load needs no alignment.
            let value = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
            // SAFETY: there is room for 16 bytes, aligned as lines are; `finish` orders the store before what follows.
            unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), value) };
        }
    }
}

/// Makes what [`write_block`] wrote visible before anything that this thread writes later.
pub(super) fn finish() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; it only orders stores.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    };
}

#[cfg(test)]
mod tests {
    use super::super::scatter_update_bytes;
    use super::*;
    use crate::par::Pool;

    #[repr(align(64))]
    struct Aligned([u8; 256]);

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn copies_by_quarters_of_lines() {
        let from: Vec<u8> = (0..=255).collect();
        let mut to = Aligned([0; 256]);
        x86::copy_by_quarters(&from[..192], &mut to.0[64..]);
        finish();
        assert_eq!(to.0[..64], [0; 64]);
        assert_eq!(to.0[64..], from[..192]);
    }

    #[test]
    fn the_last_row_of_a_large_table_wins() {
        const ROW: usize = 256;
        let rows = LARGE / ROW + 1000;
        let mut bytes = vec![0; rows * ROW + LINE];
        let first = bytes.as_ptr().addr().next_multiple_of(LINE) - bytes.as_ptr().addr();
        let table = &mut bytes[first..first + rows * ROW];
        assert_eq!(pays(table, ROW), cfg!(target_arch = "x86_64"));
        // Every index twice or more, far apart and side by side.
        let indices: Vec<i64> = (0..20_000_i64).map(|i| i * 7919 % 4001 / 2 * 33).collect();
        let value = |position: usize| (position % 251) as u8 + 1;
        let updates: Vec<u8> = (0..indices.len()).flat_map(|i| [value(i); ROW]).collect();
        let mut last = vec![0; rows];
        for (position, &index) in indices.iter().enumerate() {
            last[index as usize] = value(position);
        }
        scatter_update_bytes(&Pool::new(3), 4, table, ROW / 4, &indices, &updates).unwrap();
        for (row, last) in table.chunks_exact(ROW).zip(last) {
            assert!(row.iter().all(|&byte| byte == last));
        }
    }

    #[test]
    fn takes_only_large_tables_of_whole_lines() {
        assert!(!pays(&Aligned([0; 256]).0, 64));
        let table = vec![0; LARGE + LINE];
        let first = table.as_ptr().addr().next_multiple_of(LINE) - table.as_ptr().addr();
        let aligned = &table[first..first + LARGE];
        assert_eq!(pays(aligned, 128), cfg!(target_arch = "x86_64"));
        assert!(!pays(aligned, 96));
        assert!(!pays(&table[first + 4..], 128));
    }
}
