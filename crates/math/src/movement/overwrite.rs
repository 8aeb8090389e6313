//! Rows overwritten by index.
//!
//! The last row given for an index wins, so the others need not be written at all; those that win go to different places, and
//! any thread may write any of them: the updates are read in order, which is what the hardware foresees.

use std::iter;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::by_size;
use super::index::{BadIndex, Index, check_indices};
use super::mover::copy_bytes;
use super::prefetch::AHEAD;
use super::scatter::{Updates, for_rows, scatter};
use crate::disjoint::Disjoint;
use crate::gemm::scratch;
use crate::num::isa::multiversion;
use crate::par::Par;

/// Bytes of updates below which one thread does it all.
const SERIAL: usize = 16 * 1024;
/// Indices that a thread takes at a time.
const BLOCK: usize = 1024;
/// Words of the set of rows per index: a sparser set costs more to clear than it spares.
const SPARSEST: usize = 8;

/// Overwrites the rows that `indices` name with rows of `size`-byte elements, the last one winning.
///
/// Nothing is written if an index is bad.
///
/// # Panics
/// As [`scatter`], in bytes, and if `size` is not 1, 2, 4, 8 or 16.
pub fn scatter_update_bytes<I: Index>(
    par: &dyn Par,
    size: usize,
    dst: &mut [u8],
    row_len: usize,
    indices: &[I],
    updates: &[u8],
) -> Result<(), BadIndex> {
    let row = row_len * size;
    by_size!(rows row, Cell => {
        let updates = Updates::Rows(Cell::of(updates));
        scatter(par, Cell::of_mut(dst), 1, indices, updates, Clone::clone_from)
    }, else {
        assert_eq!(updates.len(), indices.len() * row, "rows of updates");
        let rows = dst.len().checked_div(row).unwrap_or(0);
        let few = par.threads() == 1 || updates.len() < SERIAL;
        if few || rows / 32 > SPARSEST * indices.len() {
            let operands = |position: usize| &updates[position * row..(position + 1) * row];
            return for_rows(par, dst, row, indices, operands, |dst, position| {
                copy_bytes(operands(position), dst);
            });
        }
        assert_eq!(rows * row, dst.len(), "destination is not whole rows");
        check_indices(indices, rows)?;
        write_last(par, dst, row, indices, updates);
        Ok(())
    })
}

/// Rows that are to be written, and those that are taken.
struct Overwrite<'a, I> {
    row: usize,
    indices: &'a [I],
    updates: &'a [u8],
    table: Disjoint<'a, u8>,
    /// Blocks of indices, from the end, that a thread has.
    taken: AtomicUsize,
}

/// Writes the last row given for each index; the indices are below the number of rows.
///
/// Whether a row is the last one depends on all that come later. So the threads take blocks from the end, and each keeps a set
/// of the rows it has met: into it go the blocks of the others, too. Thus nobody waits for anybody, and there is time for it,
/// as the memory takes longer to write a row than a thread to look at an index.
///
/// Rows are written through the caches, for who overwrites rows of a table has mostly just gathered them. Past the caches
/// is somewhat faster if nobody has, and takes twice as long on machines whose memory is slow to write at that time.
fn write_last<I: Index>(par: &dyn Par, dst: &mut [u8], row: usize, indices: &[I], updates: &[u8]) {
    let set = (dst.len() / row).div_ceil(32);
    let work = Overwrite {
        row,
        indices,
        updates,
        table: Disjoint::new(dst),
        taken: AtomicUsize::new(0),
    };
    par.for_each(par.threads().min(work.blocks()), 1, &|walks| {
        for _ in walks {
            if let Some(first) = work.take() {
                scratch::with(0, set, |seen| walk(&work, first, seen));
            }
        }
    });
}

multiversion! {
    /// Writes `first` and what else is there to take. In one loop with the looking, and compiled as a whole: at the speed at
    /// which the caches take rows, a call for each would show.
    fn walk<I: Index>(work: &Overwrite<'_, I>, first: Range<usize>, seen: &mut [i32]) = walk_blocks;
}

#[inline(always)]
fn walk_blocks<I: Index>(work: &Overwrite<'_, I>, first: Range<usize>, seen: &mut [i32]) {
    let Overwrite { row, indices, .. } = *work;
    seen.fill(0);
    let mut met = indices.len();
    for block in iter::successors(Some(first), |_| work.take()) {
        for index in &indices[block.end..met] {
            see(seen, index.position());
        }
        met = block.start;
        for position in block.clone().rev() {
            let ahead = position.saturating_sub(AHEAD).max(block.start);
            work.table.prefetch(indices[ahead].position() * row, row);
            let index = indices[position].position();
            if see(seen, index) {
                continue;
            }
            // SAFETY: this thread took the block, and no later position has this index; an earlier one is not written by the
            // thread that took it, which has seen this one. So nobody else has the row.
            let to = unsafe { work.table.slice(index * row, row) };
            copy_lines(&work.updates[position * row..][..row], to);
        }
    }
}

impl<I> Overwrite<'_, I> {
    fn blocks(&self) -> usize {
        self.indices.len().div_ceil(BLOCK)
    }

    /// The last block of positions that nobody has.
    fn take(&self) -> Option<Range<usize>> {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        let number = self.blocks().checked_sub(1 + taken)?;
        Some(number * BLOCK..self.indices.len().min((number + 1) * BLOCK))
    }
}

/// Copies without a call, by the widest vectors of whatever it is compiled for.
#[inline(always)]
fn copy_lines(src: &[u8], dst: &mut [u8]) {
    let (from, from_rest) = src.as_chunks::<64>();
    let (to, to_rest) = dst.as_chunks_mut::<64>();
    for (from, to) in from.iter().zip(to) {
        *to = *from;
    }
    if !from_rest.is_empty() {
        to_rest.copy_from_slice(from_rest);
    }
}

/// Puts `row` into the set; whether it was there.
#[inline(always)]
fn see(seen: &mut [i32], row: usize) -> bool {
    let word = &mut seen[row / 32];
    let before = *word >> (row % 32) & 1 == 1;
    *word |= 1 << (row % 32);
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Pool;

    #[test]
    fn the_last_row_wins_whichever_thread_has_it() {
        const ROW: usize = 256;
        const TABLE: usize = 70_000;
        // Every index twice or more, far apart and side by side.
        let indices: Vec<i64> = (0..20_000_i64).map(|i| i * 7919 % 4001 / 2 * 33).collect();
        let value = |position: usize| (position % 251) as u8 + 1;
        let updates: Vec<u8> = (0..indices.len()).flat_map(|i| [value(i); ROW]).collect();
        let mut last = vec![0; TABLE];
        for (position, &index) in indices.iter().enumerate() {
            last[index as usize] = value(position);
        }
        let mut table = vec![0; TABLE * ROW];
        scatter_update_bytes(&Pool::new(3), 4, &mut table, ROW / 4, &indices, &updates).unwrap();
        for (row, last) in table.chunks_exact(ROW).zip(last) {
            assert!(row.iter().all(|&byte| byte == last));
        }
    }
}
