//! The position of the largest or smallest element along one axis.

use super::Axis;
use crate::num::Real;
use crate::par::{Par, chunks_mut};

/// Elements per task.
const GRAIN: usize = 16 << 10;

/// Columns that are looked at together.
const STRIP: usize = 256;

/// Writes the first position of the largest element along `axis`. NaNs are passed over; 0 if there is nothing else.
///
/// # Panics
/// If the lengths are not those of `axis`.
pub fn arg_max<T: Real>(par: &dyn Par, axis: Axis, x: &[T], out: &mut [i64]) {
    arg(par, axis, x, out, T::LOWEST, |x, best| x > best);
}

/// Writes the first position of the smallest element along `axis`. NaNs are passed over; 0 if there is nothing else.
///
/// # Panics
/// If the lengths are not those of `axis`.
pub fn arg_min<T: Real>(par: &dyn Par, axis: Axis, x: &[T], out: &mut [i64]) {
    arg(par, axis, x, out, T::HIGHEST, |x, best| x < best);
}

fn arg<T: Real>(
    par: &dyn Par,
    axis: Axis,
    x: &[T],
    out: &mut [i64],
    worst: T,
    better: impl Fn(T, T) -> bool + Sync + Copy,
) {
    assert_eq!(
        axis.elements(),
        x.len(),
        "the input's length is not that of the axis"
    );
    assert_eq!(
        axis.outer * axis.inner,
        out.len(),
        "the output's length is not that of the axis"
    );
    let piece = axis.len * axis.inner;
    if piece == 0 {
        return out.fill(0);
    }
    if axis.inner == 1 {
        chunks_mut(par, out, GRAIN.div_ceil(piece), |first, out| {
            for (out, row) in out.iter_mut().zip(x[first * piece..].chunks(piece)) {
                *out = position(row, worst, better) as i64;
            }
        });
        return;
    }
    let grain = GRAIN.div_ceil(axis.len).next_multiple_of(STRIP);
    chunks_mut(par, out, grain, |mut at, mut out| {
        while !out.is_empty() {
            let (outer, column) = (at / axis.inner, at % axis.inner);
            let width = STRIP.min(axis.inner - column).min(out.len());
            let (strip, behind) = out.split_at_mut(width);
            let piece = &x[outer * piece..(outer + 1) * piece];
            columns((piece, axis.inner), column, strip, worst, better);
            out = behind;
            at += width;
        }
    });
}

/// The first position of the best of a row: the best value of each lane first, which vectorises, then where it stands.
fn position<T: Real>(row: &[T], worst: T, better: impl Fn(T, T) -> bool) -> usize {
    const LANES: usize = 16;
    let mut lanes = [worst; LANES];
    let mut blocks = row.chunks_exact(LANES);
    for block in &mut blocks {
        for i in 0..LANES {
            lanes[i] = if better(block[i], lanes[i]) {
                block[i]
            } else {
                lanes[i]
            };
        }
    }
    let rest = blocks.remainder().iter();
    let best = lanes
        .iter()
        .chain(rest)
        .fold(worst, |best, &x| if better(x, best) { x } else { best });
    if best == worst {
        return 0;
    }
    row.iter().position(|&x| x == best).unwrap_or(0)
}

/// The first positions of the best of some columns of a matrix with rows of `row_len`, at most [`STRIP`] of them.
fn columns<T: Real>(
    (matrix, row_len): (&[T], usize),
    column: usize,
    out: &mut [i64],
    worst: T,
    better: impl Fn(T, T) -> bool,
) {
    let mut best = [worst; STRIP];
    let best = &mut best[..out.len()];
    out.fill(0);
    // Positions of half the width are compared as fast as the elements; rows beyond them start anew.
    const ROWS: usize = 1 << 30;
    for (part, rows) in matrix.chunks(ROWS.saturating_mul(row_len)).enumerate() {
        let mut found = [u32::MAX; STRIP];
        let found = &mut found[..out.len()];
        for (index, row) in (0u32..).zip(rows.chunks_exact(row_len)) {
            let row = &row[column..column + best.len()];
            for ((best, found), &x) in best.iter_mut().zip(found.iter_mut()).zip(row) {
                let wins = better(x, *best);
                *best = if wins { x } else { *best };
                *found = if wins { index } else { *found };
            }
        }
        for (out, found) in out.iter_mut().zip(found) {
            if *found != u32::MAX {
                *out = (part * ROWS) as i64 + i64::from(*found);
            }
        }
    }
}
