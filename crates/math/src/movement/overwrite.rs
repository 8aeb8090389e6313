//! Rows overwritten by index.
//!
//! The last row given for an index wins, so the others need not be written at all; those that win go to different places, and
//! any thread may write any of them: the updates are read in order, which is what the hardware foresees.

use std::iter;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::index::{BadIndex, Index, check_indices};
use super::mover::copy_bytes;
use super::scatter::{Updates, for_rows, scatter};
use super::{by_size, stream};
use crate::disjoint::Disjoint;
use crate::gemm::scratch;
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

/// Writes the last row given for each index; the indices are below the number of rows.
///
/// Whether a row is the last one depends on all that come later. So the threads take blocks from the end, and each keeps a set
/// of the rows it has met: into it go the blocks of the others, too. Thus nobody waits for anybody, and there is time for it,
/// as the memory takes longer to write a row than a thread to look at an index.
fn write_last<I: Index>(par: &dyn Par, dst: &mut [u8], row: usize, indices: &[I], updates: &[u8]) {
    let set = (dst.len() / row).div_ceil(32);
    let streams = stream::pays(dst, row);
    let rows = Rows {
        row,
        indices,
        updates,
        table: Disjoint::new(dst),
    };
    let blocks = indices.len().div_ceil(BLOCK);
    let taken = AtomicUsize::new(0);
    let take = || {
        let number = blocks.checked_sub(1 + taken.fetch_add(1, Ordering::Relaxed))?;
        Some(number * BLOCK..indices.len().min((number + 1) * BLOCK))
    };
    let walk = |first: Range<usize>, seen: &mut [i32]| {
        seen.fill(0);
        let mut met = indices.len();
        for block in iter::successors(Some(first), |_| take()) {
            for index in &indices[block.end..met] {
                see(seen, index.position());
            }
            met = block.start;
            if streams {
                // SAFETY: this thread has met all later positions; so has any other before it writes.
                unsafe { stream::write_block(&rows, block, seen) };
            } else {
                // SAFETY: as above.
                unsafe { rows.write_block(block, seen, copy_bytes) };
            }
        }
        if streams {
            stream::finish();
        }
    };
    par.for_each(par.threads().min(blocks), 1, &|walks| {
        for _ in walks {
            if let Some(first) = take() {
                scratch::with(0, set, |seen| walk(first, seen));
            }
        }
    });
}

/// What is written, and where.
pub(super) struct Rows<'a, I> {
    row: usize,
    indices: &'a [I],
    updates: &'a [u8],
    table: Disjoint<'a, u8>,
}

impl<I: Index> Rows<'_, I> {
    /// Writes those rows of a block whose index was not seen, the last first. In one loop with the looking, which is done while
    /// the memory writes.
    ///
    /// # Safety
    /// Whoever writes has seen the indices of all positions behind those it writes.
    #[inline(always)]
    pub(super) unsafe fn write_block(
        &self,
        block: Range<usize>,
        seen: &mut [i32],
        copy: impl Fn(&[u8], &mut [u8]),
    ) {
        let row = self.row;
        for position in block.rev() {
            let index = self.indices[position].position();
            if see(seen, index) {
                continue;
            }
            // SAFETY: no later position has this index; and an earlier one is not written by the thread that has it, which has
            // seen this one. So nobody else has the row.
            let to = unsafe { self.table.slice(index * row, row) };
            copy(&self.updates[position * row..][..row], to);
        }
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
