//! The exponential and what is built on it.

use super::{log1p_finite, poly, pow2};
use crate::num::isa::{Isa, fma};

/// Adding it rounds to the nearest integer, which then stands in the low mantissa bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 with a short mantissa, so that small multiples are exact, and what is missing.
const LN2_HI: f32 = 0.693_359_4;
const LN2_LO: f32 = -2.121_944_4e-4;

/// Splits `x = k ln 2 + r`; gives `k` and `e^r - 1`.
#[inline(always)]
fn reduced<I: Isa>(x: f32) -> (i32, f32) {
    let shifted = fma::<I>(x, std::f32::consts::LOG2_E, ROUND);
    let k = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let n = shifted - ROUND;
    let r = fma::<I>(n, -LN2_LO, fma::<I>(n, -LN2_HI, x));
    const P: [f32; 5] = [
        0.499_999_94,
        0.166_665_15,
        0.041_668_456,
        0.008_369_418,
        0.001_381_316_8,
    ];
    (k, fma::<I>(r * r, poly::<I, 5>(r, P), r))
}

/// `e^x / 2^shift`, with the overflow limit moved accordingly; `shift` is 0 or 1.
#[inline(always)]
pub(super) fn exp_shifted<I: Isa>(x: f32, shift: i32) -> f32 {
    let x = if x > 90.0 { 90.0 } else { x };
    let x = if x < -105.0 { -105.0 } else { x };
    let (k, y) = reduced::<I>(x);
    let k = k.wrapping_sub(shift);
    // Two factors: one alone cannot express results near overflow or below the normal range.
    let half = k >> 1;
    (1.0 + y) * pow2(half) * pow2(k.wrapping_sub(half))
}

#[inline(always)]
pub(crate) fn exp<I: Isa>(x: f32) -> f32 {
    exp_shifted::<I>(x, 0)
}

#[inline(always)]
pub(crate) fn expm1<I: Isa>(x: f32) -> f32 {
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -18.0 { -18.0 } else { clamped };
    let (k, y) = reduced::<I>(clamped);
    let half_scale = pow2(k.wrapping_sub(1));
    let result = fma::<I>(half_scale, y, half_scale - 0.5) * 2.0;
    // Keeps -0.
    if x == 0.0 { x } else { result }
}

#[inline(always)]
pub(crate) fn tanh<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 9.02 { 9.02 } else { a };
    // As `expm1`, but nothing here is negative or overflows.
    let (k, y) = reduced::<I>(2.0 * a);
    let scale = pow2(k);
    let e = fma::<I>(scale, y, scale - 1.0);
    (e / (e + 2.0)).copysign(x)
}

#[inline(always)]
pub(crate) fn sigmoid<I: Isa>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<I>(-x))
}

#[inline(always)]
pub(crate) fn softplus<I: Isa>(x: f32) -> f32 {
    let positive = if x < 0.0 { 0.0 } else { x };
    positive + log1p_finite::<I>(exp::<I>(-x.abs()))
}
