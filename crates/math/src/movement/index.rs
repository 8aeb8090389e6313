//! Row indices that come from data: checked before anything is read or written by them.

use crate::num::isa::multiversion;

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
pub fn flatten_coordinates<I: Index>(indices: &[I], dims: &[usize]) -> Result<Vec<i64>, BadIndex> {
    let depth = dims.len();
    if depth == 0 {
        return Ok(Vec::new());
    }
    assert!(
        indices.len().is_multiple_of(depth),
        "{} coordinates are no rows of {depth}",
        indices.len()
    );
    let rows = indices.chunks_exact(depth).enumerate();
    rows.map(|(position, coordinates)| {
        let mut row = 0_usize;
        for (&coordinate, &extent) in coordinates.iter().zip(dims) {
            if coordinate.position() >= extent {
                let value = coordinate.value();
                return Err(BadIndex { position, value });
            }
            row = row * extent + coordinate.position();
        }
        Ok(row as i64)
    })
    .collect()
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
