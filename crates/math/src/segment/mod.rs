//! Rows combined by segment: [`reduce`] for sorted segments, [`scatter`] for segments in any order, [`spread`] for the
//! gradient of sums of picked rows.
//!
//! Segment numbers and indices are positions that the caller has made from data. Where a row's segment may lie outside, it says
//! so; everywhere else a position out of range is a bug of the caller and panics.
//!
//! ```
//! use tensorfleet_math::{par::Serial, segment::{self, Rows, Segment}};
//! let table = [1.0f32, 2.0, 3.0, 4.0];
//! let mut out = [0.0; 3];
//! segment::reduce(&Serial, Segment::Mean, &[0, 0, 2], Rows::Picked(&table, &[0, 3, 1]), 1, &mut out);
//! assert_eq!(out, [2.5, 0.0, 2.0]);
//! segment::scatter(&Serial, Segment::Sum, &[2, 0, 2, usize::MAX], &table, 1, &mut out);
//! assert_eq!(out, [2.0, 0.0, 4.0]);
//! ```

mod bincount;
mod fold;
#[cfg(test)]
mod tests;

use crate::disjoint::Disjoint;
use crate::movement::prefetch::{AHEAD, prefetch};
use crate::movement::scatter::{for_each_ahead, for_owned_rows};
use crate::num::Num;
use crate::num::isa::multiversion;
use crate::par::{Par, chunks_mut, rows_mut};

pub use bincount::{bincount, histogram};
use fold::Fold;
pub use fold::SegmentElement;

/// Elements per task.
const GRAIN: usize = 8 * 1024;

/// How the rows of a segment are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Sum; integers wrap.
    Sum,
    /// Sum divided by the number of rows.
    Mean,
    /// Sum divided by the square root of the number of rows.
    SqrtN,
    /// Product; integers wrap.
    Prod,
    /// Largest; NaN if any is.
    Max,
    /// Smallest; NaN if any is.
    Min,
}

/// The rows that are combined.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a, T> {
    /// One after the other.
    All(&'a [T]),
    /// Rows of a table, by position.
    Picked(&'a [T], &'a [usize]),
}

impl<'a, T> Rows<'a, T> {
    #[inline(always)]
    fn get(&self, index: usize, row_len: usize) -> &'a [T] {
        let (table, row) = match self {
            Rows::All(table) => (table, index),
            Rows::Picked(table, indices) => (table, indices[index]),
        };
        &table[row * row_len..(row + 1) * row_len]
    }
}

/// Combines rows whose segments `ids` are in ascending order; row `s` of `out` gets segment `s`. A segment without rows is 1 for
/// products and 0 otherwise. Halves are carried in `f32`.
///
/// # Panics
/// If the type does not have the operation, or there are fewer rows than `ids`.
pub fn reduce<T: SegmentElement>(
    par: &dyn Par,
    op: Segment,
    ids: &[usize],
    rows: Rows<'_, T>,
    row_len: usize,
    out: &mut [T],
) {
    let fold = T::fold(op).expect("the type has no such segment operation");
    if row_len == 0 {
        return;
    }
    let rows_each = 1 + ids.len() * row_len / out.len().max(1);
    let grain = GRAIN.div_ceil(row_len * rows_each);
    rows_mut(par, out, row_len, grain, |first, out| {
        let mut acc = vec![fold.start; row_len];
        let mut at = ids.partition_point(|&id| id < first);
        for (segment, out) in (first..).zip(out.chunks_exact_mut(row_len)) {
            let count = run_of(&ids[at..], segment);
            if count == 0 {
                out.fill(fold.empty);
                continue;
            }
            acc.fill(fold.start);
            match rows {
                Rows::All(table) => {
                    (fold.widened)(&mut acc, &table[at * row_len..(at + count) * row_len]);
                }
                Rows::Picked(..) => {
                    for index in at..at + count {
                        if index + AHEAD < ids.len() {
                            prefetch(rows.get(index + AHEAD, row_len));
                        }
                        (fold.widened)(&mut acc, rows.get(index, row_len));
                    }
                }
            }
            finish::<T>(op, count, &mut acc);
            for (out, acc) in out.iter_mut().zip(&acc) {
                *out = T::from_acc(*acc);
            }
            at += count;
        }
    });
}

