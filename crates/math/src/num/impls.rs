//! The numeric traits for each element type.

use half::{bf16, f16};
use num_complex::Complex;

use super::{Element, Float, Int, Num, Real};

impl Element for bool {}

macro_rules! int {
    ($($t:ty, $signed:literal, $neg:expr, $abs:expr, $signum:expr;)*) => {$(
        impl Element for $t {}

        impl Num for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            type Acc = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn to_acc(self) -> Self { self }
            #[inline(always)]
            fn from_acc(acc: Self) -> Self { acc }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { x as Self }
        }

        impl Real for $t {
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            const NAN: Self = 0;
            #[inline(always)]
            fn larger(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
        }

        impl Int for $t {
            const BITS: u32 = <$t>::BITS;
            const SIGNED: bool = $signed;
            #[inline(always)]
            fn floor_div(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let rest = self.wrapping_rem(other);
                if $signed && rest != 0 && ((rest < Self::ZERO) != (other < Self::ZERO)) {
                    quotient - 1
                } else {
                    quotient
                }
            }
            #[inline(always)]
            fn floor_mod(self, other: Self) -> Self {
                let rest = self.trunc_mod(other);
                if $signed && rest != 0 && ((rest < Self::ZERO) != (other < Self::ZERO)) {
                    rest + other
                } else {
                    rest
                }
            }
            #[inline(always)]
            fn trunc_mod(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[inline]
            fn power(self, other: Self) -> Self {
                if $signed && other < Self::ZERO {
                    return 0;
                }
                let (mut base, mut exponent, mut result) = (self, other, 1);
                while exponent != 0 {
                    if exponent & 1 == 1 {
                        result = <Self as Num>::mul(result, base);
                    }
                    base = <Self as Num>::mul(base, base);
                    exponent >>= 1;
                }
                result
            }
            #[inline(always)]
            fn shift_left(self, other: Self) -> Self {
                self << other.clamp(0, (Self::BITS - 1) as Self)
            }
            #[inline(always)]
            fn shift_right(self, other: Self) -> Self {
                self >> other.clamp(0, (Self::BITS - 1) as Self)
            }
            #[inline(always)]
            fn bit_and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn bit_or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn bit_xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn invert(self) -> Self { !self }
            #[inline(always)]
            fn neg(self) -> Self { $neg(self) }
            #[inline(always)]
            fn abs(self) -> Self { $abs(self) }
            #[inline(always)]
            fn signum(self) -> Self { $signum(self) }
        }
    )*};
}

int! {
    i8, true, i8::wrapping_neg, i8::wrapping_abs, i8::signum;
    i16, true, i16::wrapping_neg, i16::wrapping_abs, i16::signum;
    i32, true, i32::wrapping_neg, i32::wrapping_abs, i32::signum;
    i64, true, i64::wrapping_neg, i64::wrapping_abs, i64::signum;
    u8, false, u8::wrapping_neg, std::convert::identity, |x| u8::from(x != 0);
    u16, false, u16::wrapping_neg, std::convert::identity, |x| u16::from(x != 0);
    u32, false, u32::wrapping_neg, std::convert::identity, |x| u32::from(x != 0);
    u64, false, u64::wrapping_neg, std::convert::identity, |x| u64::from(x != 0);
}

macro_rules! float {
    ($($t:ty, $acc:ty, $zero:expr, $one:expr, $to_acc:expr, $from_acc:expr, $to_f32:expr, $from_f32:expr, $to_f64:expr, $from_f64:expr;)*) => {$(
        impl Element for $t {}

        impl Num for $t {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            type Acc = $acc;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn div(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn to_acc(self) -> $acc { $to_acc(self) }
            #[inline(always)]
            fn from_acc(acc: $acc) -> Self { $from_acc(acc) }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { $from_f64(x) }
        }

        impl Real for $t {
            const LOWEST: Self = <$t>::NEG_INFINITY;
            const HIGHEST: Self = <$t>::INFINITY;
            const NAN: Self = <$t>::NAN;
            // The comparison, one instruction, gives `other` if either is NaN; the second test keeps that of `self`.
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                let larger = if self > other { self } else { other };
                if self.is_nan() { self } else { larger }
            }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                let smaller = if self < other { self } else { other };
                if self.is_nan() { self } else { smaller }
            }
            #[inline(always)]
            fn is_nan(self) -> bool { <$t>::is_nan(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { $to_f64(self) }
        }

        impl Float for $t {
            #[inline(always)]
            fn to_f32(self) -> f32 { $to_f32(self) }
            #[inline(always)]
            fn from_f32(x: f32) -> Self { $from_f32(x) }
        }
    )*};
}

use std::convert::identity;

float! {
    f32, f32, 0.0, 1.0, identity, identity, identity, identity, f64::from, |x| x as f32;
    f64, f64, 0.0, 1.0, identity, identity, |x| x as f32, f64::from, identity, identity;
    f16, f32, f16::ZERO, f16::ONE, f16::to_f32, f16::from_f32, f16::to_f32, f16::from_f32, f16::to_f64, f16::from_f64;
    bf16, f32, bf16::ZERO, bf16::ONE, bf16::to_f32, bf16::from_f32, bf16::to_f32, bf16::from_f32, bf16::to_f64, bf16::from_f64;
}

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl Element for Complex<$t> {}

        impl Num for Complex<$t> {
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
            type Acc = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn div(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn to_acc(self) -> Self { self }
            #[inline(always)]
            fn from_acc(acc: Self) -> Self { acc }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { Complex::new(x as $t, 0.0) }
        }
    )*};
}

complex!(f32, f64);
