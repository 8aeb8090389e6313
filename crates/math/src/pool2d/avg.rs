//! The average of each window.

use super::geometry::Pool2d;
use super::max::GRAIN;
use crate::num::isa::multiversion;
use crate::num::{Float, Num};
use crate::par::{Par, rows_mut};

/// Writes the average of each window over the elements that lie inside the input. Halves are summed in `f32`.
///
/// # Panics
/// If a slice has another length than the shapes say.
pub fn avg_pool<T: Float>(par: &dyn Par, shape: &Pool2d, input: &[T], out: &mut [T]) {
    shape.check(input.len(), out.len());
    let row_len = shape.out_row_len();
    if row_len == 0 {
        return;
    }
    let work = shape.in_row_len() * shape.window_rows;
    rows_mut(
        par,
        out,
        row_len,
        GRAIN.div_ceil(work.max(1)),
        |first, out| {
            let mut sums = vec![T::Acc::ZERO; shape.in_row_len()];
            let mut pixel = vec![T::Acc::ZERO; shape.channels];
            for (row, out) in (first..).zip(out.chunks_exact_mut(row_len)) {
                avg_row(shape, input, row, &mut sums, &mut pixel, out);
            }
        },
    );
}

multiversion! {
    fn avg_row<T: Float>(
        shape: &Pool2d, input: &[T], row: usize, sums: &mut [T::Acc], pixel: &mut [T::Acc], out: &mut [T],
    ) = avg_row_body;
}

/// One output row: first down the columns, along whole rows of input, then across.
#[inline(always)]
fn avg_row_body<T: Float>(
    shape: &Pool2d,
    input: &[T],
    row: usize,
    sums: &mut [T::Acc],
    pixel: &mut [T::Acc],
    out: &mut [T],
) {
    let image = row / shape.out_rows * shape.in_rows;
    let (len, channels) = (shape.in_row_len(), shape.channels);
    let rows = shape.rows(row % shape.out_rows);
    sums.fill(T::Acc::ZERO);
    for row in rows.clone() {
        let input = &input[(image + row) * len..(image + row + 1) * len];
        for (sum, &x) in sums.iter_mut().zip(input) {
            *sum = sum.add(x.to_acc());
        }
    }
    for (col, out) in out.chunks_exact_mut(channels).enumerate() {
        let cols = shape.cols(col);
        let count = T::Acc::from_f64((rows.len() * cols.len()) as f64);
        pixel.fill(T::Acc::ZERO);
        for col in cols {
            let column = &sums[col * channels..(col + 1) * channels];
            for (sum, &x) in pixel.iter_mut().zip(column) {
                *sum = sum.add(x);
            }
        }
        for (out, &sum) in out.iter_mut().zip(&*pixel) {
            *out = T::from_acc(sum.div(count));
        }
    }
}

/// Writes the gradient of [`avg_pool`] for its input: each window's gradient in equal parts.
///
/// # Panics
/// As [`avg_pool`].
pub fn avg_pool_grad<T: Float>(par: &dyn Par, shape: &Pool2d, grad: &[T], out: &mut [T]) {
    shape.check(out.len(), grad.len());
    let row_len = shape.in_row_len();
    if row_len == 0 {
        return;
    }
    rows_mut(par, out, row_len, GRAIN.div_ceil(row_len), |first, out| {
        let mut sums = vec![T::Acc::ZERO; row_len];
        for (row, out) in (first..).zip(out.chunks_exact_mut(row_len)) {
            grad_row(shape, grad, row, &mut sums, out);
        }
    });
}

multiversion! {
    fn grad_row<T: Float>(shape: &Pool2d, grad: &[T], row: usize, sums: &mut [T::Acc], out: &mut [T]) = grad_row_body;
}

/// One row of the input's gradient, from the output rows that see it.
#[inline(always)]
fn grad_row_body<T: Float>(
    shape: &Pool2d,
    grad: &[T],
    row: usize,
    sums: &mut [T::Acc],
    out: &mut [T],
) {
    let image = row / shape.in_rows * shape.out_rows;
    let (len, channels) = (shape.out_row_len(), shape.channels);
    sums.fill(T::Acc::ZERO);
    for out_row in shape.out_rows_of(row % shape.in_rows) {
        let height = shape.rows(out_row).len();
        let grad = &grad[(image + out_row) * len..(image + out_row + 1) * len];
        for (out_col, grad) in grad.chunks_exact(channels).enumerate() {
            let cols = shape.cols(out_col);
            let share = T::Acc::from_f64(1.0 / (height * cols.len()) as f64);
            for col in cols {
                let sums = &mut sums[col * channels..(col + 1) * channels];
                for (sum, &x) in sums.iter_mut().zip(grad) {
                    *sum = sum.add(x.to_acc().mul(share));
                }
            }
        }
    }
    for (out, &sum) in out.iter_mut().zip(&*sums) {
        *out = T::from_acc(sum);
    }
}
