//! The types that weights are stored in and the types that updates are computed in.

use std::ops::{Add, Div, Mul, Neg, Sub};

use half::{bf16, f16};
use num_complex::Complex;

use crate::num::{from_f32_slice, to_f32_slice};

/// A type to compute in: `f32`, `f64` or complex numbers of them.
pub trait Wide:
    Copy
    + Default
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// The nearest value to a constant.
    fn of(x: f64) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;

    /// One over the square root.
    #[inline(always)]
    fn rsqrt(self) -> Self {
        Self::of(1.0) / self.sqrt()
    }
}

/// A type to compute in that has an order: `f32` or `f64`.
pub trait RealWide: Wide + PartialOrd {
    /// Absolute value.
    fn abs(self) -> Self;
    /// `self` unless it is smaller: a NaN in `self` stays, so that a weight that is none does not look like one again; one in
    /// `other` is dropped.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self < other { other } else { self }
    }
    /// Exponential.
    fn exp(self) -> Self;
    /// Power.
    fn pow(self, exponent: Self) -> Self;

    /// -1, 0 or 1; a NaN stays.
    #[inline(always)]
    fn sign(self) -> Self {
        let zero = Self::default();
        if self > zero {
            Self::of(1.0)
        } else if self < zero {
            Self::of(-1.0)
        } else if self == zero {
            zero
        } else {
            self
        }
    }
}

macro_rules! wide {
    ($($ty:ident),*) => {
        $(impl Wide for $ty {
            #[inline(always)]
            fn of(x: f64) -> Self {
                x as Self
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $ty::sqrt(self)
            }
        }

        impl RealWide for $ty {
            #[inline(always)]
            fn abs(self) -> Self {
                $ty::abs(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $ty::exp(self)
            }
            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                $ty::powf(self, exponent)
            }
        })*
    };
}

wide!(f32, f64);

macro_rules! complex {
    ($($ty:ty),*) => {
        $(impl Wide for Complex<$ty> {
            #[inline(always)]
            fn of(x: f64) -> Self {
                Complex::new(x as $ty, 0.0)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Complex::sqrt(self)
            }
        })*
    };
}

complex!(f32, f64);

/// A type to store weights in: `f16`, `bf16`, `f32`, `f64` or complex numbers. Halves are widened, updated and rounded once.
pub trait Weight: Copy + Send + Sync + 'static {
    /// The type to compute in.
    type Wide: Wide;

    /// Widens a block; both slices have the same length.
    fn widen(weights: &[Self], wide: &mut [Self::Wide]);

    /// Rounds a block; both slices have the same length.
    fn narrow(wide: &[Self::Wide], weights: &mut [Self]);
}

macro_rules! same {
    ($($ty:ty),*) => {
        $(impl Weight for $ty {
            type Wide = Self;

            #[inline(always)]
            fn widen(weights: &[Self], wide: &mut [Self]) {
                wide.copy_from_slice(weights);
            }

            #[inline(always)]
            fn narrow(wide: &[Self], weights: &mut [Self]) {
                weights.copy_from_slice(wide);
            }
        })*
    };
}

same!(f32, f64, Complex<f32>, Complex<f64>);

macro_rules! halves {
    ($($ty:ty),*) => {
        $(impl Weight for $ty {
            type Wide = f32;

            fn widen(weights: &[Self], wide: &mut [f32]) {
                to_f32_slice(weights, wide);
            }

            fn narrow(wide: &[f32], weights: &mut [Self]) {
                from_f32_slice(wide, weights);
            }
        })*
    };
}

halves!(f16, bf16);
