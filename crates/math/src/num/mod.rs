//! Numeric traits over every arithmetic element type, SIMD level detection, and f32 lane functions.
//!
//! | trait | types | gives |
//! |---|---|---|
//! | [`Element`] | all below and `bool` | plain copyable bits |
//! | [`Num`] | floats, halves, integers, complex | `ZERO`, `ONE`, wrapping `add`/`sub`/`mul`, an accumulator type |
//! | [`Real`] | floats, halves, integers | order, bounds, NaN-propagating `larger`/`smaller`, `to_f64` |
//! | [`Int`] | integers | division that never panics, shifts |
//! | [`Float`] | `f16 bf16 f32 f64` | marker: the IEEE formats |
//!
//! ```
//! use tensorfleet_math::num::{Num, Real};
//! fn dot<T: Num>(a: &[T], b: &[T]) -> T::Acc {
//!     let mut acc = T::Acc::ZERO;
//!     for (&x, &y) in a.iter().zip(b) {
//!         acc = acc.add(x.to_acc().mul(y.to_acc()));
//!     }
//!     acc
//! }
//! assert_eq!(dot(&[1i32, 2], &[3, 4]), 11);
//! assert!(f32::NAN.larger(1.0).is_nan());
//! ```

pub(crate) mod convert;
mod impls;
pub mod isa;
pub(crate) mod lanes;
pub(crate) mod special;

use std::fmt::Debug;

pub use convert::{from_f32_slice, to_f32_slice};
pub use half::{bf16, f16};
/// Single-precision complex number, TensorFlow's `complex64`.
pub type Complex64 = num_complex::Complex<f32>;
/// Double-precision complex number, TensorFlow's `complex128`.
pub type Complex128 = num_complex::Complex<f64>;

/// A plain value that a buffer can hold.
pub trait Element: Copy + Send + Sync + Default + PartialEq + Debug + 'static {}

/// A type with arithmetic; integers wrap.
pub trait Num: Element {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The type that sums and products are carried in: `f32` for halves, the type itself otherwise.
    type Acc: Num<Acc = Self::Acc>;

    /// Sum; wraps for integers.
    fn add(self, other: Self) -> Self;
    /// Difference; wraps for integers.
    fn sub(self, other: Self) -> Self;
    /// Product; wraps for integers.
    fn mul(self, other: Self) -> Self;
    /// Quotient; integers truncate, wrap `MIN / -1`, and give 0 for a zero divisor.
    fn div(self, other: Self) -> Self;
    /// Widens to the accumulator type.
    fn to_acc(self) -> Self::Acc;
    /// Rounds back from the accumulator type.
    fn from_acc(acc: Self::Acc) -> Self;
    /// Nearest value to `x` (integers truncate and saturate).
    fn from_f64(x: f64) -> Self;
}

/// A type with an order.
pub trait Real: Num + PartialOrd {
    /// Smallest value: the identity of `larger` (`-inf` for floats).
    const LOWEST: Self;
    /// Largest value: the identity of `smaller` (`inf` for floats).
    const HIGHEST: Self;

    /// What is larger than, smaller than and equal to nothing; 0 for integers, which have no such value.
    const NAN: Self;

    /// The larger of two; NaN if either is.
    fn larger(self, other: Self) -> Self;
    /// The smaller of two; NaN if either is.
    fn smaller(self, other: Self) -> Self;
    /// Whether this is a NaN; never for integers.
    fn is_nan(self) -> bool;
    /// The value as `f64`, rounded for wide integers.
    fn to_f64(self) -> f64;
}

/// An integer type.
pub trait Int: Real + Eq + Ord {
    /// Width in bits.
    const BITS: u32;
    /// Whether negative values exist.
    const SIGNED: bool;

    /// Quotient rounded to minus infinity; 0 for a zero divisor.
    fn floor_div(self, other: Self) -> Self;
    /// Remainder with the divisor's sign; 0 for a zero divisor.
    fn floor_mod(self, other: Self) -> Self;
    /// Remainder with the dividend's sign; 0 for a zero divisor.
    fn trunc_mod(self, other: Self) -> Self;
    /// `self` to the power of a non-negative `other`, wrapping; a negative exponent gives 0.
    fn power(self, other: Self) -> Self;
    /// Left shift by `other` clamped to `0..BITS`.
    fn shift_left(self, other: Self) -> Self;
    /// Right shift (arithmetic if signed) by `other` clamped to `0..BITS`.
    fn shift_right(self, other: Self) -> Self;
    /// Bitwise and.
    fn bit_and(self, other: Self) -> Self;
    /// Bitwise or.
    fn bit_or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn bit_xor(self, other: Self) -> Self;
    /// Bitwise not.
    fn invert(self) -> Self;
    /// Negation, wrapping.
    fn neg(self) -> Self;
    /// Absolute value, wrapping.
    fn abs(self) -> Self;
    /// -1, 0 or 1.
    fn signum(self) -> Self;
}

/// One of the IEEE formats: `f16`, `bf16`, `f32`, `f64`.
pub trait Float: Real {
    /// Converts a block to `f32`, or to itself for `f32`; `f64` narrows.
    fn to_f32(self) -> f32;
    /// Rounds from `f32`.
    fn from_f32(x: f32) -> Self;
}
