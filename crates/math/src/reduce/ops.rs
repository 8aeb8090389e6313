//! The reductions by name and type.

use half::{bf16, f16};
use num_complex::Complex;

use super::engine::{Fold, Loops, merge_body, rows_body, runs_body};
use super::layout::Layout;
use crate::num::convert::HalfOrSingle;
use crate::num::isa::multiversion;
use crate::num::{Element, Num, Real, to_f32_slice};
use crate::par::{Par, Serial, chunks_mut};

/// A reduction, named as TensorFlow's op.
///
/// Of nothing: sums are 0, products 1, `Max` the lowest and `Min` the highest value, `Mean` NaN for floats and 0 otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// Sum; integers wrap.
    Sum,
    /// Sum divided by the count; integers are summed in 64 bits and truncated.
    Mean,
    /// Product; integers wrap.
    Prod,
    /// Largest; NaN if any is.
    Max,
    /// Smallest; NaN if any is.
    Min,
    /// Square root of the sum of squared absolute values.
    EuclideanNorm,
}

/// A type with reductions.
pub trait ReduceElement: Element {
    /// Whether the type has this reduction; complex numbers have no order.
    fn supports(op: Reduce) -> bool;

    #[doc(hidden)]
    fn reduce(par: &dyn Par, op: Reduce, layout: &Layout, x: &[Self], out: &mut [Self]);
}

/// Writes the reduction of `x` to `out`. Halves are carried in `f32`.
///
/// # Panics
/// If the lengths are not those of `layout`, or the type does not have the reduction.
pub fn apply<T: ReduceElement>(par: &dyn Par, op: Reduce, layout: &Layout, x: &[T], out: &mut [T]) {
    check(layout, x.len(), out.len());
    assert!(T::supports(op), "{op:?} is not defined for this type");
    T::reduce(par, op, layout, x, out);
}

fn check(layout: &Layout, x: usize, out: usize) {
    assert_eq!(
        layout.out_len(),
        out,
        "the output's length is not that of the layout"
    );
    assert_eq!(
        layout.out_len() * layout.reduced_len(),
        x,
        "the input's length is not that of the layout"
    );
}

struct Sum;
impl<T: Num> Fold<T> for Sum {
    const IDENTITY: T = T::ZERO;
    #[inline(always)]
    fn lift(x: T) -> T {
        x
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.add(b)
    }
}

struct Prod;
impl<T: Num> Fold<T> for Prod {
    const IDENTITY: T = T::ONE;
    #[inline(always)]
    fn lift(x: T) -> T {
        x
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.mul(b)
    }
}

struct Squares;
impl<T: Num> Fold<T> for Squares {
    const IDENTITY: T = T::ZERO;
    #[inline(always)]
    fn lift(x: T) -> T {
        x.mul(x)
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.add(b)
    }
}

struct Max;
impl<T: Real> Fold<T> for Max {
    const IDENTITY: T = T::LOWEST;
    #[inline(always)]
    fn lift(x: T) -> T {
        x
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.larger(b)
    }
    #[inline(always)]
    fn combine_four(acc: T, x: [T; 4]) -> T {
        four(acc, x, |a, b| a > b)
    }
}

struct Min;
impl<T: Real> Fold<T> for Min {
    const IDENTITY: T = T::HIGHEST;
    #[inline(always)]
    fn lift(x: T) -> T {
        x
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.smaller(b)
    }
    #[inline(always)]
    fn combine_four(acc: T, x: [T; 4]) -> T {
        four(acc, x, |a, b| a < b)
    }
}

/// The first of five by `before`, looking for NaN once for each two of them.
#[inline(always)]
fn four<T: Real>(acc: T, [a, b, c, d]: [T; 4], before: impl Fn(T, T) -> bool) -> T {
    // Gives the right one if either is NaN: so `acc` stays NaN.
    let first = |a: T, b: T| if before(a, b) { a } else { b };
    let nan = (a.is_nan() | b.is_nan()) | (c.is_nan() | d.is_nan());
    let kept = first(first(first(a, b), first(c, d)), acc);
    if nan { T::NAN } else { kept }
}

