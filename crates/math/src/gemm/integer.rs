//! Integer products, wrapping: rows of C gather multiples of rows of B, a block of the depth at a time.

use super::{Element, Job, Operand};
use crate::num::isa::multiversion;
use crate::par::{Par, rows_mut};

/// Rows of B that are used while they are in the cache.
const DEPTH: usize = 64;
/// Multiply-adds that make a task worth a thread.
const TASK: usize = 1 << 18;

/// Runs one checked product.
pub(super) fn run<T: Element>(par: &dyn Par, job: Job<'_, T>) {
    let (m, n, k) = (job.dims.m, job.dims.n, job.dims.k);
    // Plain rows of B keep the inner loop contiguous.
    let turned: Vec<T>;
    let b = if job.b.transposed {
        turned = (0..k * n)
            .map(|i| job.b.data[i % n * job.b.stride + i / n])
            .collect();
        Operand::new(&turned, n)
    } else {
        job.b
    };
    let (a_row, a_step) = job.a.strides();
    let block = |first: usize, rows: &mut [T], stride: usize| {
        for row in rows.chunks_mut(stride) {
            for x in &mut row[..n] {
                *x = if job.beta == T::ZERO {
                    T::ZERO
                } else {
                    job.beta.times(*x)
                };
            }
        }
        for begin in (0..k).step_by(DEPTH) {
            for (i, row) in rows.chunks_mut(stride).enumerate() {
                let x = |p: usize| {
                    let x = job.a.data[(first + i) * a_row + p * a_step];
                    job.alpha.times(x)
                };
                let from = |p: usize| &b.data[p * b.stride..][..n];
                let (row, end) = (&mut row[..n], k.min(begin + DEPTH));
                let fours = begin + (end - begin) / 4 * 4;
                for p in (begin..fours).step_by(4) {
                    let at = [p, p + 1, p + 2, p + 3];
                    add_four_times(row, at.map(x), at.map(from));
                }
                for p in fours..end {
                    add_times(row, x(p), from(p));
                }
            }
        }
        for row in rows.chunks_mut(stride) {
            job.epilogue.apply(0, &mut row[..n]);
        }
    };
    let end = (m - 1) * job.c_stride + n;
    let (whole, last) = job.c[..end].split_at_mut(end - n);
    let grain = (TASK / (n * k)).max(1);
    rows_mut(par, whole, job.c_stride, grain, |first, rows| {
        block(first, rows, job.c_stride)
    });
    block(m - 1, last, n);
}

multiversion! {
    /// `to += x · from`
    pub(crate) fn add_times<T: Element>(to: &mut [T], x: T, from: &[T]) = add_times_body;
}

multiversion! {
    /// `to += x · from` for four at a time, which reads and writes `to` a quarter as often.
    fn add_four_times<T: Element>(to: &mut [T], x: [T; 4], from: [&[T]; 4]) = add_four_body;
}

#[inline(always)]
fn add_four_body<T: Element>(to: &mut [T], x: [T; 4], from: [&[T]; 4]) {
    let [a, b, c, d] = from.map(|from| &from[..to.len()]);
    for (i, to) in to.iter_mut().enumerate() {
        let first = x[0].times(a[i]).plus(x[1].times(b[i]));
        let second = x[2].times(c[i]).plus(x[3].times(d[i]));
        *to = to.plus(first).plus(second);
    }
}

#[inline(always)]
fn add_times_body<T: Element>(to: &mut [T], x: T, from: &[T]) {
    for (to, &y) in to.iter_mut().zip(from) {
        *to = to.plus(x.times(y));
    }
}
