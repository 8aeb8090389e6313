//! Row indices that come from data: checked before anything is read or written by them.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::num::isa::multiversion;
use crate::par::{Par, chunks_mut};

/// Rows of coordinates per task.
const FLATTEN_GRAIN: usize = 16 << 10;

/// An integer type for indices.
pub trait Index: Copy + Send + Sync {
    /// The value for messages.
    fn value(self) -> i64;

    /// The value as a position; a negative one becomes larger than any length.
    fn position(self) -> usize;
}

macro_rules! index {
    ($($ty:ty),*) => {
        $(impl Index for $ty {
            #[inline(always)]
            fn value(self) -> i64 {
                self as i64
            }

            #[inline(always)]
            fn position(self) -> usize {
                self as usize
            }
        })*
    };
}

index!(u8, u16, u32, usize, i8, i16, i32, i64);

/// An index outside of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIndex {
    /// Where in the indices it stands: the first bad one.
    pub position: usize,
    /// The index.
    pub value: i64,
}

/// Checks that all `indices` are at least 0 and below `limit`.
pub fn check_indices<I: Index>(indices: &[I], limit: usize) -> Result<(), BadIndex> {
    if limit <= isize::MAX as usize && all_below(indices, limit) {
        return Ok(());
    }
    let bad = |index: &I| index.position() >= limit;
    match indices.iter().position(bad) {
        None => Ok(()),
        Some(position) => Err(BadIndex {
            position,
            value: indices[position].value(),
        }),
    }
}

multiversion! { fn all_below<I: Index>(indices: &[I], limit: usize) -> bool = all_below_body; }

/// No early end, and nothing that vectors do not have: the common case, all good, then runs at full speed. Below a limit that is
/// no "negative" number are those whose difference to it is one and that are none themselves.
#[inline(always)]
fn all_below_body<I: Index>(indices: &[I], limit: usize) -> bool {
    let below = |index: &I| index.position().wrapping_sub(limit) & !index.position();
    let all = indices
        .iter()
        .fold(usize::MAX, |all, index| all & below(index));
    all > isize::MAX as usize
}

/// Turns rows of `depth` coordinates into row numbers of an array whose leading dimensions are `dims` (`GatherNd`, `ScatterNd`).
///
/// A bad index is reported by its row; the value is its first coordinate out of range.
///
/// # Panics
/// If `indices` is not a whole number of coordinate rows.
pub fn flatten_coordinates<I: Index>(
    par: &dyn Par,
    indices: &[I],
    dims: &[usize],
) -> Result<Vec<i64>, BadIndex> {
    let depth = dims.len();
    if depth == 0 {
        return Ok(Vec::new());
    }
    assert!(
        indices.len().is_multiple_of(depth),
        "{} coordinates are no rows of {depth}",
        indices.len()
    );
    let mut rows = vec![0; indices.len() / depth];
    let all_good = AtomicBool::new(dims.iter().all(|extent| *extent <= isize::MAX as usize));
    chunks_mut(par, &mut rows, FLATTEN_GRAIN, |first, rows| {
        let indices = &indices[first * depth..(first + rows.len()) * depth];
        let good = match depth {
            1 => flatten_1(indices, dims, rows),
            2 => flatten_2(indices, dims, rows),
            3 => flatten_3(indices, dims, rows),
            _ => flatten_any(indices, dims, rows),
        };
        if !good {
            all_good.store(false, Ordering::Relaxed);
        }
    });
    if all_good.into_inner() {
        return Ok(rows);
    }
    for (position, row) in indices.chunks_exact(depth).enumerate() {
        let mut pairs = row.iter().zip(dims);
        if let Some((bad, _)) = pairs.find(|(index, extent)| index.position() >= **extent) {
            let value = bad.value();
            return Err(BadIndex { position, value });
        }
    }
    Ok(rows)
}

multiversion! { fn flatten_1<I: Index>(indices: &[I], dims: &[usize], rows: &mut [i64]) -> bool = flatten_1_body; }
multiversion! { fn flatten_2<I: Index>(indices: &[I], dims: &[usize], rows: &mut [i64]) -> bool = flatten_2_body; }
multiversion! { fn flatten_3<I: Index>(indices: &[I], dims: &[usize], rows: &mut [i64]) -> bool = flatten_3_body; }

#[inline(always)]
fn flatten_1_body<I: Index>(indices: &[I], dims: &[usize], rows: &mut [i64]) -> bool {
    flatten::<I, 1>(indices, dims, rows)
}

#[inline(always)]
fn flatten_2_body<I: Index>(indices: &[I], dims: &[usize], rows: &mut [i64]) -> bool {
    flatten::<I, 2>(indices, dims, rows)
}

#[inline(always)]
fn flatten_3_body<I: Index>(indices: &[I], dims: &[usize], rows: &mut [i64]) -> bool {
    flatten::<I, 3>(indices, dims, rows)
}

/// Writes row numbers, and says whether all coordinates were inside, as [`all_below_body`] finds it.
#[inline(always)]
fn flatten<I: Index, const DEPTH: usize>(indices: &[I], dims: &[usize], rows: &mut [i64]) -> bool {
    let mut all = usize::MAX;
    for (to, row) in rows.iter_mut().zip(indices.as_chunks::<DEPTH>().0) {
        let mut at = 0usize;
        for axis in 0..DEPTH {
            let index = row[axis].position();
            all &= index.wrapping_sub(dims[axis]) & !index;
            at = at.wrapping_mul(dims[axis]).wrapping_add(index);
        }
        *to = at as i64;
    }
    all > isize::MAX as usize
}

fn flatten_any<I: Index>(indices: &[I], dims: &[usize], rows: &mut [i64]) -> bool {
    let mut all_good = true;
    for (to, row) in rows.iter_mut().zip(indices.chunks_exact(dims.len())) {
        let mut at = 0usize;
        for (index, extent) in row.iter().zip(dims) {
            all_good &= index.position() < *extent;
            at = at.wrapping_mul(*extent).wrapping_add(index.position());
        }
        *to = at as i64;
    }
    all_good
}

/// The positions of each of `count` partitions, in order (`DynamicPartition`).
pub fn partition_positions<I: Index>(
    partitions: &[I],
    count: usize,
) -> Result<Vec<Vec<i64>>, BadIndex> {
    check_indices(partitions, count)?;
    let mut sizes = vec![0; count];
    for partition in partitions {
        sizes[partition.position()] += 1;
    }
    let mut positions: Vec<_> = sizes.into_iter().map(Vec::with_capacity).collect();
    for (position, partition) in partitions.iter().enumerate() {
        positions[partition.position()].push(position as i64);
    }
    Ok(positions)
}