/// Loops for each instruction set.
fn fast<T: Copy, F: Fold<T>>() -> Loops<T> {
    multiversion! { fn runs<T: Copy, F: Fold<T>>(x: &[T], len: usize, acc: &mut [T]) = runs_body; }
    multiversion! { fn rows<T: Copy, F: Fold<T>>(x: &[T], stride: usize, acc: &mut [T]) = rows_body; }
    Loops {
        identity: F::IDENTITY,
        runs: runs::<T, F>,
        rows: rows::<T, F>,
        merge: merge_body::<T, F>,
    }
}

/// Loops built once, with the target's defaults.
fn plain<T: Copy, F: Fold<T>>() -> Loops<T> {
    Loops {
        identity: F::IDENTITY,
        runs: runs_body::<T, F>,
        rows: rows_body::<T, F>,
        merge: merge_body::<T, F>,
    }
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl ReduceElement for $t {
            fn supports(_: Reduce) -> bool {
                true
            }

            fn reduce(par: &dyn Par, op: Reduce, layout: &Layout, x: &[Self], out: &mut [Self]) {
                let loops = match op {
                    Reduce::Sum | Reduce::Mean => fast::<$t, Sum>(),
                    Reduce::Prod => fast::<$t, Prod>(),
                    Reduce::Max => fast::<$t, Max>(),
                    Reduce::Min => fast::<$t, Min>(),
                    Reduce::EuclideanNorm => fast::<$t, Squares>(),
                };
                loops.reduce(par, &layout.dims, x, out);
                match op {
                    Reduce::Mean => {
                        let count = layout.reduced_len() as $t;
                        out.iter_mut().for_each(|out| *out /= count);
                    }
                    Reduce::EuclideanNorm => out.iter_mut().for_each(|out| *out = out.sqrt()),
                    _ => {}
                }
            }
        }
    )*};
}

float!(f32, f64);

macro_rules! half {
    ($($t:ty),*) => {$(
        impl ReduceElement for $t {
            fn supports(_: Reduce) -> bool {
                true
            }

            fn reduce(par: &dyn Par, op: Reduce, layout: &Layout, x: &[Self], out: &mut [Self]) {
                if let Some(len) = layout.run_len().filter(|len| *len <= WIDENED) {
                    return reduce_runs(par, op, len, x, out);
                }
                let mut result = vec![0f32; out.len()];
                f32::reduce(par, op, layout, &widened(par, x), &mut result);
                Self::narrow(&result, out);
            }
        }
    )*};
}

half!(f16, bf16);

/// Halves that are widened at a time: they stay in the nearest cache.
const WIDENED: usize = 8 << 10;

/// Reduces runs of `len` to one element each.
fn reduce_runs<T: HalfOrSingle + Send>(
    par: &dyn Par,
    op: Reduce,
    len: usize,
    x: &[T],
    out: &mut [T],
) {
    let runs = (WIDENED / len).max(1);
    chunks_mut(par, out, (32 << 10) / len + 1, |first, out| {
        let (mut wide, mut result) = (vec![0f32; runs * len], vec![0f32; runs]);
        let mut at = first * len;
        for out in out.chunks_mut(runs) {
            let (wide, result) = (&mut wide[..out.len() * len], &mut result[..out.len()]);
            to_f32_slice(&x[at..at + wide.len()], wide);
            let layout = Layout::new(&[out.len(), len], &[1]);
            f32::reduce(&Serial, op, &layout, wide, result);
            T::narrow(result, out);
            at += wide.len();
        }
    });
}

fn widened<T: HalfOrSingle>(par: &dyn Par, x: &[T]) -> Vec<f32> {
    let mut wide = vec![0f32; x.len()];
    chunks_mut(par, &mut wide, 32 << 10, |at, wide| {
        to_f32_slice(&x[at..at + wide.len()], wide)
    });
    wide
}

