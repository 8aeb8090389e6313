//! The gradient of the gradient of the largest element of each window.

use super::geometry::Pool2d;
use super::max::{GRAIN, PoolElement};
use crate::par::{Par, rows_mut};

/// Writes the gradient of [`super::max_pool_grad`] for its gradient input: of `grad`, shaped as the input, the elements at
/// the maxima.
///
/// As in TensorFlow a window's maximum is its first element, in row order, that equals the element of `output`; where there is
/// none (the window holds nothing but NaN, or `output` is not what was pooled) zero is written.
///
/// # Panics
/// If a slice has another length than the shapes say.
pub fn max_pool_grad_grad<T: PoolElement>(
    par: &dyn Par,
    shape: &Pool2d,
    input: &[T],
    output: &[T],
    grad: &[T],
    out: &mut [T],
) {
    shape.check(input.len(), out.len());
    assert_eq!(output.len(), out.len(), "pooled");
    assert_eq!(grad.len(), input.len(), "gradient of the gradient");
    let (row_len, channels) = (shape.out_row_len(), shape.channels);
    if row_len == 0 {
        return;
    }
    let work = shape.in_row_len() * shape.window_rows;
    let grain = GRAIN.div_ceil(work.max(1));
    rows_mut(par, out, row_len, grain, |first, out| {
        for (row, out) in (first..).zip(out.chunks_exact_mut(row_len)) {
            let image = row / shape.out_rows * shape.in_rows;
            let rows = shape.rows(row % shape.out_rows);
            let output = &output[row * row_len..(row + 1) * row_len];
            for (at, (out, largest)) in out.iter_mut().zip(output).enumerate() {
                let cols = shape.cols(at / channels);
                let place = |row: usize, col: usize| {
                    ((image + row) * shape.in_cols + col) * channels + at % channels
                };
                let mut places = rows
                    .clone()
                    .flat_map(|row| cols.clone().map(move |col| place(row, col)));
                let found = places.find(|place| input[*place] == *largest);
                *out = found.map_or(T::ZERO, |place| grad[place]);
            }
        }
    });
}
