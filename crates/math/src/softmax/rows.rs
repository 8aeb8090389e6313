//! What happens to one block of rows.

use half::{bf16, f16};

use super::MAX_ROWS;
use super::narrow::{self, NARROW};
use crate::movement::mover::Exchange;
use crate::num::convert::HalfOrSingle;
use crate::num::isa::{Isa, multiversion};
use crate::num::{Float, Num, Real, lanes};

/// A float type with softmax.
pub trait SoftmaxElement: Float {
    #[doc(hidden)]
    fn softmax_block(x: &[Self], columns: usize, out: &mut [Self]);
    #[doc(hidden)]
    fn log_softmax_block(x: &[Self], columns: usize, out: &mut [Self]);
    /// Writes the loss of each row and its gradient, for labels given as probabilities.
    #[doc(hidden)]
    fn dense_block(
        x: &[Self],
        labels: &[Self],
        columns: usize,
        loss: &mut [Self],
        backprop: &mut [Self],
    );
    /// Writes the loss of each row and its gradient, for labels given as columns.
    #[doc(hidden)]
    fn sparse_block(
        x: &[Self],
        labels: &[usize],
        columns: usize,
        loss: &mut [Self],
        backprop: &mut [Self],
    );
}

/// The type that a block is computed in.
pub(super) trait Native: Float + Exchange {
    fn exp<I: Isa>(x: Self) -> Self;
    fn ln(x: Self) -> Self;
}

impl Native for f32 {
    #[inline(always)]
    fn exp<I: Isa>(x: f32) -> f32 {
        lanes::exp::<I>(x)
    }
    fn ln(x: f32) -> f32 {
        x.ln()
    }
}

impl Native for f64 {
    #[inline(always)]
    fn exp<I: Isa>(x: f64) -> f64 {
        lanes::exp64::<I>(x)
    }
    fn ln(x: f64) -> f64 {
        x.ln()
    }
}

/// Rows of at least this many columns are worth many accumulators, and a pass of their own.
const LONG: usize = 64;
/// Accumulators of a long row.
const SIDE: usize = 32;

/// What a block needs per row.
pub(super) struct Rows<T> {
    pub(super) maxima: [T; MAX_ROWS],
    pub(super) sums: [T; MAX_ROWS],
}

/// Writes `e^(x - max)` for each row; gives the maximum and the sum of each.
#[inline(always)]
fn exp_rows<T: Native, I: Isa>(x: &[T], columns: usize, out: &mut [T]) -> Rows<T> {
    let mut rows = Rows {
        maxima: [T::ZERO; MAX_ROWS],
        sums: [T::ZERO; MAX_ROWS],
    };
    if columns <= NARROW {
        narrow::exp_rows::<T, I>(x, columns, &mut rows, out);
        return rows;
    }
    if columns < LONG {
        shift_rows(x, columns, &mut rows.maxima, out);
        for x in out.iter_mut() {
            *x = T::exp::<I>(*x);
        }
        sum_rows(out, columns, &mut rows.sums);
        return rows;
    }
    let pairs = x.chunks_exact(columns).zip(out.chunks_exact_mut(columns));
    for (i, (x, out)) in pairs.enumerate() {
        rows.maxima[i] = fold(x, T::LOWEST, keep_larger);
        rows.sums[i] = exp_row::<T, I>(x, rows.maxima[i], out);
    }
    rows
}

#[inline(always)]
fn keep_larger<T: Real>(best: T, x: T) -> T {
    if x > best { x } else { best }
}

/// `x - max` for each row. A NaN takes no part in the maximum; it makes its row NaN by the sum.
#[inline(always)]
fn shift_rows<T: Real>(x: &[T], columns: usize, maxima: &mut [T], out: &mut [T]) {
    let rows = x.chunks_exact(columns).zip(out.chunks_exact_mut(columns));
    for ((x, out), max) in rows.zip(maxima) {
        *max = fold(x, T::LOWEST, keep_larger);
        for (out, &x) in out.iter_mut().zip(x) {
            *out = x.sub(*max);
        }
    }
}

#[inline(always)]
fn sum_rows<T: Num>(x: &[T], columns: usize, sums: &mut [T]) {
    for (x, sum) in x.chunks_exact(columns).zip(sums) {
        *sum = fold(x, T::ZERO, T::add);
    }
}

