//! Products with one row or one column: bound by reading the matrix once.

use super::simd::{Kernels, Real};
use super::{Epilogue, Job, scratch};
use crate::par::{Par, chunks_mut};

/// Elements of the matrix that make a task worth a thread.
const TASK: usize = 64 << 10;

/// Whether the product is a matrix times a vector that this module handles.
pub(super) fn applies<T>(job: &Job<'_, T>) -> bool {
    job.dims.m == 1 || job.dims.n == 1
}

/// Runs a product with `m == 1` or `n == 1`.
pub(super) fn run<T: Real>(par: &dyn Par, kernels: &Kernels<T>, job: Job<'_, T>) {
    let (m, n, k) = (job.dims.m, job.dims.n, job.dims.k);
    let len = m * n;
    // As y = M·x: `lines` says that a row of M, the operand of one y, is contiguous.
    let (matrix, lines, vector, step) = if m == 1 {
        (job.b, job.b.transposed, job.a, job.a.strides().1)
    } else {
        (job.a, !job.a.transposed, job.b, job.b.strides().0)
    };
    scratch::with(0, k, |room: &mut [T]| {
        let x: &[T] = if step == 1 {
            &vector.data[..k]
        } else {
            for (x, v) in room.iter_mut().zip(vector.data.iter().step_by(step)) {
                *x = *v;
            }
            room
        };
        let grain = (TASK / k).max(64).next_multiple_of(16);
        let times = |first: usize, y: &mut [T]| {
            if lines {
                let rows = &matrix.data[first * matrix.stride..];
                assert!((y.len() - 1) * matrix.stride + k <= rows.len());
                // SAFETY: `y.len()` rows of `k = x.len()` elements were checked just now.
                unsafe { (kernels.dot)(x, rows.as_ptr(), matrix.stride, y) };
            } else {
                y.fill(T::ZERO);
                let columns = &matrix.data[first..];
                assert!((k - 1) * matrix.stride + y.len() <= columns.len());
                // SAFETY: `k = x.len()` rows of `y.len()` elements were checked just now.
                unsafe { (kernels.axpy)(x, columns.as_ptr(), matrix.stride, y) };
            }
        };
        let plain = job.alpha == T::ONE && job.beta == T::ZERO;
        if plain && (m == 1 || job.c_stride == 1) {
            chunks_mut(par, &mut job.c[..len], grain, |first, y| {
                times(first, y);
                finish(&job.epilogue, m == 1, first, y);
            });
            return;
        }
        scratch::with(1, len, |y: &mut [T]| {
            chunks_mut(par, y, grain, times);
            let step = if m == 1 { 1 } else { job.c_stride };
            for (c, y) in job.c.iter_mut().step_by(step).zip(&mut *y) {
                let y = job.alpha.times(*y);
                *c = if job.beta == T::ZERO {
                    y
                } else {
                    y.plus(job.beta.times(*c))
                };
            }
            for row in job.c.chunks_mut(job.c_stride).take(m) {
                job.epilogue.apply(0, &mut row[..n]);
            }
        });
    });
}

/// Applies the epilogue to a run of a row, or to a run of rows of one element.
fn finish<T: Real>(epilogue: &Epilogue<'_, T>, row: bool, first: usize, y: &mut [T]) {
    match epilogue {
        Epilogue::None => {}
        _ if row => epilogue.apply(first, y),
        _ => y.chunks_mut(1).for_each(|y| epilogue.apply(0, y)),
    }
}
