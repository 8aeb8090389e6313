//! Hyperbolic functions and their inverses (`tanh` stands with the exponential).

use super::exp::exp_shifted;
use super::{log1p, poly};
use crate::num::isa::Isa;

#[inline(always)]
pub(crate) fn sinh<I: Isa>(x: f32) -> f32 {
    const P: [f32; 4] = [0.166_666_67, 0.008_333_35, 0.000_198_361_6, 2.816_950_9e-6];
    let x2 = x * x;
    let small = x + x * x2 * poly::<I, 4>(x2, P);
    let half = exp_shifted::<I>(x.abs(), 1);
    let large = (half - 0.25 / half).copysign(x);
    if x.abs() < 1.0 { small } else { large }
}

#[inline(always)]
pub(crate) fn cosh<I: Isa>(x: f32) -> f32 {
    let half = exp_shifted::<I>(x.abs(), 1);
    half + 0.25 / half
}

/// From here on `sqrt(a^2 ± 1)` is `a`, and `a^2` is about to overflow.
const LARGE: f32 = 1e9;

#[inline(always)]
pub(crate) fn asinh<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let a2 = a * a;
    let inner = a + a2 / (1.0 + (a2 + 1.0).sqrt());
    let large = a > LARGE;
    let result = log1p::<I>(if large { a } else { inner })
        + if large { std::f32::consts::LN_2 } else { 0.0 };
    result.copysign(x)
}

#[inline(always)]
pub(crate) fn acosh<I: Isa>(x: f32) -> f32 {
    let t = x - 1.0;
    let inner = t + (2.0 * t + t * t).sqrt();
    let large = x > LARGE;
    let result = log1p::<I>(if large { x } else { inner })
        + if large { std::f32::consts::LN_2 } else { 0.0 };
    if x < 1.0 { f32::NAN } else { result }
}

#[inline(always)]
pub(crate) fn atanh<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    (0.5 * log1p::<I>(2.0 * a / (1.0 - a))).copysign(x)
}