/// Writes `e^(x - max)` and gives the sum, all in one pass, while each block is in registers.
#[inline(always)]
fn exp_row<T: Native, I: Isa>(x: &[T], max: T, out: &mut [T]) -> T {
    let exp = |x: &[T; SIDE]| {
        let mut block = *x;
        for x in &mut block {
            *x = T::exp::<I>(x.sub(max));
        }
        block
    };
    let mut sums = [T::ZERO; SIDE];
    let (blocks, rest) = x.as_chunks::<SIDE>();
    let (out_blocks, out_rest) = out.as_chunks_mut::<SIDE>();
    for (x, out) in blocks.iter().zip(out_blocks) {
        *out = exp(x);
        for (sum, &x) in sums.iter_mut().zip(&*out) {
            *sum = sum.add(x);
        }
    }
    if !rest.is_empty() {
        // As a whole block too: one by one, its elements would take as long as several.
        let mut last = [max; SIDE];
        last[..rest.len()].copy_from_slice(rest);
        let last = &exp(&last)[..rest.len()];
        out_rest.copy_from_slice(last);
        for (sum, &x) in sums.iter_mut().zip(last) {
            *sum = sum.add(x);
        }
    }
    total(&sums)
}

/// The sum of a row's accumulators. Not inlined: the last additions are of few, and the compiler would cut the accumulators of
/// the loop before into such small vectors too.
#[inline(never)]
fn total<T: Num>(sums: &[T; SIDE]) -> T {
    halves(*sums, T::add)
}

/// Folds with accumulators side by side: many for long rows, few for short ones.
#[inline(always)]
fn fold<T: Copy>(x: &[T], start: T, f: impl Fn(T, T) -> T + Copy) -> T {
    if x.len() >= LONG {
        fold_lanes::<T, SIDE>(x, start, f)
    } else {
        fold_lanes::<T, 4>(x, start, f)
    }
}

#[inline(always)]
fn fold_lanes<T: Copy, const N: usize>(x: &[T], start: T, f: impl Fn(T, T) -> T) -> T {
    let mut acc = [start; N];
    let mut blocks = x.chunks_exact(N);
    for block in &mut blocks {
        for i in 0..N {
            acc[i] = f(acc[i], block[i]);
        }
    }
    for (acc, &x) in acc.iter_mut().zip(blocks.remainder()) {
        *acc = f(*acc, x);
    }
    halves(acc, f)
}

/// Folds accumulators, always the second half into the first.
#[inline(always)]
fn halves<T: Copy, const N: usize>(mut acc: [T; N], f: impl Fn(T, T) -> T) -> T {
    let mut n = N;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            acc[i] = f(acc[i], acc[i + n]);
        }
    }
    acc[0]
}

#[inline(always)]
fn softmax_body<T: Native, I: Isa>(x: &[T], columns: usize, out: &mut [T]) {
    if columns <= NARROW {
        return narrow::softmax::<T, I>(x, columns, out);
    }
    let rows = exp_rows::<T, I>(x, columns, out);
    for (out, &sum) in out.chunks_exact_mut(columns).zip(&rows.sums) {
        let scale = T::ONE.div(sum);
        out.iter_mut().for_each(|x| *x = x.mul(scale));
    }
}

#[inline(always)]
fn log_softmax_body<T: Native, I: Isa>(x: &[T], columns: usize, out: &mut [T]) {
    let rows = exp_rows::<T, I>(x, columns, out);
    let pairs = x.chunks_exact(columns).zip(out.chunks_exact_mut(columns));
    for (i, (x, out)) in pairs.enumerate() {
        let (max, log) = (rows.maxima[i], T::ln(rows.sums[i]));
        for (out, &x) in out.iter_mut().zip(x) {
            *out = x.sub(max).sub(log);
        }
    }
}

#[inline(always)]
fn dense_body<T: Native, I: Isa>(
    x: &[T],
    labels: &[T],
    columns: usize,
    loss: &mut [T],
    backprop: &mut [T],
) {
    let rows = exp_rows::<T, I>(x, columns, backprop);
    let pairs = x.chunks_exact(columns).zip(labels.chunks_exact(columns));
    for (i, ((x, labels), backprop)) in pairs.zip(backprop.chunks_exact_mut(columns)).enumerate() {
        let (max, log, scale) = (
            rows.maxima[i],
            T::ln(rows.sums[i]),
            T::ONE.div(rows.sums[i]),
        );
        loss[i] = loss_row(x, labels, backprop, |x, label, exp| {
            let loss = label.mul(log.sub(x.sub(max)));
            (loss, exp.mul(scale).sub(label))
        });
    }
}

