//! Softmax of short rows, turned: columns lie one behind the other, so that each vector holds as many rows as it has lanes.

use super::rows::{Native, Rows};
use crate::num::isa::Isa;

/// Rows of at most this many columns are turned.
pub(super) const NARROW: usize = 32;
/// Rows turned at a time.
const SIDE: usize = 16;

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
    let mut turned = [[T::ZERO; SIDE]; NARROW];
    let turned = &mut turned[..columns];
    let blocks = x.chunks(SIDE * columns).zip(out.chunks_mut(SIDE * columns));
    for (block, (x, out)) in blocks.enumerate() {
        turn(x, turned);
        let maxima = shift(turned);
        for x in turned.as_flattened_mut() {
            *x = T::exp::<I>(*x);
        }
        let sums = sums(turned);
        finish(block * SIDE, turned, maxima, sums);
        turn_back(turned, out);
    }
}

/// Subtracts its maximum from each row; a NaN takes no part in it.
#[inline(always)]
fn shift<T: Native>(turned: &mut [[T; SIDE]]) -> [T; SIDE] {
    let mut maxima = [T::LOWEST; SIDE];
    for column in turned.iter() {
        for side in 0..SIDE {
            let (max, x) = (maxima[side], column[side]);
            maxima[side] = if x > max { x } else { max };
        }
    }
    for column in turned {
        for side in 0..SIDE {
            column[side] = column[side].sub(maxima[side]);
        }
    }
    maxima
}

#[inline(always)]
fn sums<T: Native>(turned: &[[T; SIDE]]) -> [T; SIDE] {
    let mut sums = [T::ZERO; SIDE];
    for column in turned {
        for side in 0..SIDE {
            sums[side] = sums[side].add(column[side]);
        }
    }
    sums
}

/// Turns at most `SIDE` rows; what is missing of the last keeps its values.
#[inline(always)]
fn turn<T: Copy>(x: &[T], turned: &mut [[T; SIDE]]) {
    let columns = turned.len();
    if x.len() == SIDE * columns {
        let rows: [&[T]; SIDE] = std::array::from_fn(|row| &x[row * columns..][..columns]);
        for (i, column) in turned.iter_mut().enumerate() {
            for side in 0..SIDE {
                column[side] = rows[side][i];
            }
        }
        return;
    }
    for (side, row) in x.chunks_exact(columns).enumerate() {
        for (column, &x) in turned.iter_mut().zip(row) {
            column[side] = x;
        }
    }
}

/// The way back.
#[inline(always)]
fn turn_back<T: Copy>(turned: &[[T; SIDE]], out: &mut [T]) {
    for (side, row) in out.chunks_exact_mut(turned.len()).enumerate() {
        for (out, column) in row.iter_mut().zip(turned) {
            *out = column[side];
        }
    }
}
