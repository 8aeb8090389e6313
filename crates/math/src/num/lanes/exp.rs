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

/// As a quotient of two polynomials in the square: half as many operations as through the exponential.
#[inline(always)]
pub(crate) fn tanh<I: Isa>(x: f32) -> f32 {
    const P: [f32; 5] = [
        1.0,
        0.133_797_23,
        0.003_494_040_7,
        2.058_357_7e-5,
        1.331_919_3e-8,
    ];
    const Q: [f32; 5] = [
        1.0,
        0.467_130_4,
        0.025_871_097,
        0.000_328_310_26,
        7.762_072e-7,
    ];
    // From here on the nearest float is 1.
    const LARGE: f32 = 9.02;
    let a = if x > LARGE { LARGE } else { x };
    let a = if a < -LARGE { -LARGE } else { a };
    let a2 = a * a;
    let y = a * poly::<I, 5>(a2, P) / poly::<I, 5>(a2, Q);
    // Rounding may go a little too far.
    let y = if y > 1.0 { 1.0 } else { y };
    if y < -1.0 { -1.0 } else { y }
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
