//! Complex products as four real ones on the real and imaginary planes.

use num_complex::Complex;

use super::simd::Real;
use super::{Dims, Element, Epilogue, Job, Operand, gemm};
use crate::par::Par;

/// Runs one checked product.
pub(super) fn run<T: Real>(par: &dyn Par, job: Job<'_, Complex<T>>)
where
    Complex<T>: Element,
{
    let Dims { m, n, .. } = job.dims;
    let (a_re, a_im) = planes(job.a.data);
    let (b_re, b_im) = planes(job.b.data);
    let mut re = vec![T::ZERO; m * n];
    let mut im = vec![T::ZERO; m * n];
    let add = |a: &[T], b: &[T], alpha: T, beta: T, c: &mut [T]| {
        let a = Operand {
            data: a,
            stride: job.a.stride,
            transposed: job.a.transposed,
        };
        let b = Operand {
            data: b,
            stride: job.b.stride,
            transposed: job.b.transposed,
        };
        gemm(par, job.dims, alpha, a, b, beta, c, n, Epilogue::None);
    };
    add(&a_re, &b_re, T::ONE, T::ZERO, &mut re);
    add(&a_im, &b_im, -T::ONE, T::ONE, &mut re);
    add(&a_re, &b_im, T::ONE, T::ZERO, &mut im);
    add(&a_im, &b_re, T::ONE, T::ONE, &mut im);
    let plain = job.alpha == Element::ONE && job.beta == Element::ZERO;
    for (i, row) in job.c.chunks_mut(job.c_stride).take(m).enumerate() {
        let row = &mut row[..n];
        for (j, c) in row.iter_mut().enumerate() {
            let x = Complex::new(re[i * n + j], im[i * n + j]);
            *c = if plain {
                x
            } else if job.beta == Element::ZERO {
                job.alpha.times(x)
            } else {
                job.alpha.times(x).plus(job.beta.times(*c))
            };
        }
        job.epilogue.apply(0, row);
    }
}

fn planes<T: Copy>(data: &[Complex<T>]) -> (Vec<T>, Vec<T>) {
    data.iter().map(|x| (x.re, x.im)).unzip()
}
