//! Functions of one input whose result has another type: predicates and parts of complex numbers.

use num_complex::Complex;

use crate::map::map;
use crate::num::Float;
use crate::par::{Par, chunks_mut};

const GRAIN: usize = 32 << 10;

/// A test of one float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as TensorFlow's ops")]
pub enum Predicate {
    IsNan,
    IsInf,
    IsFinite,
}

/// Writes whether `predicate` holds for each of `x`.
///
/// # Panics
/// If the lengths differ.
pub fn predicate<T: Float>(par: &dyn Par, predicate: Predicate, x: &[T], out: &mut [bool]) {
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    match predicate {
        Predicate::IsNan => map(par, x, out, |x: T| x.is_nan()),
        Predicate::IsInf => map(par, x, out, |x: T| (x == T::HIGHEST) | (x == T::LOWEST)),
        Predicate::IsFinite => map(par, x, out, |x: T| (x < T::HIGHEST) & (x > T::LOWEST)),
    }
}

/// A real number made from a complex one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as TensorFlow's ops")]
pub enum ComplexPart {
    Real,
    Imag,
    /// `ComplexAbs`
    Abs,
    Angle,
}

/// Writes the given part of each of `x`.
///
/// # Panics
/// If the lengths differ.
pub fn complex_part<F: ComplexOf>(
    par: &dyn Par,
    part: ComplexPart,
    x: &[Complex<F>],
    out: &mut [F],
) {
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    chunks_mut(par, out, GRAIN / 4, |offset, out| {
        let pairs = out.iter_mut().zip(&x[offset..]);
        match part {
            ComplexPart::Real => pairs.for_each(|(out, x)| *out = x.re),
            ComplexPart::Imag => pairs.for_each(|(out, x)| *out = x.im),
            ComplexPart::Abs => pairs.for_each(|(out, x)| *out = F::norm(x)),
            ComplexPart::Angle => pairs.for_each(|(out, x)| *out = F::arg(x)),
        }
    });
}

/// The float type of a complex one.
pub trait ComplexOf: Float {
    /// Absolute value without intermediate overflow.
    fn norm(x: &Complex<Self>) -> Self;
    /// Phase angle.
    fn arg(x: &Complex<Self>) -> Self;
}

macro_rules! complex_of {
    ($($t:ty),*) => {$(
        impl ComplexOf for $t {
            fn norm(x: &Complex<Self>) -> Self {
                Complex::norm(*x)
            }
            fn arg(x: &Complex<Self>) -> Self {
                Complex::arg(*x)
            }
        }
    )*};
}

complex_of!(f32, f64);