/// Replaces what is in `backprop` by `each(x, label, backprop)`, and gives the sum of the losses that come with it.
#[inline(always)]
fn loss_row<T: Num>(
    x: &[T],
    labels: &[T],
    backprop: &mut [T],
    each: impl Fn(T, T, T) -> (T, T),
) -> T {
    let mut sums = [T::ZERO; SIDE];
    let block = |sums: &mut [T], x: &[T], labels: &[T], backprop: &mut [T]| {
        let inputs = x.iter().zip(labels);
        for ((sum, (&x, &label)), backprop) in sums.iter_mut().zip(inputs).zip(backprop) {
            let (loss, gradient) = each(x, label, *backprop);
            *sum = sum.add(loss);
            *backprop = gradient;
        }
    };
    let (x, x_rest) = x.as_chunks::<SIDE>();
    let (labels, labels_rest) = labels.as_chunks::<SIDE>();
    let (backprop, backprop_rest) = backprop.as_chunks_mut::<SIDE>();
    for ((x, labels), backprop) in x.iter().zip(labels).zip(backprop) {
        block(&mut sums, x, labels, backprop);
    }
    block(&mut sums, x_rest, labels_rest, backprop_rest);
    total(&sums)
}

#[inline(always)]
fn sparse_body<T: Native, I: Isa>(
    x: &[T],
    labels: &[usize],
    columns: usize,
    loss: &mut [T],
    backprop: &mut [T],
) {
    let rows = exp_rows::<T, I>(x, columns, backprop);
    let pairs = x
        .chunks_exact(columns)
        .zip(backprop.chunks_exact_mut(columns));
    for (i, (x, backprop)) in pairs.enumerate() {
        let scale = T::ONE.div(rows.sums[i]);
        backprop.iter_mut().for_each(|x| *x = x.mul(scale));
        backprop[labels[i]] = backprop[labels[i]].sub(T::ONE);
        loss[i] = T::ln(rows.sums[i]).sub(x[labels[i]].sub(rows.maxima[i]));
    }
}

multiversion! { fn softmax<T: Native>(x: &[T], columns: usize, out: &mut [T]) = softmax_body with isa; }
multiversion! { fn log_softmax<T: Native>(x: &[T], columns: usize, out: &mut [T]) = log_softmax_body with isa; }
multiversion! {
    fn dense<T: Native>(x: &[T], labels: &[T], columns: usize, loss: &mut [T], backprop: &mut [T]) = dense_body with isa;
}
multiversion! {
    fn sparse<T: Native>(x: &[T], labels: &[usize], columns: usize, loss: &mut [T], backprop: &mut [T]) = sparse_body with isa;
}

macro_rules! native {
    ($($t:ty),*) => {$(
        impl SoftmaxElement for $t {
            fn softmax_block(x: &[Self], columns: usize, out: &mut [Self]) {
                softmax(x, columns, out);
            }
            fn log_softmax_block(x: &[Self], columns: usize, out: &mut [Self]) {
                log_softmax(x, columns, out);
            }
            fn dense_block(x: &[Self], labels: &[Self], columns: usize, loss: &mut [Self], backprop: &mut [Self]) {
                dense(x, labels, columns, loss, backprop);
            }
            fn sparse_block(x: &[Self], labels: &[usize], columns: usize, loss: &mut [Self], backprop: &mut [Self]) {
                sparse(x, labels, columns, loss, backprop);
            }
        }
    )*};
}

native!(f32, f64);

macro_rules! half {
    ($($t:ty),*) => {$(
        impl SoftmaxElement for $t {
            fn softmax_block(x: &[Self], columns: usize, out: &mut [Self]) {
                let mut result = vec![0.0; out.len()];
                softmax(&widened(x), columns, &mut result);
                Self::narrow(&result, out);
            }
            fn log_softmax_block(x: &[Self], columns: usize, out: &mut [Self]) {
                let mut result = vec![0.0; out.len()];
                log_softmax(&widened(x), columns, &mut result);
                Self::narrow(&result, out);
            }
            fn dense_block(x: &[Self], labels: &[Self], columns: usize, loss: &mut [Self], backprop: &mut [Self]) {
                let (mut wide_loss, mut result) = (vec![0.0; loss.len()], vec![0.0; x.len()]);
                dense(&widened(x), &widened(labels), columns, &mut wide_loss, &mut result);
                Self::narrow(&wide_loss, loss);
                Self::narrow(&result, backprop);
            }
            fn sparse_block(x: &[Self], labels: &[usize], columns: usize, loss: &mut [Self], backprop: &mut [Self]) {
                let (mut wide_loss, mut result) = (vec![0.0; loss.len()], vec![0.0; x.len()]);
                sparse(&widened(x), labels, columns, &mut wide_loss, &mut result);
                Self::narrow(&wide_loss, loss);
                Self::narrow(&result, backprop);
            }
        }
    )*};
}

half!(f16, bf16);

fn widened<T: HalfOrSingle>(x: &[T]) -> Vec<f32> {
    let mut wide = vec![0.0; x.len()];
    T::widen(x, &mut wide);
    wide
}
