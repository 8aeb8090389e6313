//! Half and bfloat16 products: widened to f32, multiplied there, rounded once.

use half::{bf16, f16};

use super::{Element, Epilogue, Job, Operand, driver};
use crate::par::{Par, chunks_mut, rows_mut};

/// Elements a thread converts at least.
const GRAIN: usize = 16 << 10;

/// A type that is computed in f32.
pub(super) trait Half: Element {
    fn widen(self) -> f32;
    fn round(x: f32) -> Self;
}

impl Half for f16 {
    fn widen(self) -> f32 {
        self.to_f32()
    }
    fn round(x: f32) -> Self {
        Self::from_f32(x)
    }
}

impl Half for bf16 {
    fn widen(self) -> f32 {
        self.to_f32()
    }
    fn round(x: f32) -> Self {
        Self::from_f32(x)
    }
}

/// Runs one checked product.
pub(super) fn run<T: Half>(par: &dyn Par, job: Job<'_, T>) {
    let (m, n) = (job.dims.m, job.dims.n);
    let a = widen(par, job.a.data);
    let b = widen(par, job.b.data);
    let mut c = vec![0.0f32; m * n];
    let wide = Job {
        dims: job.dims,
        alpha: job.alpha.widen(),
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
        for (to, x) in row.iter_mut().zip(&c[i * n..]) {
            let old = if beta == T::ZERO {
                0.0
            } else {
                beta.widen() * to.widen()
            };
            *to = T::round(x + old);
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

fn widen<T: Half>(par: &dyn Par, from: &[T]) -> Vec<f32> {
    let mut to = vec![0.0; from.len()];
    chunks_mut(par, &mut to, GRAIN, |first, to| {
        for (to, x) in to.iter_mut().zip(&from[first..]) {
            *to = x.widen();
        }
    });
    to
}
