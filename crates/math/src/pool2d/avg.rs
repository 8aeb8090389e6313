//! The average of each window.

use std::ops::Range;

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
    let grain = GRAIN.div_ceil(work.max(1));
    if !sums_of_columns_pay(shape) {
        return rows_mut(par, out, row_len, grain, |first, out| {
            direct_rows(shape, input, first, out);
        });
    }
    rows_mut(par, out, row_len, grain, |first, out| {
        let mut sums = vec![T::Acc::ZERO; shape.in_row_len()];
        let mut pixel = vec![T::Acc::ZERO; shape.channels];
        for (row, out) in (first..).zip(out.chunks_exact_mut(row_len)) {
            avg_row(shape, input, row, &mut sums, &mut pixel, out);
        }
    });
}

/// Whether the sums of each column's elements are worth a row in memory, as so many windows share them or a pixel is too short
/// for vectors.
fn sums_of_columns_pay(shape: &Pool2d) -> bool {
    shape.channels < FEW
        || shape.out_cols * shape.window_cols > 3 * shape.in_cols + shape.window_cols
}

/// Channels summed together.
const LANES: usize = 32;
/// As many of what is left over.
const FEW: usize = 4;

multiversion! {
    fn direct_rows<T: Float>(shape: &Pool2d, input: &[T], first: usize, out: &mut [T]) = direct_rows_body;
}

/// Output rows from `first` on, one window at a time, whose sums live in registers.
#[inline(always)]
fn direct_rows_body<T: Float>(shape: &Pool2d, input: &[T], first: usize, out: &mut [T]) {
    let (len, channels) = (shape.in_row_len(), shape.channels);
    for (row, out) in (first..).zip(out.chunks_exact_mut(shape.out_row_len())) {
        let image = row / shape.out_rows * shape.in_rows;
        let rows = shape.rows(row % shape.out_rows);
        let input = &input[(image + rows.start) * len..(image + rows.end) * len];
        for (col, out) in out.chunks_exact_mut(channels).enumerate() {
            let cols = shape.cols(col);
            let window = (cols.start * channels..cols.end * channels, rows.len());
            let mut channel = 0;
            while channel + LANES <= channels {
                average::<T, LANES>(input, len, &window, channel, out);
                channel += LANES;
            }
            while channel + FEW <= channels {
                average::<T, FEW>(input, len, &window, channel, out);
                channel += FEW;
            }
            while channel < channels {
                average::<T, 1>(input, len, &window, channel, out);
                channel += 1;
            }
        }
    }
}

/// The average of one window in `N` channels from `channel` on; summed as [`avg_row_body`] does, each column for itself.
#[inline(always)]
fn average<T: Float, const N: usize>(
    input: &[T],
    len: usize,
    (cols, rows): &(Range<usize>, usize),
    channel: usize,
    out: &mut [T],
) {
    let mut sums = [T::Acc::ZERO; N];
    let channels = out.len();
    for col in cols.clone().step_by(channels) {
        let mut column = [T::Acc::ZERO; N];
        for row in 0..*rows {
            let pixel = input[row * len + col + channel..].first_chunk::<N>();
            let pixel = pixel.expect("a whole block");
            for lane in 0..N {
                column[lane] = column[lane].add(pixel[lane].to_acc());
            }
        }
        for lane in 0..N {
            sums[lane] = sums[lane].add(column[lane]);
        }
    }
    let count = rows * (cols.len() / channels);
    let out = out[channel..]
        .first_chunk_mut::<N>()
        .expect("a whole block");
    let divisor = T::Acc::from_f64(count as f64);
    if count.is_power_of_two() {
        // Exactly the quotient, and sooner.
        let share = T::Acc::ONE.div(divisor);
        for lane in 0..N {
            out[lane] = T::from_acc(sums[lane].mul(share));
        }
    } else {
        for lane in 0..N {
            out[lane] = T::from_acc(sums[lane].div(divisor));
        }
    }
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
