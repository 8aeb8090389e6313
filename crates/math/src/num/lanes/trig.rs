//! Trigonometric functions and their inverses.
//!
//! Arguments are reduced modulo pi/2 in double precision, which is exact enough below [`HUGE`]; callers send larger ones to
//! the standard library.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::poly;
use crate::num::isa::{Isa, fma, fma64};

const HUGE: f32 = 1e6;

/// Whether `sin`, `cos` and `tan` are not good for `x`.
#[inline(always)]
pub(crate) fn is_huge(x: f32) -> bool {
    x.abs() > HUGE
}

/// The quadrant, and sine and cosine of the rest.
#[inline(always)]
fn reduced<I: Isa>(x: f32) -> (i32, f32, f32) {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // pi/2 with 33 bits, so that multiples below 2^20 are exact without fusing too, and what is missing.
    const HI: f64 = 1.570_796_326_734_125_6;
    const LO: f64 = 6.077_100_506_506_192e-11;
    let x = f64::from(x);
    let shifted = fma64::<I>(x, std::f64::consts::FRAC_2_PI, ROUND);
    let quadrant = shifted.to_bits() as i32;
    let n = shifted - ROUND;
    let r = fma64::<I>(n, -LO, fma64::<I>(n, -HI, x)) as f32;
    let r2 = r * r;
    const S: [f32; 4] = [
        -0.166_666_67,
        0.008_333_329,
        -0.000_198_393_04,
        2.718_046_7e-6,
    ];
    const C: [f32; 4] = [
        0.041_666_668,
        -0.001_388_888_3,
        2.479_945_2e-5,
        -2.720_505_8e-7,
    ];
    let sine = r + r * r2 * poly::<I, 4>(r2, S);
    // Keeps -0.
    let sine = if r == 0.0 { r } else { sine };
    let cosine = (1.0 - 0.5 * r2) + r2 * r2 * poly::<I, 4>(r2, C);
    (quadrant, sine, cosine)
}

#[inline(always)]
fn flip(x: f32, negative: bool) -> f32 {
    f32::from_bits(x.to_bits() ^ (u32::from(negative) << 31))
}

#[inline(always)]
pub(crate) fn sin<I: Isa>(x: f32) -> f32 {
    let (quadrant, sine, cosine) = reduced::<I>(x);
    let value = if quadrant & 1 == 0 { sine } else { cosine };
    flip(value, quadrant & 2 != 0)
}

#[inline(always)]
pub(crate) fn cos<I: Isa>(x: f32) -> f32 {
    let (quadrant, sine, cosine) = reduced::<I>(x);
    let value = if quadrant & 1 == 0 { cosine } else { sine };
    flip(value, quadrant.wrapping_add(1) & 2 != 0)
}

#[inline(always)]
pub(crate) fn tan<I: Isa>(x: f32) -> f32 {
    let (quadrant, sine, cosine) = reduced::<I>(x);
    let odd = quadrant & 1 != 0;
    let (up, down) = if odd { (-cosine, sine) } else { (sine, cosine) };
    up / down
}

/// arcsine of the reduced argument: `(s, 2 s' or s')` parts shared by `asin` and `acos`.
#[inline(always)]
fn asin_reduced<I: Isa>(a: f32) -> (bool, f32) {
    const P: [f32; 6] = [
        0.166_666_6,
        0.075_005_04,
        0.044_516_98,
        0.031_807_53,
        0.014_439_238,
        0.037_515_64,
    ];
    let large = a > 0.5;
    let z = if large { 0.5 * (1.0 - a) } else { a * a };
    let s = if large { z.sqrt() } else { a };
    (large, s + s * z * poly::<I, 6>(z, P))
}

#[inline(always)]
pub(crate) fn asin<I: Isa>(x: f32) -> f32 {
    let (large, p) = asin_reduced::<I>(x.abs());
    (if large { FRAC_PI_2 - 2.0 * p } else { p }).copysign(x)
}

#[inline(always)]
pub(crate) fn acos<I: Isa>(x: f32) -> f32 {
    let (large, p) = asin_reduced::<I>(x.abs());
    let signed = p.copysign(x);
    let small = FRAC_PI_2 - signed;
    let outer = if x < 0.0 { PI - 2.0 * p } else { 2.0 * p };
    if large { outer } else { small }
}

/// `base + atan(up / down)` for a quotient of at most `tan(pi/8)` in size.
#[inline(always)]
fn atan_near<I: Isa>(up: f32, down: f32, base: f32) -> f32 {
    const P: [f32; 4] = [-0.333_329_56, 0.199_779_26, -0.138_798_46, 0.080_602_95];
    let t = up / down;
    let t2 = t * t;
    base + fma::<I>(t * t2, poly::<I, 4>(t2, P), t)
}

/// arctangent of a number that is not negative.
///
/// The angle is turned by 45 or 90 degrees first: what is left is small, and one division does for all cases.
#[inline(always)]
fn atan_positive<I: Isa>(a: f32) -> f32 {
    const TAN_PI_8: f32 = 0.414_213_57;
    const TAN_3_PI_8: f32 = 2.414_213_7;
    let (middle, steep) = (a > TAN_PI_8, a > TAN_3_PI_8);
    let up = if middle { a - 1.0 } else { a };
    let up = if steep { -1.0 } else { up };
    let down = if middle { a + 1.0 } else { 1.0 };
    let down = if steep { a } else { down };
    let base = if middle { FRAC_PI_4 } else { 0.0 };
    let base = if steep { FRAC_PI_2 } else { base };
    atan_near::<I>(up, down, base)
}

#[inline(always)]
pub(crate) fn atan<I: Isa>(x: f32) -> f32 {
    atan_positive::<I>(x.abs()).copysign(x)
}

#[inline(always)]
pub(crate) fn atan2<I: Isa>(y: f32, x: f32) -> f32 {
    let (ax, ay) = (x.abs(), y.abs());
    let steep = ay > ax;
    let (low, high) = if steep { (ax, ay) } else { (ay, ax) };
    let ratio = low / high;
    // 0/0 counts as 0, inf/inf as 1.
    let ratio = if high == 0.0 { 0.0 } else { ratio };
    let ratio = if low == f32::INFINITY { 1.0 } else { ratio };
    let p = atan_positive::<I>(ratio);
    let p = if steep { FRAC_PI_2 - p } else { p };
    let p = if x.is_sign_negative() { PI - p } else { p };
    let p = if x.is_nan() || y.is_nan() {
        f32::NAN
    } else {
        p
    };
    p.copysign(y)
}