macro_rules! int {
    ($($t:ty, $wide:ty;)*) => {$(
        impl ReduceElement for $t {
            fn supports(_: Reduce) -> bool {
                true
            }

            fn reduce(par: &dyn Par, op: Reduce, layout: &Layout, x: &[Self], out: &mut [Self]) {
                let loops = match op {
                    Reduce::Sum => plain::<$t, Sum>(),
                    Reduce::Prod => plain::<$t, Prod>(),
                    Reduce::Max => plain::<$t, Max>(),
                    Reduce::Min => plain::<$t, Min>(),
                    // The two that hardly anybody takes of integers go by way of a copy.
                    Reduce::Mean => {
                        let wide: Vec<$wide> = x.iter().map(|&x| x.into()).collect();
                        let mut sums = vec![0; out.len()];
                        plain::<$wide, Sum>().reduce(par, &layout.dims, &wide, &mut sums);
                        for (out, sum) in out.iter_mut().zip(sums) {
                            *out = Num::div(sum, layout.reduced_len() as $wide) as $t;
                        }
                        return;
                    }
                    Reduce::EuclideanNorm => {
                        let squares: Vec<$t> = x.iter().map(|&x| x.wrapping_mul(x)).collect();
                        plain::<$t, Sum>().reduce(par, &layout.dims, &squares, out);
                        return out.iter_mut().for_each(|out| *out = (*out as f64).sqrt() as $t);
                    }
                };
                loops.reduce(par, &layout.dims, x, out);
            }
        }
    )*};
}

int! {
    i8, i64;
    i16, i64;
    i32, i64;
    i64, i64;
    u8, u64;
    u16, u64;
    u32, u64;
    u64, u64;
}

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl ReduceElement for Complex<$t> {
            fn supports(op: Reduce) -> bool {
                !matches!(op, Reduce::Max | Reduce::Min)
            }

            fn reduce(par: &dyn Par, op: Reduce, layout: &Layout, x: &[Self], out: &mut [Self]) {
                match op {
                    Reduce::Prod => plain::<Self, Prod>().reduce(par, &layout.dims, x, out),
                    Reduce::EuclideanNorm => {
                        let squares: Vec<$t> = x.iter().map(Complex::norm_sqr).collect();
                        let mut sums = vec![0.0; out.len()];
                        fast::<$t, Sum>().reduce(par, &layout.dims, &squares, &mut sums);
                        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum.sqrt().into());
                    }
                    _ => plain::<Self, Sum>().reduce(par, &layout.dims, x, out),
                }
                // The mean of nothing is 0 here, unlike for reals.
                if op == Reduce::Mean && layout.reduced_len() > 0 {
                    out.iter_mut().for_each(|out| *out /= layout.reduced_len() as $t);
                }
            }
        }
    )*};
}

complex!(f32, f64);

/// A byte that is 0 or 1, so that `bool`s fold as bytes.
fn as_bytes(x: &[bool]) -> &[u8] {
    // SAFETY: `bool` has the size and alignment of `u8`, and each of its values is a valid `u8`.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
}

/// Writes whether any of the reduced elements is true; false for none.
///
/// # Panics
/// If the lengths are not those of `layout`.
pub fn any(par: &dyn Par, layout: &Layout, x: &[bool], out: &mut [bool]) {
    logical::<Max>(par, layout, x, out);
}

/// Writes whether all of the reduced elements are true; true for none.
///
/// # Panics
/// If the lengths are not those of `layout`.
pub fn all(par: &dyn Par, layout: &Layout, x: &[bool], out: &mut [bool]) {
    logical::<Min>(par, layout, x, out);
}

fn logical<F: Fold<u8>>(par: &dyn Par, layout: &Layout, x: &[bool], out: &mut [bool]) {
    check(layout, x.len(), out.len());
    let mut bytes = vec![0; out.len()];
    plain::<u8, F>().reduce(par, &layout.dims, as_bytes(x), &mut bytes);
    for (out, byte) in out.iter_mut().zip(bytes) {
        *out = byte != 0;
    }
}

/// Half the sum of squares. Halves are carried in `f32`.
pub fn l2_loss<T: L2>(par: &dyn Par, x: &[T]) -> T {
    T::l2(par, x)
}

/// A float type with [`l2_loss`].
pub trait L2: Sized {
    #[doc(hidden)]
    fn l2(par: &dyn Par, x: &[Self]) -> Self;
}

macro_rules! l2 {
    ($($t:ty),*) => {$(
        impl L2 for $t {
            fn l2(par: &dyn Par, x: &[Self]) -> Self {
                let mut out = [0.0];
                fast::<$t, Squares>().reduce(par, &Layout::all(x.len()).dims, x, &mut out);
                0.5 * out[0]
            }
        }
    )*};
}

l2!(f32, f64);

macro_rules! l2_half {
    ($($t:ty),*) => {$(
        impl L2 for $t {
            fn l2(par: &dyn Par, x: &[Self]) -> Self {
                <$t>::from_f32(f32::l2(par, &widened(par, x)))
            }
        }
    )*};
}

l2_half!(f16, bf16);
