//! The power function, through a double-precision logarithm: a float one would lose eight bits in the exponent.

use super::log::split;
use super::{poly, pow2};
use crate::num::isa::{Isa, fma64};

/// log2 of a positive `x`; infinite at 0 and infinity.
#[inline(always)]
fn log2<I: Isa>(x: f32) -> f64 {
    const P: [f64; 6] = [
        2.885_390_081_777_849,
        0.961_796_694_114_913_1,
        0.577_077_941_897_080_3,
        0.412_209_300_772_206_97,
        0.319_903_666_489_231_1,
        0.282_929_809_704_440_3,
    ];
    let tiny = x < f32::MIN_POSITIVE;
    let (e, m) = split(if tiny { x * 33_554_432.0 } else { x });
    let m = f64::from(m);
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut sum = P[5];
    for i in (0..5).rev() {
        sum = fma64::<I>(sum, s2, P[i]);
    }
    let result = fma64::<I>(s, sum, f64::from(e) - if tiny { 25.0 } else { 0.0 });
    let result = if x == f32::INFINITY {
        f64::INFINITY
    } else {
        result
    };
    if x == 0.0 { f64::NEG_INFINITY } else { result }
}

/// 2 to the power of `z`.
#[inline(always)]
fn exp2<I: Isa>(z: f64) -> f32 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const P: [f32; 7] = [
        std::f32::consts::LN_2,
        0.240_226_5,
        0.055_504_102,
        0.009_618_035,
        0.001_333_395,
        0.000_154_680_22,
        1.519_503_2e-5,
    ];
    let z = if z > 130.0 { 130.0 } else { z };
    let z = if z < -155.0 { -155.0 } else { z };
    let shifted = z + ROUND;
    let k = shifted.to_bits() as i32;
    let f = (z - (shifted - ROUND)) as f32;
    let half = k >> 1;
    (1.0 + f * poly::<I, 7>(f, P)) * pow2(half) * pow2(k.wrapping_sub(half))
}

#[inline(always)]
pub(crate) fn pow<I: Isa>(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let size = exp2::<I>(f64::from(y) * log2::<I>(a));
    let size = if a.is_nan() || y.is_nan() {
        f32::NAN
    } else {
        size
    };
    let whole = y.trunc() == y;
    // Above 2^24 every float is even; halving keeps the test in float arithmetic.
    let odd = whole && (y * 0.5).trunc() != y * 0.5;
    let signed = if x.is_sign_negative() && odd {
        -size
    } else {
        size
    };
    let undefined = x < 0.0 && x != f32::NEG_INFINITY && !whole;
    let result = if undefined { f32::NAN } else { signed };
    let result = if a == 1.0 && y.is_infinite() {
        1.0
    } else {
        result
    };
    if x == 1.0 || y == 0.0 { 1.0 } else { result }
}
