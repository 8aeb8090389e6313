//! The reductions by name and type.

use std::marker::PhantomData;

use half::{bf16, f16};
use num_complex::Complex;

use super::engine::{Fold, reduce, rows_body, runs_body};
use super::layout::Layout;
use crate::num::convert::HalfOrSingle;
use crate::num::isa::multiversion;
use crate::num::{Element, Num, Real, to_f32_slice};
use crate::par::{Par, chunks_mut};

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

/// Declares folds. Each line: name, element bounds, accumulator, identity, lift, combine.
macro_rules! folds {
    ($($name:ident<T: $bound:ident>, $acc:ty, $identity:expr, |$x:ident| $lift:expr, |$a:ident, $b:ident| $combine:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);

        impl<T: $bound> Fold for $name<T> {
            type In = T;
            type Acc = $acc;
            const IDENTITY: Self::Acc = $identity;
            #[inline(always)]
            fn lift($x: T) -> Self::Acc { $lift }
            #[inline(always)]
            fn combine($a: Self::Acc, $b: Self::Acc) -> Self::Acc { $combine }
            fn runs(x: &[T], len: usize, acc: &mut [Self::Acc]) { runs::<T, $name<T>>(x, len, acc) }
            fn rows(x: &[T], stride: usize, acc: &mut [Self::Acc]) { rows::<T, $name<T>>(x, stride, acc) }
        }
    )*};
}

folds! {
    Sum<T: Num>, T, T::ZERO, |x| x, |a, b| a.add(b);
    Prod<T: Num>, T, T::ONE, |x| x, |a, b| a.mul(b);
    Squares<T: Num>, T, T::ZERO, |x| x.mul(x), |a, b| a.add(b);
    Max<T: Real>, T, T::LOWEST, |x| x, |a, b| a.larger(b);
    Min<T: Real>, T, T::HIGHEST, |x| x, |a, b| a.smaller(b);
}

/// A fold over elements of this type.
trait FoldOf<T>: Fold<In = T> {}
impl<T, F: Fold<In = T>> FoldOf<T> for F {}

/// Floats get a loop for each instruction set, other types one.
fn runs<T: Element, F: FoldOf<T>>(x: &[T], len: usize, acc: &mut [F::Acc]) {
    multiversion! { fn fast<F: Fold>(x: &[F::In], len: usize, acc: &mut [F::Acc]) = runs_body; }
    if is_float::<T>() {
        fast::<F>(x, len, acc)
    } else {
        runs_body::<F>(x, len, acc)
    }
}

fn rows<T: Element, F: FoldOf<T>>(x: &[T], stride: usize, acc: &mut [F::Acc]) {
    multiversion! { fn fast<F: Fold>(x: &[F::In], stride: usize, acc: &mut [F::Acc]) = rows_body; }
    if is_float::<T>() {
        fast::<F>(x, stride, acc)
    } else {
        rows_body::<F>(x, stride, acc)
    }
}

fn is_float<T: 'static>() -> bool {
    let id = std::any::TypeId::of::<T>();
    id == std::any::TypeId::of::<f32>() || id == std::any::TypeId::of::<f64>()
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl ReduceElement for $t {
            fn supports(_: Reduce) -> bool {
                true
            }

            fn reduce(par: &dyn Par, op: Reduce, layout: &Layout, x: &[Self], out: &mut [Self]) {
                match op {
                    Reduce::Sum | Reduce::Mean => reduce::<Sum<$t>>(par, &layout.dims, x, out),
                    Reduce::Prod => reduce::<Prod<$t>>(par, &layout.dims, x, out),
                    Reduce::Max => reduce::<Max<$t>>(par, &layout.dims, x, out),
                    Reduce::Min => reduce::<Min<$t>>(par, &layout.dims, x, out),
                    Reduce::EuclideanNorm => reduce::<Squares<$t>>(par, &layout.dims, x, out),
                }
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
                through_f32(par, op, layout, x, out);
            }
        }
    )*};
}

half!(f16, bf16);

fn through_f32<T: HalfOrSingle>(
    par: &dyn Par,
    op: Reduce,
    layout: &Layout,
    x: &[T],
    out: &mut [T],
) {
    let mut wide = vec![0f32; x.len()];
    chunks_mut(par, &mut wide, 32 << 10, |at, wide| {
        to_f32_slice(&x[at..at + wide.len()], wide)
    });
    let mut result = vec![0f32; out.len()];
    f32::reduce(par, op, layout, &wide, &mut result);
    T::narrow(&result, out);
}

