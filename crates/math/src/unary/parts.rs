//! Functions of one input whose result has another type: predicates and parts of complex numbers.

use num_complex::Complex;

use crate::map::map;
use crate::num::isa::{Isa, Map1, kernel1, scalar1};
use crate::num::{Float, lanes};
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
        let x = &x[offset..offset + out.len()];
        let pairs = out.iter_mut().zip(x);
        match part {
            ComplexPart::Real => pairs.for_each(|(out, x)| *out = x.re),
            ComplexPart::Imag => pairs.for_each(|(out, x)| *out = x.im),
            ComplexPart::Abs => F::norms(x, out),
            ComplexPart::Angle => F::angles(x, out),
        }
    });
}

/// The float type of a complex one.
pub trait ComplexOf: Float {
    /// Absolute values without intermediate overflow.
    fn norms(x: &[Complex<Self>], out: &mut [Self]);
    /// Phase angles.
    fn angles(x: &[Complex<Self>], out: &mut [Self]);
}

impl ComplexOf for f32 {
    fn norms(x: &[Complex<Self>], out: &mut [Self]) {
        kernel1::<_, _, Norm>()(x, out);
    }
    fn angles(x: &[Complex<Self>], out: &mut [Self]) {
        kernel1::<_, _, Angle>()(x, out);
    }
}

impl ComplexOf for f64 {
    fn norms(x: &[Complex<Self>], out: &mut [Self]) {
        scalar1::<_, _, Norm>()(x, out);
    }
    fn angles(x: &[Complex<Self>], out: &mut [Self]) {
        scalar1::<_, _, Angle>()(x, out);
    }
}

struct Norm;
struct Angle;

impl Map1<Complex<f32>, f32> for Norm {
    #[inline(always)]
    fn eval<I: Isa>(x: Complex<f32>) -> f32 {
        let (re, im) = (f64::from(x.re), f64::from(x.im));
        let norm = (re * re + im * im).sqrt() as f32;
        // Infinite even if the other part is NaN.
        let is_infinite = x.re.abs() == f32::INFINITY || x.im.abs() == f32::INFINITY;
        if is_infinite { f32::INFINITY } else { norm }
    }
}

impl Map1<Complex<f32>, f32> for Angle {
    #[inline(always)]
    fn eval<I: Isa>(x: Complex<f32>) -> f32 {
        lanes::atan2::<I>(x.im, x.re)
    }
}

impl Map1<Complex<f64>, f64> for Norm {
    #[inline(always)]
    fn eval<I: Isa>(x: Complex<f64>) -> f64 {
        x.norm()
    }
}

impl Map1<Complex<f64>, f64> for Angle {
    #[inline(always)]
    fn eval<I: Isa>(x: Complex<f64>) -> f64 {
        x.arg()
    }
}
