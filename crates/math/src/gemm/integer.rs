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
                for p in begin..k.min(begin + DEPTH) {
                    let x = job
                        .alpha
                        .times(job.a.data[(first + i) * a_row + p * a_step]);
                    add_times(&mut row[..n], x, &b.data[p * b.stride..]);
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

#[inline(always)]
fn add_times_body<T: Element>(to: &mut [T], x: T, from: &[T]) {
    for (to, &y) in to.iter_mut().zip(from) {
        *to = to.plus(x.times(y));
    }
}
