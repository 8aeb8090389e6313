//! Softmax, log-softmax and softmax cross-entropy over the rows of a matrix.
//!
//! Rows are taken in blocks that fit the first-level cache, so that the exponential runs over whole blocks and short rows
//! cost no more per element than long ones. Halves are computed in `f32`.
//!
//! ```
//! use tensorfleet_math::{par::Serial, softmax};
//! let logits = [1.0f32, 2.0, 3.0, 3.0];
//! let mut out = [0.0; 4];
//! softmax::softmax(&Serial, &logits, 2, &mut out);
//! assert_eq!(out[2..], [0.5, 0.5]);
//! let (mut loss, mut backprop) = ([0.0; 2], [0.0; 4]);
//! softmax::sparse_cross_entropy(&Serial, &logits, &[1i64, 0], 2, &mut loss, &mut backprop)?;
//! assert_eq!(backprop[2..], [-0.5, 0.5]);
//! # Ok::<(), softmax::BadLabel>(())
//! ```

mod entropy;
mod narrow;
mod rows;
#[cfg(test)]
mod tests;

use crate::par::{Par, rows_mut};

use narrow::{NARROW, SIDE};

pub use entropy::{BadLabel, cross_entropy, sparse_cross_entropy};
pub use rows::SoftmaxElement;

/// Elements that are worth a thread of their own.
const GRAIN: usize = 8192;

/// Writes `e^x / Σ e^x` for each row of `columns` elements.
///
/// # Panics
/// If the lengths differ or are no whole number of rows.
pub fn softmax<T: SoftmaxElement>(par: &dyn Par, x: &[T], columns: usize, out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    each_block(par, columns, out, |at, out| {
        T::softmax_block(&x[at..at + out.len()], columns, out)
    });
}

/// Writes `x - ln Σ e^x` for each row of `columns` elements.
///
/// # Panics
/// If the lengths differ or are no whole number of rows.
pub fn log_softmax<T: SoftmaxElement>(par: &dyn Par, x: &[T], columns: usize, out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    each_block(par, columns, out, |at, out| {
        T::log_softmax_block(&x[at..at + out.len()], columns, out)
    });
}

/// Runs `body(offset, rows)` over blocks of whole rows, several threads at a time.
fn each_block<T: Send>(
    par: &dyn Par,
    columns: usize,
    out: &mut [T],
    body: impl Fn(usize, &mut [T]) + Sync,
) {
    let rows = block_rows(columns);
    let grain = (GRAIN / columns.max(1)).max(1).next_multiple_of(rows);
    rows_mut(par, out, columns, grain, |first, out| {
        let mut at = first * columns;
        for block in out.chunks_mut(rows * columns) {
            body(at, block);
            at += block.len();
        }
    });
}

/// Rows of a block at most.
const MAX_ROWS: usize = 256;

/// Rows of a block: as many as make about 8 KiB of floats; short ones are turned by so many.
fn block_rows(columns: usize) -> usize {
    let rows = (2048 / columns.max(1)).clamp(1, MAX_ROWS);
    if columns <= NARROW {
        rows - rows % SIDE
    } else {
        rows
    }
}
