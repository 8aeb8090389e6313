//! The largest element of each window.

use half::{bf16, f16};

use super::geometry::Pool2d;
use crate::num::Real;
use crate::num::isa::multiversion;
use crate::par::{Par, rows_mut};

/// Elements per task.
pub(super) const GRAIN: usize = 8 * 1024;

/// A type that can be pooled.
pub trait PoolElement: Real {
    /// The lowest finite value, where a maximum begins: TensorFlow pools nothing but NaN and -∞ to it.
    const BOTTOM: Self;
}

macro_rules! pool_elements {
    ($($ty:ty),*) => {
        $(impl PoolElement for $ty {
            const BOTTOM: Self = <$ty>::MIN;
        })*
    };
}

pool_elements!(f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

/// The larger one; `best` if `x` is NaN.
#[inline(always)]
pub(super) fn keep_larger<T: Real>(best: T, x: T) -> T {
    if x > best { x } else { best }
}

/// Writes the largest element of each window.
///
/// # Panics
/// If a slice has another length than the shapes say.
pub fn max_pool<T: PoolElement>(par: &dyn Par, shape: &Pool2d, input: &[T], out: &mut [T]) {
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
            let mut tallest = vec![T::BOTTOM; shape.in_row_len()];
            for (row, out) in (first..).zip(out.chunks_exact_mut(row_len)) {
                max_row(shape, input, row, &mut tallest, out);
            }
        },
    );
}

multiversion! {
    fn max_row<T: PoolElement>(shape: &Pool2d, input: &[T], row: usize, tallest: &mut [T], out: &mut [T]) = max_row_body;
}

/// One output row: first down the columns, along whole rows of input, then across.
#[inline(always)]
fn max_row_body<T: PoolElement>(
    shape: &Pool2d,
    input: &[T],
    row: usize,
    tallest: &mut [T],
    out: &mut [T],
) {
    let image = row / shape.out_rows * shape.in_rows;
    let (len, channels) = (shape.in_row_len(), shape.channels);
    tallest.fill(T::BOTTOM);
    for row in shape.rows(row % shape.out_rows) {
        let input = &input[(image + row) * len..(image + row + 1) * len];
        for (best, &x) in tallest.iter_mut().zip(input) {
            *best = keep_larger(*best, x);
        }
    }
    for (col, out) in out.chunks_exact_mut(channels).enumerate() {
        out.fill(T::BOTTOM);
        for col in shape.cols(col) {
            let column = &tallest[col * channels..(col + 1) * channels];
            for (best, &x) in out.iter_mut().zip(column) {
                *best = keep_larger(*best, x);
            }
        }
    }
}
