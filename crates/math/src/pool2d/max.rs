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
    let rows = shape.rows(row % shape.out_rows);
    let rows = &input[(image + rows.start) * len..(image + rows.end) * len];
    keep_largest(rows, len, tallest);
    for (col, out) in out.chunks_exact_mut(channels).enumerate() {
        let cols = shape.cols(col);
        let pixels = &tallest[cols.start * channels..cols.end * channels];
        keep_largest(pixels, channels, out);
    }
}

/// Writes the largest of each column of `rows`.
///
/// Columns are taken in blocks whose maxima live in registers: in memory, an element that stays would become a masked store,
/// which is slow.
#[inline(always)]
fn keep_largest<T: PoolElement>(rows: &[T], row_len: usize, out: &mut [T]) {
    const LANES: usize = 32;
    let (blocks, rest) = out.as_chunks_mut::<LANES>();
    let first = blocks.len() * LANES;
    for (i, out) in blocks.iter_mut().enumerate() {
        let mut best = [T::BOTTOM; LANES];
        for row in rows.chunks_exact(row_len) {
            let row: &[T; LANES] = row[i * LANES..].first_chunk().expect("a whole block");
            for lane in 0..LANES {
                best[lane] = keep_larger(best[lane], row[lane]);
            }
        }
        *out = best;
    }
    for (i, out) in rest.iter_mut().enumerate() {
        let column = rows.chunks_exact(row_len).map(|row| row[first + i]);
        *out = column.fold(T::BOTTOM, keep_larger);
    }
}
