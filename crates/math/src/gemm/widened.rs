//! Half and bfloat16 products: widened to f32, multiplied there, rounded once.

use super::{Element, Epilogue, Job, Operand, driver};
use crate::num::convert::HalfOrSingle;
use crate::num::{from_f32_slice, to_f32_slice};
use crate::par::{Par, chunks_mut, rows_mut};

/// Elements a thread converts at least.
const GRAIN: usize = 16 << 10;

/// Runs one checked product.
pub(super) fn run<T: Element + HalfOrSingle>(par: &dyn Par, job: Job<'_, T>) {
    let (m, n) = (job.dims.m, job.dims.n);
    let a = widen(par, job.a.data);
    let b = widen(par, job.b.data);
    let mut c = vec![0.0f32; m * n];
    let mut alpha = [0.0];
    to_f32_slice(&[job.alpha], &mut alpha);
    let wide = Job {
        dims: job.dims,
        alpha: alpha[0],
        a: Operand {
            data: &a,
            stride: job.a.stride,
            transposed: job.a.transposed,
        },
        b: Operand {
            data: &b,
            stride: job.b.stride,
            transposed: job.b.transposed,
        },
        beta: 0.0,
        c: &mut c,
        c_stride: n,
        epilogue: Epilogue::None,
    };
    driver::run(par, wide);
    let beta = job.beta;
    let end = (m - 1) * job.c_stride + n;
    let (whole, last) = job.c[..end].split_at_mut(end - n);
    let finish = |i: usize, row: &mut [T]| {
        let wide = &c[i * n..][..n];
        if beta == <T as Element>::ZERO {
            from_f32_slice(wide, row);
        } else {
            let mut old = vec![0.0; n];
            to_f32_slice(&[beta], &mut old);
            let beta = old[0];
            to_f32_slice(row, &mut old);
            for (old, x) in old.iter_mut().zip(wide) {
                *old = x + beta * *old;
            }
            from_f32_slice(&old, row);
        }
        job.epilogue.apply(0, row);
    };
    rows_mut(
        par,
        whole,
        job.c_stride,
        (GRAIN / job.c_stride).max(1),
        |first, rows| {
            for (i, row) in rows.chunks_mut(job.c_stride).enumerate() {
                finish(first + i, &mut row[..n]);
            }
        },
    );
    finish(m - 1, last);
}

fn widen<T: HalfOrSingle>(par: &dyn Par, from: &[T]) -> Vec<f32> {
    let mut to = vec![0.0; from.len()];
    chunks_mut(par, &mut to, GRAIN, |first, to| {
        to_f32_slice(&from[first..], to)
    });
    to
}
