//! The position of the largest or smallest element along one axis.

use super::Axis;
use crate::num::Real;
use crate::par::{Par, rows_mut};

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
    let grain = 16_384usize.div_ceil(piece);
    rows_mut(par, out, axis.inner, grain, |first, out| {
        let pieces = x[first * piece..].chunks(piece);
        if axis.inner == 1 {
            for (out, row) in out.iter_mut().zip(pieces) {
                *out = position(row, worst, better) as i64;
            }
        } else {
            let mut best = vec![worst; axis.inner];
            for (out, piece) in out.chunks_mut(axis.inner).zip(pieces) {
                best.fill(worst);
                out.fill(0);
                columns(piece, &mut best, out, better);
            }
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

fn columns<T: Real>(piece: &[T], best: &mut [T], out: &mut [i64], better: impl Fn(T, T) -> bool) {
    for (index, row) in piece.chunks(best.len()).enumerate() {
        let index = index as i64;
        for ((best, out), &x) in best.iter_mut().zip(out.iter_mut()).zip(row) {
            let wins = better(x, *best);
            *best = if wins { x } else { *best };
            *out = if wins { index } else { *out };
        }
    }
}
