//! Logarithms.

use super::{poly, pow2};
use crate::num::isa::{Isa, fma};

const LN2_HI: f32 = 0.693_359_4;
const LN2_LO: f32 = -2.121_944_4e-4;
/// Bits of sqrt(1/2): mantissas are taken from there to sqrt(2).
const SQRT_HALF: u32 = 0x3f35_04f3;

/// Splits a positive normal `x = 2^e m` with `m` between sqrt(1/2) and sqrt(2).
#[inline(always)]
pub(super) fn split(x: f32) -> (i32, f32) {
    let e = (x.to_bits().wrapping_sub(SQRT_HALF) as i32) >> 23;
    let m = f32::from_bits(x.to_bits().wrapping_sub((e as u32) << 23));
    (e, m)
}

/// `ln(1 + f) + e ln 2` for `1 + f` between sqrt(1/2) and sqrt(2).
#[inline(always)]
fn log_reduced<I: Isa>(f: f32, e: f32) -> f32 {
    const P: [f32; 9] = [
        0.333_333_13,
        -0.250_000_1,
        0.200_021_18,
        -0.166_679_96,
        0.142_195_61,
        -0.124_055_92,
        0.118_881_054,
        -0.116_756_13,
        0.067_467_12,
    ];
    let f2 = f * f;
    let tail = fma::<I>(e, LN2_LO, f2 * f * poly::<I, 9>(f, P));
    let tail = fma::<I>(-0.5, f2, tail);
    fma::<I>(e, LN2_HI, f + tail)
}

/// Whether `x` is positive, finite and not subnormal.
#[inline(always)]
pub(crate) fn is_normal(x: f32) -> bool {
    const MIN: u32 = f32::MIN_POSITIVE.to_bits();
    x.to_bits().wrapping_sub(MIN) < f32::INFINITY.to_bits() - MIN
}

/// The logarithm where [`is_normal`] holds.
#[inline(always)]
pub(crate) fn log_normal<I: Isa>(x: f32) -> f32 {
    let (e, m) = split(x);
    log_reduced::<I>(m - 1.0, e as f32)
}

#[inline(always)]
pub(crate) fn log<I: Isa>(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 33_554_432.0 } else { x };
    let (e, m) = split(scaled);
    let e = e as f32 - if tiny { 25.0 } else { 0.0 };
    let result = log_reduced::<I>(m - 1.0, e);
    // Tests on the bits: comparisons of floats would be merged into one slow classification.
    let bits = x.to_bits();
    let other = if bits == f32::INFINITY.to_bits() {
        f32::INFINITY
    } else {
        f32::NAN
    };
    let other = if bits << 1 == 0 {
        f32::NEG_INFINITY
    } else {
        other
    };
    if bits.wrapping_sub(1) < f32::INFINITY.to_bits() - 1 {
        result
    } else {
        other
    }
}

/// `log1p` for finite `x` above -1.
#[inline(always)]
pub(super) fn log1p_finite<I: Isa>(x: f32) -> f32 {
    let u = 1.0 + x;
    // What rounding took from the sum, exactly.
    let back = u - 1.0;
    let lost = (x - back) + (1.0 - (u - back));
    let (e, m) = split(u);
    let inverse = e.wrapping_neg();
    let scale = pow2(if inverse < -126 { -126 } else { inverse });
    let result = log_reduced::<I>(fma::<I>(lost, scale, m - 1.0), e as f32);
    // Keeps -0.
    if x == 0.0 { x } else { result }
}

#[inline(always)]
pub(crate) fn log1p<I: Isa>(x: f32) -> f32 {
    let result = log1p_finite::<I>(x);
    let other = if x.to_bits() == f32::INFINITY.to_bits() {
        f32::INFINITY
    } else {
        f32::NAN
    };
    let other = if x == -1.0 { f32::NEG_INFINITY } else { other };
    if x > -1.0 && x < f32::INFINITY {
        result
    } else {
        other
    }
}
