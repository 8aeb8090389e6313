//! The inverse error function and the normal quantile.

use std::f32::consts::SQRT_2;

use super::{log_normal, poly};
use crate::num::isa::Isa;

/// `erfinv(x) / x` as a function of `w = -ln(1 - x^2)`, good up to `w = 17.6`.
#[inline(always)]
fn ratio<I: Isa>(w: f32) -> f32 {
    const CENTRE: [f32; 10] = [
        1.501_409_4,
        0.246_640_28,
        -0.004_177_386_4,
        -0.001_252_744_1,
        0.000_218_344_1,
        -4.962_051_7e-6,
        -3.462_614_6e-6,
        4.658_923e-7,
        2.322_538_4e-8,
        -8.771_158e-9,
    ];
    const TAIL: [f32; 10] = [
        2.832_976_8,
        1.001_674_8,
        0.009_444_141,
        -0.007_634_731,
        0.005_696_431_3,
        -0.003_609_443_8,
        0.001_460_975_2,
        -3.283_262e-5,
        -0.000_290_535_8,
        9.823_841e-5,
    ];
    let centre = poly::<I, 10>(w - 2.5, CENTRE);
    let tail = poly::<I, 10>(w.sqrt() - 3.0, TAIL);
    if w < 5.0 { centre } else { tail }
}

/// `1 - x^2`, or `4 p (1 - p)`, below which [`erfinv`] and [`ndtri`] are not good.
const NEAR: f32 = 3e-8;

#[inline(always)]
pub(crate) fn erfinv<I: Isa>(x: f32) -> f32 {
    // `+ 0.0` turns -0 to 0, which TensorFlow gives for both.
    x * ratio::<I>(-log_normal::<I>((1.0 - x) * (1.0 + x))) + 0.0
}

#[inline(always)]
pub(crate) fn ndtri<I: Isa>(p: f32) -> f32 {
    SQRT_2 * (2.0 * p - 1.0) * ratio::<I>(-log_normal::<I>(4.0 * p * (1.0 - p)))
}

/// Whether the product of the distances to the ends is too small, or not a number: `(1 - x)(1 + x)` or `4 p (1 - p)`.
#[inline(always)]
pub(crate) fn is_far(product: f32) -> bool {
    product < NEAR || product.is_nan()
}
