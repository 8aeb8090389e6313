//! The error function.

use super::{exp, poly};
use crate::num::isa::{Isa, fma};

#[inline(always)]
pub(crate) fn erf<I: Isa>(x: f32) -> f32 {
    const P: [f32; 7] = [
        std::f32::consts::FRAC_2_SQRT_PI,
        -0.376_126_26,
        0.112_835_854,
        -0.026_853_811,
        0.005_188_326,
        -0.000_801_017_8,
        7.853_813e-5,
    ];
    // -ln erfc on [1, 4]
    const Q: [f32; 8] = [
        -0.000_121_474_375,
        1.129_270_8,
        0.633_816_3,
        0.107_790_19,
        -0.024_820_272,
        0.004_064_366_7,
        -0.000_413_923_12,
        1.945_249_6e-5,
    ];
    let a = x.abs();
    let small = x * poly::<I, 7>(x * x, P);
    let t = if a > 4.0 { 4.0 } else { a };
    let large = (1.0 - exp::<I>(-poly::<I, 8>(t, Q))).copysign(x);
    if a < 1.0 { small } else { large }
}

#[inline(always)]
pub(crate) fn erfc<I: Isa>(x: f32) -> f32 {
    // e^(a^2) erfc(a) in 1 / (1 + a/2)
    const P: [f32; 12] = [
        2.867_864_6e-6,
        0.282_007_43,
        0.283_249_97,
        0.238_127_92,
        0.217_440_4,
        -0.041_753_7,
        0.236_816_14,
        -0.310_944_56,
        -0.009_230_697,
        0.205_859_23,
        -0.127_027_21,
        0.025_452_204,
    ];
    let a = x.abs();
    let a = if a > 10.5 { 10.5 } else { a };
    // a^2 as a square and a small rest: a rounding error in it would be multiplied by a^2.
    let (square, correction) = if I::FMA {
        let square = a * a;
        (square, 1.0 - fma::<I>(a, a, -square))
    } else {
        let head = f32::from_bits(a.to_bits() & 0xffff_f000);
        let rest = (head - a) * (a + head);
        const E: [f32; 6] = [1.0, 1.0, 0.5, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0];
        (head * head, poly::<I, 6>(rest, E))
    };
    let tail = poly::<I, 12>(1.0 / fma::<I>(0.5, a, 1.0), P) * correction * exp::<I>(-square);
    if x < 0.0 { 2.0 - tail } else { tail }
}
