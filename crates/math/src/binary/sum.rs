//! Sums of several inputs: `AddN`, `y += a x`, scaling.

use crate::broadcast::BLOCK;
use crate::num::Num;
use crate::num::isa::multiversion;
use crate::par::{Par, chunks_mut};

const GRAIN: usize = 32 << 10;

/// Writes the sum of `inputs`, added from the first to the last, to `out`.
///
/// Halves are added in `f32` and rounded once.
///
/// # Panics
/// If there is no input or the lengths differ.
pub fn add_n<T: Num>(par: &dyn Par, inputs: &[&[T]], out: &mut [T]) {
    let (first, rest) = inputs.split_first().expect("add_n needs an input");
    assert!(
        inputs.iter().all(|x| x.len() == out.len()),
        "lengths of inputs and output differ"
    );
    // What is wide enough is added straight away, not by way of a block.
    if let ([second, third], true) = (rest, const { size_of::<T>() == size_of::<T::Acc>() }) {
        return chunks_mut(par, out, GRAIN, |at, out| {
            let range = at..at + out.len();
            let [x, y, z] = [first, second, third].map(|input| &input[range.clone()]);
            add_three(x, y, z, out);
        });
    }
    chunks_mut(par, out, GRAIN, |at, out| {
        let mut sum = [T::Acc::ZERO; BLOCK];
        let mut at = at;
        for out in out.chunks_mut(BLOCK) {
            let range = at..at + out.len();
            let sum = &mut sum[..out.len()];
            widen(&first[range.clone()], sum);
            for x in rest {
                accumulate(&x[range.clone()], sum);
            }
            narrow(sum, out);
            at = range.end;
        }
    });
}

/// Waits for memory, whatever the vectors.
fn add_three<T: Num>(x: &[T], y: &[T], z: &[T], out: &mut [T]) {
    let n = out.len();
    let (x, y, z) = (&x[..n], &y[..n], &z[..n]);
    for i in 0..n {
        out[i] = T::from_acc(x[i].to_acc().add(y[i].to_acc()).add(z[i].to_acc()));
    }
}

fn widen<T: Num>(x: &[T], sum: &mut [T::Acc]) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum = x.to_acc();
    }
}

fn narrow<T: Num>(sum: &[T::Acc], out: &mut [T]) {
    for (out, sum) in out.iter_mut().zip(sum) {
        *out = T::from_acc(*sum);
    }
}

#[inline(always)]
fn accumulate_loop<T: Num>(x: &[T], sum: &mut [T::Acc]) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum = sum.add(x.to_acc());
    }
}

multiversion! { fn accumulate<T: Num>(x: &[T], sum: &mut [T::Acc]) = accumulate_loop; }

/// `y += a x`.
///
/// # Panics
/// If the lengths differ.
pub fn axpy<T: Num>(par: &dyn Par, a: T, x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "lengths differ");
    chunks_mut(par, y, GRAIN, |at, y| axpy_run(a, &x[at..at + y.len()], y));
}

#[inline(always)]
fn axpy_loop<T: Num>(a: T, x: &[T], y: &mut [T]) {
    let a = a.to_acc();
    for (y, x) in y.iter_mut().zip(x) {
        *y = T::from_acc(y.to_acc().add(a.mul(x.to_acc())));
    }
}

multiversion! { fn axpy_run<T: Num>(a: T, x: &[T], y: &mut [T]) = axpy_loop; }

/// `y *= a`.
pub fn scale<T: Num>(par: &dyn Par, a: T, y: &mut [T]) {
    chunks_mut(par, y, GRAIN, |_, y| scale_run(a, y));
}

#[inline(always)]
fn scale_loop<T: Num>(a: T, y: &mut [T]) {
    for y in y {
        *y = y.mul(a);
    }
}

multiversion! { fn scale_run<T: Num>(a: T, y: &mut [T]) = scale_loop; }