/// How many of ascending `ids` are `segment`, the first of which is none smaller. Most segments are short, a few very long.
fn run_of(ids: &[usize], segment: usize) -> usize {
    let mut probe = 1;
    while ids.get(probe).is_some_and(|&id| id == segment) {
        probe *= 2;
    }
    let near = &ids[..ids.len().min(probe + 1)];
    near.partition_point(|&id| id <= segment)
}

fn finish<T: Num>(op: Segment, count: usize, acc: &mut [T::Acc]) {
    let divisor = match op {
        Segment::Mean => count as f64,
        Segment::SqrtN => (count as f64).sqrt(),
        _ => return,
    };
    let divisor = T::Acc::from_f64(divisor);
    for acc in acc {
        *acc = acc.div(divisor);
    }
}

/// Combines rows into the segments that `ids` name, in any order; rows with a segment that `out` does not have are passed over.
/// A segment without rows is 0 for sums, 1 for products, the lowest finite value for `Max` and the highest for `Min`.
///
/// # Panics
/// If the type does not have the operation, the operation divides, or `data` is not as many rows as `ids`.
pub fn scatter<T: SegmentElement>(
    par: &dyn Par,
    op: Segment,
    ids: &[usize],
    data: &[T],
    row_len: usize,
    out: &mut [T],
) {
    assert!(
        !matches!(op, Segment::Mean | Segment::SqrtN),
        "segments in any order are not counted"
    );
    let fold: Fold<T> = T::fold(op).expect("the type has no such segment operation");
    assert_eq!(data.len(), ids.len() * row_len, "rows of data");
    chunks_mut(par, out, 4 * GRAIN, |_, out| out.fill(fold.bound));
    if row_len == 0 {
        return;
    }
    let segments = out.len() / row_len;
    let table = Disjoint::new(out);
    for_owned_rows(par, ids, row_len, &|owned| {
        // SAFETY: this task alone has the segment, by `for_owned_rows`; the slice is gone before the next is made.
        let row = |id: usize| unsafe { table.slice(id * row_len, row_len) };
        for_each_ahead(
            owned,
            |position| {
                let id = ids[position];
                if id < segments {
                    prefetch(row(id));
                }
            },
            |position| {
                let id = ids[position];
                if id < segments {
                    let from = &data[position * row_len..(position + 1) * row_len];
                    (fold.in_place)(row(id), from);
                }
            },
        );
    });
}

/// Adds to row `indices[i]` of `out`, which starts as zeros, row `ids[i]` of `grad` times `scales[ids[i]]`, for each `i`.
///
/// # Panics
/// If a position is out of range or the lengths do not fit.
pub fn spread<T: Num>(
    par: &dyn Par,
    grad: &[T],
    scales: &[T::Acc],
    (ids, indices): (&[usize], &[usize]),
    row_len: usize,
    out: &mut [T],
) {
    assert_eq!(ids.len(), indices.len(), "a segment for each index");
    chunks_mut(par, out, 4 * GRAIN, |_, out| out.fill(T::ZERO));
    if row_len == 0 {
        return;
    }
    let table = Disjoint::new(out);
    for_owned_rows(par, indices, row_len, &|owned| {
        // SAFETY: this task alone has the row, by `for_owned_rows`; the slice is gone before the next is made.
        let row = |index: usize| unsafe { table.slice(index * row_len, row_len) };
        for_each_ahead(
            owned,
            |position| prefetch(row(indices[position])),
            |position| {
                let id = ids[position];
                let from = &grad[id * row_len..(id + 1) * row_len];
                add_scaled(scales[id], from, row(indices[position]));
            },
        );
    });
}

#[inline(always)]
fn add_scaled_body<T: Num>(scale: T::Acc, from: &[T], into: &mut [T]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into = T::from_acc(into.to_acc().add(scale.mul(from.to_acc())));
    }
}

multiversion! { fn add_scaled<T: Num>(scale: T::Acc, from: &[T], into: &mut [T]) = add_scaled_body; }
