//! Softmax of short rows, turned: columns lie one behind the other, so that each vector holds as many rows as it has lanes.

use super::rows::{Native, Rows};
use crate::movement::mover::{BLOCK, Block};
use crate::num::isa::Isa;

/// Rows of at most this many columns are turned.
pub(super) const NARROW: usize = BLOCK;
/// Rows turned at a time. Loops over fewer would be unrolled by the compiler, which then finds no vectors in them.
pub(super) const SIDE: usize = 64;
/// Columns are turned by squares with this edge, so that there may be some too many.
const EDGE: usize = 8;

/// As `softmax_body` for rows of at most [`NARROW`] columns.
#[inline(always)]
pub(super) fn softmax<T: Native, I: Isa>(x: &[T], columns: usize, out: &mut [T]) {
    each::<T, I>(x, columns, out, |_, turned, _, sums| {
        let mut scales = sums;
        for scale in &mut scales {
            *scale = T::ONE.div(*scale);
        }
        for column in turned {
            for side in 0..SIDE {
                column[side] = column[side].mul(scales[side]);
            }
        }
    });
}

/// As `exp_rows` for rows of at most [`NARROW`] columns.
#[inline(always)]
pub(super) fn exp_rows<T: Native, I: Isa>(
    x: &[T],
    columns: usize,
    rows: &mut Rows<T>,
    out: &mut [T],
) {
    each::<T, I>(x, columns, out, |first, _, maxima, sums| {
        let count = SIDE.min(rows.sums.len() - first);
        rows.maxima[first..][..count].copy_from_slice(&maxima[..count]);
        rows.sums[first..][..count].copy_from_slice(&sums[..count]);
    });
}

/// Writes `e^(x - max)` for each row after `finish` has seen it: the first row, the turned ones, their maxima and sums.
#[inline(always)]
fn each<T: Native, I: Isa>(
    x: &[T],
    columns: usize,
    out: &mut [T],
    mut finish: impl FnMut(usize, &mut [[T; SIDE]], [T; SIDE], [T; SIDE]),
) {
    let mut all = [[T::ZERO; SIDE]; NARROW];
    let mut rows = [[T::ZERO; NARROW]; SIDE];
    for first in (0..x.len() / columns).step_by(SIDE) {
        turn(&x[first * columns..], columns, &mut all);
        let turned = &mut all[..columns];
        let maxima = maxima(turned);
        let sums = exponentials::<T, I>(turned, &maxima);
        finish(first, turned, maxima, sums);
        turn_back(&all, columns, &mut rows, &mut out[first * columns..]);
    }
}

/// The largest element of each row; a NaN takes no part in it.
#[inline(always)]
fn maxima<T: Native>(turned: &[[T; SIDE]]) -> [T; SIDE] {
    let mut maxima = [T::LOWEST; SIDE];
    for column in turned {
        for side in 0..SIDE {
            let (max, x) = (maxima[side], column[side]);
            maxima[side] = if x > max { x } else { max };
        }
    }
    maxima
}

/// Makes `e^(x - max)` of each element, and gives the sum of each row.
#[inline(always)]
fn exponentials<T: Native, I: Isa>(turned: &mut [[T; SIDE]], maxima: &[T; SIDE]) -> [T; SIDE] {
    let mut sums = [T::ZERO; SIDE];
    for column in turned {
        for side in 0..SIDE {
            column[side] = T::exp::<I>(column[side].sub(maxima[side]));
            sums[side] = sums[side].add(column[side]);
        }
    }
    sums
}

/// Turns the first `SIDE` rows, or those that there are.
#[inline(always)]
fn turn<T: Native>(x: &[T], columns: usize, turned: &mut [[T; SIDE]; NARROW]) {
    let mut last = [T::ZERO; BLOCK * NARROW + EDGE];
    for first in (0..SIDE).step_by(BLOCK) {
        let block = Block {
            at: 0,
            stride: columns as isize,
            width: BLOCK,
            rows: columns.next_multiple_of(EDGE),
            row_len: SIDE,
        };
        let x = x.get(first * columns..).unwrap_or_default();
        let turned = &mut turned.as_flattened_mut()[first..];
        if x.len() >= block.run(BLOCK - 1).end {
            T::exchange(block, x, turned);
        } else {
            let len = x.len().min(BLOCK * columns);
            last[..len].copy_from_slice(&x[..len]);
            T::exchange(block, &last, turned);
        }
    }
}

/// The way back, through `rows`. What is written behind a row is overwritten by the next one.
#[inline(always)]
fn turn_back<T: Native>(
    turned: &[[T; SIDE]; NARROW],
    columns: usize,
    rows: &mut [[T; NARROW]; SIDE],
    out: &mut [T],
) {
    let width = columns.next_multiple_of(EDGE);
    for first in (0..SIDE).step_by(BLOCK) {
        let block = Block {
            at: first as isize,
            stride: SIDE as isize,
            width,
            rows: BLOCK,
            row_len: NARROW,
        };
        T::exchange(
            block,
            turned.as_flattened(),
            rows[first..].as_flattened_mut(),
        );
    }
    let starts = (0..out.len()).step_by(columns);
    for (row, start) in rows.iter().zip(starts) {
        match out.get_mut(start..start + width) {
            // A copy of unknown length would be a call.
            Some(out) => {
                let edges = out.as_chunks_mut::<EDGE>().0;
                for (out, edge) in edges.iter_mut().zip(row.as_chunks().0) {
                    *out = *edge;
                }
            }
            None => out[start..start + columns].copy_from_slice(&row[..columns]),
        }
    }
}
