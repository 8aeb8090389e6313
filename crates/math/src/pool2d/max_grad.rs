//! The gradient of the largest element of each window.
//!
//! Each window is walked twice: once for which of its pixels, by number, is the largest, and once to hand out the gradient, zero
//! to all pixels but that one. Twice the steps, but all of them for many channels at once; to go straight to the
//! largest would be one step for each channel.

use std::ops::Range;

use super::geometry::Pool2d;
use super::max::PoolElement;
use crate::disjoint::Disjoint;
use crate::num::isa::multiversion;
use crate::par::Par;

/// Channels looked at together.
const LANES: usize = 16;

/// Writes the gradient of [`super::max_pool`] for its input: each window's gradient goes to its largest element.
///
/// Of equal elements the first in row order counts; a NaN counts only if it is the first of its window.
///
/// # Panics
/// If a slice has another length than the shapes say.
pub fn max_pool_grad<T: PoolElement>(
    par: &dyn Par,
    shape: &Pool2d,
    input: &[T],
    grad: &[T],
    out: &mut [T],
) {
    shape.check(input.len(), grad.len());
    assert_eq!(out.len(), input.len(), "gradient of the input");
    if out.is_empty() {
        return;
    }
    let blocks = shape.channels.div_ceil(LANES);
    let out = Disjoint::new(out);
    par.for_each(shape.batch * blocks, 1, &|range| {
        for task in range {
            let first = task % blocks * LANES;
            let channels = first..(first + LANES).min(shape.channels);
            some_channels(shape, (input, grad), task / blocks, channels, &out);
        }
    });
}

multiversion! {
    fn some_channels<T: PoolElement>(
        shape: &Pool2d, from: (&[T], &[T]), image: usize, channels: Range<usize>, out: &Disjoint<'_, T>,
    ) = some_channels_body;
}

/// All windows of one image, some of its channels, of which the caller sees to it that no other task has them.
#[inline(always)]
fn some_channels_body<T: PoolElement>(
    shape: &Pool2d,
    from: (&[T], &[T]),
    image: usize,
    channels: Range<usize>,
    out: &Disjoint<'_, T>,
) {
    // A number that the compiler knows makes loops over channels vectors.
    match channels.len() {
        LANES => walk(shape, from, image, (channels.start, LANES), out),
        lanes => walk(shape, from, image, (channels.start, lanes), out),
    }
}

#[inline(always)]
fn walk<T: PoolElement>(
    shape: &Pool2d,
    (input, grad): (&[T], &[T]),
    image: usize,
    (first, lanes): (usize, usize),
    out: &Disjoint<'_, T>,
) {
    let pixel = |row: usize, col: usize| {
        ((image * shape.in_rows + row) * shape.in_cols + col) * shape.channels + first
    };
    // SAFETY: the channels of this image are the task's own, and each piece is gone before the next is made.
    let out = |place: usize| unsafe { out.slice(place, lanes) };
    for row in 0..shape.in_rows {
        for col in 0..shape.in_cols {
            out(pixel(row, col)).fill(T::ZERO);
        }
    }
    for row in 0..shape.out_rows {
        let rows = shape.rows(row);
        for col in 0..shape.out_cols {
            let cols = shape.cols(col);
            if rows.is_empty() || cols.is_empty() {
                continue;
            }
            let (mut best, mut winner) = ([T::ZERO; LANES], [0_u32; LANES]);
            let start = pixel(rows.start, cols.start);
            best[..lanes].copy_from_slice(&input[start..start + lanes]);
            let mut number = 0;
            for row in rows.clone() {
                for col in cols.clone() {
                    let place = pixel(row, col);
                    let pixel = &input[place..place + lanes];
                    for lane in 0..lanes {
                        let larger = pixel[lane] > best[lane];
                        best[lane] = if larger { pixel[lane] } else { best[lane] };
                        winner[lane] = if larger { number } else { winner[lane] };
                    }
                    number += 1;
                }
            }
            let at =
                ((image * shape.out_rows + row) * shape.out_cols + col) * shape.channels + first;
            let grad = &grad[at..at + lanes];
            let mut number = 0;
            for row in rows.clone() {
                for col in cols.clone() {
                    let out = out(pixel(row, col));
                    for lane in 0..lanes {
                        let share = if winner[lane] == number {
                            grad[lane]
                        } else {
                            T::ZERO
                        };
                        out[lane] = out[lane].add(share);
                    }
                    number += 1;
                }
            }
        }
    }
}
