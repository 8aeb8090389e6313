//! Rows updated by index, in the order of the indices.

use super::index::{BadIndex, Index, check_indices};
use super::prefetch::{AHEAD, prefetch};
use super::{Item, by_size};
use crate::disjoint::Disjoint;
use crate::par::Par;

/// Elements of updates below which one thread does it all.
const SERIAL: usize = 16 * 1024;

/// Indices looked through at a time.
const LOOK: usize = 4 * 1024;

/// What is applied to the rows.
#[derive(Clone, Copy, Debug)]
pub enum Updates<'a, T> {
    /// A row for each index.
    Rows(&'a [T]),
    /// One value for all elements of all rows.
    Scalar(&'a T),
}

/// Applies `update(element, operand)` to the elements of the rows that `indices` name, in their order.
///
/// Rows are shared out among threads by number, so a row named twice is updated in order. Nothing is written if an index is bad.
///
/// # Panics
/// If `dst` or the updates are not whole rows, or there are not as many update rows as indices.
pub fn scatter<T: Item, I: Index>(
    par: &dyn Par,
    dst: &mut [T],
    row_len: usize,
    indices: &[I],
    updates: Updates<'_, T>,
    update: impl Fn(&mut T, &T) + Sync,
) -> Result<(), BadIndex> {
    if let Updates::Rows(updates) = updates {
        assert_eq!(updates.len(), indices.len() * row_len, "rows of updates");
    }
    let operands = |position: usize| match updates {
        Updates::Rows(updates) => &updates[position * row_len..(position + 1) * row_len],
        Updates::Scalar(_) => &[],
    };
    let apply = |row: &mut [T], position: usize| match updates {
        Updates::Rows(_) => {
            for (element, operand) in row.iter_mut().zip(operands(position)) {
                update(element, operand);
            }
        }
        Updates::Scalar(operand) => row.iter_mut().for_each(|element| update(element, operand)),
    };
    for_rows(par, dst, row_len, indices, operands, apply)
}

/// Calls `apply(row, position)` for the row that each index names, in their order; `operands` tells what it will read.
pub(crate) fn for_rows<'a, T: Item + 'a, I: Index>(
    par: &dyn Par,
    dst: &mut [T],
    row_len: usize,
    indices: &[I],
    operands: impl Fn(usize) -> &'a [T] + Sync,
    apply: impl Fn(&mut [T], usize) + Sync,
) -> Result<(), BadIndex> {
    let rows = dst.len().checked_div(row_len).unwrap_or(0);
    assert_eq!(rows * row_len, dst.len(), "destination is not whole rows");
    if row_len == 0 || indices.is_empty() {
        return Ok(());
    }
    check_indices(indices, rows)?;
    let table = Disjoint::new(dst);
    for_owned_rows(par, indices, row_len, &|own| {
        // SAFETY: this task alone has the row, by `for_owned_rows`; the slice is gone before the next is made.
        let row = |position: usize| unsafe {
            table.slice(indices[position].position() * row_len, row_len)
        };
        // Operands in order are found by the hardware.
        let skips = matches!(own, Owned::Some(_));
        for_each_ahead(
            own,
            |position| {
                prefetch(row(position));
                if skips {
                    prefetch(operands(position));
                }
            },
            |position| apply(row(position), position),
        );
    });
    Ok(())
}

/// Overwrites all elements of the rows that `indices` name with one `size`-byte value.
///
/// # Panics
/// As [`scatter`], in bytes, if `size` is not 1, 2, 4, 8 or 16, and if `value` is not `size` bytes.
pub fn scatter_fill_bytes<I: Index>(
    par: &dyn Par,
    size: usize,
    dst: &mut [u8],
    row_len: usize,
    indices: &[I],
    value: &[u8],
) -> Result<(), BadIndex> {
    assert_eq!(value.len(), size, "value of another size");
    by_size!(size, Cell => {
        let value = Updates::Scalar(&Cell::of(value)[0]);
        scatter(par, Cell::of_mut(dst), row_len, indices, value, Clone::clone_from)
    })
}

/// Shares `indices` out so that all with the same value go to one task, in order, and calls `body` with their positions, some
/// at a time.
///
/// The indices must be good. Tasks never get the same row, which is what makes exclusive access to rows sound.
pub(crate) fn for_owned_rows<I: Index>(
    par: &dyn Par,
    indices: &[I],
    row_len: usize,
    body: &(dyn Fn(Owned<'_>) + Sync),
) {
    if par.threads() == 1
        || indices.len() * row_len < SERIAL
        || u32::try_from(indices.len()).is_err()
    {
        return body(Owned::All(indices.len()));
    }
    // More parts than threads, so that a thread that comes late does not hold up the rest. Each part looks through all
    // indices: cheaper than to sort them first on one thread, as two looks are all that a thread has to do.
    let parts = 2 * par.threads();
    par.for_each(parts, 1, &|range| {
        let mut positions = [0_u32; LOOK];
        for part in range {
            for (number, some) in indices.chunks(LOOK).enumerate() {
                let first = number * LOOK;
                let mut own = 0;
                for (i, index) in some.iter().enumerate() {
                    // Always written, counted if it is ours: which it is cannot be foreseen by the processor.
                    positions[own] = (first + i) as u32;
                    own += usize::from(owner(index.position(), parts) == part);
                }
                body(Owned::Some(&positions[..own]));
            }
        }
    });
}

/// Which of `parts` tasks has the row: scattered, as popular rows tend to be neighbours.
#[inline(always)]
fn owner(row: usize, parts: usize) -> usize {
    let hash = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((hash * parts as u64) >> 32) as usize
}

/// Positions of indices that belong to one task, in order.
pub(crate) enum Owned<'a> {
    /// All positions below this.
    All(usize),
    /// These.
    Some(&'a [u32]),
}

/// Calls `body` for each position, having called `announce` for it [`AHEAD`] positions before.
#[inline(always)]
pub(crate) fn for_each_ahead(
    rows: Owned<'_>,
    announce: impl Fn(usize),
    mut body: impl FnMut(usize),
) {
    match rows {
        Owned::All(len) => {
            for position in 0..len {
                if position + AHEAD < len {
                    announce(position + AHEAD);
                }
                body(position);
            }
        }
        Owned::Some(own) => {
            for (i, &position) in own.iter().enumerate() {
                if let Some(&next) = own.get(i + AHEAD) {
                    announce(next as usize);
                }
                body(position as usize);
            }
        }
    }
}