/// Integers summed in 64 bits, for means.
struct WideSum<T>(PhantomData<T>);

macro_rules! int {
    ($($t:ty, $wide:ty;)*) => {$(
        impl Fold for WideSum<$t> {
            type In = $t;
            type Acc = $wide;
            const IDENTITY: $wide = 0;
            #[inline(always)]
            fn lift(x: $t) -> $wide { <$wide>::from(x) }
            #[inline(always)]
            fn combine(a: $wide, b: $wide) -> $wide { a.wrapping_add(b) }
            fn runs(x: &[$t], len: usize, acc: &mut [$wide]) { runs_body::<Self>(x, len, acc) }
            fn rows(x: &[$t], stride: usize, acc: &mut [$wide]) { rows_body::<Self>(x, stride, acc) }
        }

        impl ReduceElement for $t {
            fn supports(_: Reduce) -> bool {
                true
            }

            fn reduce(par: &dyn Par, op: Reduce, layout: &Layout, x: &[Self], out: &mut [Self]) {
                match op {
                    Reduce::Sum => reduce::<Sum<$t>>(par, &layout.dims, x, out),
                    Reduce::Prod => reduce::<Prod<$t>>(par, &layout.dims, x, out),
                    Reduce::Max => reduce::<Max<$t>>(par, &layout.dims, x, out),
                    Reduce::Min => reduce::<Min<$t>>(par, &layout.dims, x, out),
                    Reduce::Mean => {
                        let mut sums = vec![0; out.len()];
                        reduce::<WideSum<$t>>(par, &layout.dims, x, &mut sums);
                        let count = layout.reduced_len() as $wide;
                        for (out, sum) in out.iter_mut().zip(sums) {
                            *out = Num::div(sum, count) as $t;
                        }
                    }
                    Reduce::EuclideanNorm => {
                        reduce::<Squares<$t>>(par, &layout.dims, x, out);
                        out.iter_mut().for_each(|out| *out = (*out as f64).sqrt() as $t);
                    }
                }
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

/// Squared absolute values of complex numbers.
struct Norms<T>(PhantomData<T>);

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl Fold for Norms<$t> {
            type In = Complex<$t>;
            type Acc = $t;
            const IDENTITY: $t = 0.0;
            #[inline(always)]
            fn lift(x: Complex<$t>) -> $t { x.norm_sqr() }
            #[inline(always)]
            fn combine(a: $t, b: $t) -> $t { a + b }
            fn runs(x: &[Complex<$t>], len: usize, acc: &mut [$t]) { runs_body::<Self>(x, len, acc) }
            fn rows(x: &[Complex<$t>], stride: usize, acc: &mut [$t]) { rows_body::<Self>(x, stride, acc) }
        }

        impl ReduceElement for Complex<$t> {
            fn supports(op: Reduce) -> bool {
                !matches!(op, Reduce::Max | Reduce::Min)
            }

            fn reduce(par: &dyn Par, op: Reduce, layout: &Layout, x: &[Self], out: &mut [Self]) {
                match op {
                    Reduce::Prod => reduce::<Prod<Self>>(par, &layout.dims, x, out),
                    Reduce::EuclideanNorm => {
                        let mut norms = vec![0.0; out.len()];
                        reduce::<Norms<$t>>(par, &layout.dims, x, &mut norms);
                        out.iter_mut().zip(norms).for_each(|(out, norm)| *out = norm.sqrt().into());
                    }
                    _ => reduce::<Sum<Self>>(par, &layout.dims, x, out),
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
    logical::<Max<u8>>(par, layout, x, out);
}

/// Writes whether all of the reduced elements are true; true for none.
///
/// # Panics
/// If the lengths are not those of `layout`.
pub fn all(par: &dyn Par, layout: &Layout, x: &[bool], out: &mut [bool]) {
    logical::<Min<u8>>(par, layout, x, out);
}

fn logical<F: Fold<In = u8, Acc = u8>>(
    par: &dyn Par,
    layout: &Layout,
    x: &[bool],
    out: &mut [bool],
) {
    check(layout, x.len(), out.len());
    let mut bytes = vec![0; out.len()];
    reduce::<F>(par, &layout.dims, as_bytes(x), &mut bytes);
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
                reduce::<Squares<$t>>(par, &Layout::all(x.len()).dims, x, &mut out);
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
                let mut wide = vec![0f32; x.len()];
                to_f32_slice(x, &mut wide);
                <$t>::from_f32(f32::l2(par, &wide))
            }
        }
    )*};
}

l2_half!(f16, bf16);
