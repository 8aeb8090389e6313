//! Where the largest element of each window is, and what follows from it.
//!
//! Of equal elements the first in row order counts; a NaN counts only if it is the first of its window.

use super::geometry::Pool2d;
use super::max::PoolElement;
use crate::disjoint::Disjoint;
use crate::movement::{BadIndex, check_indices};
use crate::num::Num;
use crate::num::isa::multiversion;
use crate::par::Par;

/// Channels looked at together.
const LANES: usize = 16;

/// Writes the largest element of each window and its index in the input: in its image, or in the whole batch.
///
/// # Panics
/// If a slice has another length than the shapes say.
pub fn max_pool_with_argmax<T: PoolElement>(
    par: &dyn Par,
    shape: &Pool2d,
    include_batch_in_index: bool,
    input: &[T],
    out: &mut [T],
    argmax: &mut [i64],
) {
    shape.check(input.len(), out.len());
    assert_eq!(argmax.len(), out.len(), "indices");
    let image = shape.in_rows * shape.in_row_len();
    let (out, argmax) = (Disjoint::new(out), Disjoint::new(argmax));
    for_windows(par, shape, input, &|at, best, places| {
        // SAFETY: each task has channels or images of its own, and visits each window once.
        let out = unsafe { out.slice(at, best.len()) };
        out.copy_from_slice(best);
        // SAFETY: as above.
        let argmax = unsafe { argmax.slice(at, best.len()) };
        for (argmax, &place) in argmax.iter_mut().zip(places) {
            *argmax = if include_batch_in_index {
                place as i64
            } else {
                (place % image) as i64
            };
        }
    });
}

/// Adds each element of `grad` to the element of `out`, which starts as zeros, that its index names.
///
/// Without `include_batch_in_index` an index is one in the image that the element of `grad` belongs to.
///
/// # Panics
/// If a slice has another length than the shapes say.
pub fn max_pool_grad_with_argmax<T: Num>(
    shape: &Pool2d,
    include_batch_in_index: bool,
    grad: &[T],
    argmax: &[i64],
    out: &mut [T],
) -> Result<(), BadIndex> {
    shape.check(out.len(), grad.len());
    assert_eq!(argmax.len(), grad.len(), "indices");
    let image = shape.in_rows * shape.in_row_len();
    let limit = if include_batch_in_index {
        out.len()
    } else {
        image
    };
    check_indices(argmax, limit)?;
    out.fill(T::ZERO);
    let per_image = (shape.out_rows * shape.out_row_len()).max(1);
    for (i, (&grad, &index)) in grad.iter().zip(argmax).enumerate() {
        let base = if include_batch_in_index {
            0
        } else {
            i / per_image * image
        };
        let out = &mut out[base + index as usize];
        *out = out.add(grad);
    }
    Ok(())
}

/// Called for each window and up to [`LANES`] channels with the first output element, the maxima, and their places in the input.
type Visit<'a, T> = dyn Fn(usize, &[T], &[usize]) + Sync + 'a;

/// Visits all windows; a task has all windows of some channels of one image.
fn for_windows<T: PoolElement>(par: &dyn Par, shape: &Pool2d, input: &[T], visit: &Visit<'_, T>) {
    let blocks = shape.channels.div_ceil(LANES);
    if shape.output_len() == 0 || shape.input_len() == 0 {
        return;
    }
    par.for_each(shape.batch * blocks, 1, &|range| {
        for task in range {
            let first = task % blocks * LANES;
            let lanes = LANES.min(shape.channels - first);
            for row in 0..shape.out_rows {
                visit_row(shape, input, (task / blocks, row), (first, lanes), visit);
            }
        }
    });
}

multiversion! {
    fn visit_row<T: PoolElement>(
        shape: &Pool2d, input: &[T], row: (usize, usize), channels: (usize, usize), visit: &Visit<'_, T>,
    ) = visit_row_body;
}

#[inline(always)]
fn visit_row_body<T: PoolElement>(
    shape: &Pool2d,
    input: &[T],
    (image, row): (usize, usize),
    (first, lanes): (usize, usize),
    visit: &Visit<'_, T>,
) {
    let rows = shape.rows(row);
    for col in 0..shape.out_cols {
        let cols = shape.cols(col);
        if rows.is_empty() || cols.is_empty() {
            continue;
        }
        let pixel = |row: usize, col: usize| {
            ((image * shape.in_rows + row) * shape.in_cols + col) * shape.channels + first
        };
        let mut best = [T::BOTTOM; LANES];
        let mut places = [pixel(rows.start, cols.start); LANES];
        best[..lanes].copy_from_slice(&input[places[0]..places[0] + lanes]);
        for row in rows.clone() {
            for col in cols.clone() {
                let place = pixel(row, col);
                let pixel = &input[place..place + lanes];
                match <&[T; LANES]>::try_from(pixel) {
                    Ok(pixel) => keep_larger(pixel, place, &mut best, &mut places),
                    Err(_) => keep_larger(pixel, place, &mut best, &mut places),
                }
            }
        }
        for (lane, place) in places.iter_mut().enumerate() {
            *place += lane;
        }
        let at = ((image * shape.out_rows + row) * shape.out_cols + col) * shape.channels + first;
        visit(at, &best[..lanes], &places[..lanes]);
    }
}

/// Keeps the larger elements and where their pixel begins.
#[inline(always)]
fn keep_larger<T: PoolElement>(
    pixel: &[T],
    place: usize,
    best: &mut [T; LANES],
    places: &mut [usize; LANES],
) {
    for ((&x, best), best_place) in pixel.iter().zip(best).zip(places) {
        let larger = x > *best;
        *best = if larger { x } else { *best };
        *best_place = if larger { place } else { *best_place };
    }
}
