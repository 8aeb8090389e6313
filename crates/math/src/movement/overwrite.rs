//! Rows overwritten by index.
//!
//! The last row given for an index wins, so the others need not be written at all; those that win go to different places, and
//! any thread may write any of them: the updates are read in order, which is what the hardware foresees.

use super::index::{BadIndex, Index, check_indices};
use super::mover::copy_bytes;
use super::prefetch::{AHEAD, prefetch};
use super::scatter::{Updates, for_rows, scatter};
use super::{by_size, stream};
use crate::disjoint::Disjoint;
use crate::gemm::scratch;
use crate::par::Par;

/// Bytes of updates below which one thread does it all.
const SERIAL: usize = 16 * 1024;
/// Bytes of updates per task.
const GRAIN: usize = 32 * 1024;
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
        write_winners(par, dst, row, indices, &beaten(indices, rows), updates);
        Ok(())
    })
}

/// For each position whether its index comes again later; the indices are below `rows`.
fn beaten<I: Index>(indices: &[I], rows: usize) -> Vec<bool> {
    let mut beaten = vec![false; indices.len()];
    scratch::with(0, rows.div_ceil(32), |seen: &mut [i32]| {
        seen.fill(0);
        for (beaten, index) in beaten.iter_mut().zip(indices).rev() {
            let row = index.position();
            let word = &mut seen[row / 32];
            *beaten = *word >> (row % 32) & 1 == 1;
            *word |= 1 << (row % 32);
        }
    });
    beaten
}

/// Writes the rows that are not beaten; the indices are good.
fn write_winners<I: Index>(
    par: &dyn Par,
    dst: &mut [u8],
    row: usize,
    indices: &[I],
    beaten: &[bool],
    updates: &[u8],
) {
    let streams = stream::pays(dst, row);
    let table = Disjoint::new(dst);
    par.for_each(indices.len(), GRAIN.div_ceil(row), &|range| {
        let place = |position: usize| {
            let first = indices[position].position() * row;
            // SAFETY: of the positions with this index only one is not beaten, and only one task has it; others do not write
            // or read the row.
            unsafe { table.slice(first, row) }
        };
        for position in range.clone() {
            let ahead = position + AHEAD;
            if !streams && ahead < range.end && !beaten[ahead] {
                prefetch(place(ahead));
            }
            if beaten[position] {
                continue;
            }
            let from = &updates[position * row..(position + 1) * row];
            if streams {
                stream::copy(from, place(position));
            } else {
                copy_bytes(from, place(position));
            }
        }
        if streams {
            stream::finish();
        }
    });
}
