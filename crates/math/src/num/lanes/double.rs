//! The exponential and the logarithm in double precision, and what is built on them.

use crate::num::isa::{Isa, fma64};

/// Adding it rounds to the nearest integer, which then stands in the low mantissa bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
const LN2_HI: f64 = 6.931_471_803_691_238e-1;
const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

#[inline(always)]
fn poly64<I: Isa, const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let x2 = x * x;
    let (mut high, mut low) = (coefficients[N - 1], coefficients[N - 2]);
    let mut i = N - 2;
    while i >= 2 {
        high = fma64::<I>(high, x2, coefficients[i - 1]);
        low = fma64::<I>(low, x2, coefficients[i - 2]);
        i -= 2;
    }
    if N.is_multiple_of(2) {
        fma64::<I>(high, x, low)
    } else {
        fma64::<I>(fma64::<I>(high, x, low), x, coefficients[0])
    }
}

/// 2 to an integer power in the normal range.
#[inline(always)]
fn pow2(k: i64) -> f64 {
    f64::from_bits((k.wrapping_add(1023) as u64) << 52)
}

/// Splits `x = k ln 2 + r`; gives `k` and `e^r - 1`.
#[inline(always)]
fn reduced<I: Isa>(x: f64) -> (i64, f64) {
    const P: [f64; 11] = [
        0.5,
        0.166_666_666_666_666_82,
        0.041_666_666_666_666_09,
        0.008_333_333_333_316_921,
        0.001_388_888_888_911_718_8,
        0.000_198_412_698_966_725_23,
        2.480_158_692_468_918_4e-5,
        2.755_723_456_599_878_6e-6,
        2.755_758_275_440_132_5e-7,
        2.511_214_228_289_390_6e-8,
        2.082_654_320_811_266_7e-9,
    ];
    let shifted = fma64::<I>(x, std::f64::consts::LOG2_E, ROUND);
    let k = (shifted.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64);
    let n = shifted - ROUND;
    let r = fma64::<I>(n, -LN2_LO, fma64::<I>(n, -LN2_HI, x));
    (k, fma64::<I>(r * r, poly64::<I, 11>(r, P), r))
}

#[inline(always)]
pub(crate) fn exp64<I: Isa>(x: f64) -> f64 {
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let (k, y) = reduced::<I>(x);
    // An arithmetic shift of 64-bit lanes is dear; `k` is small, so a biased logical one does.
    let half = (k.wrapping_add(4096) as u64 >> 1).wrapping_sub(2048) as i64;
    (1.0 + y) * pow2(half) * pow2(k.wrapping_sub(half))
}

#[inline(always)]
fn expm1_64<I: Isa>(x: f64) -> f64 {
    let (k, y) = reduced::<I>(x);
    let scale = pow2(k);
    fma64::<I>(scale, y, scale - 1.0)
}

#[inline(always)]
pub(crate) fn tanh64<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 19.1 { 19.1 } else { a };
    let e = expm1_64::<I>(2.0 * a);
    (e / (e + 2.0)).copysign(x)
}

#[inline(always)]
pub(crate) fn sigmoid64<I: Isa>(x: f64) -> f64 {
    1.0 / (1.0 + exp64::<I>(-x))
}

#[inline(always)]
pub(crate) fn log64<I: Isa>(x: f64) -> f64 {
    const P: [f64; 8] = [
        0.666_666_666_666_666_6,
        0.400_000_000_000_062_53,
        0.285_714_285_690_810_5,
        0.222_222_226_477_517_66,
        0.181_817_755_763_465_82,
        0.153_870_950_727_287_68,
        0.132_500_134_870_227_8,
        0.132_523_347_461_900_28,
    ];
    // Bits of sqrt(1/2), rounded down to the top word.
    const SQRT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny {
        x * 18_014_398_509_481_984.0
    } else {
        x
    };
    let offset = scaled.to_bits().wrapping_sub(SQRT_HALF);
    // The exponent as a double, by way of the mantissa of a large one: there is no conversion of 64-bit lanes.
    let biased = (offset >> 52).wrapping_add(2048) & 0xfff;
    let e = f64::from_bits(0x4330_0000_0000_0000 | biased) - 4_503_599_627_372_544.0;
    let e = e - if tiny { 54.0 } else { 0.0 };
    let m = f64::from_bits(
        scaled
            .to_bits()
            .wrapping_sub(offset & 0xfff0_0000_0000_0000),
    );
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let t = s * s;
    let r = t * poly64::<I, 8>(t, P);
    let half = 0.5 * f * f;
    let tail = fma64::<I>(s, half + r, e * LN2_LO);
    let result = e * LN2_HI - ((half - tail) - f);
    let bits = x.to_bits();
    let other = if bits == f64::INFINITY.to_bits() {
        f64::INFINITY
    } else {
        f64::NAN
    };
    let other = if bits << 1 == 0 {
        f64::NEG_INFINITY
    } else {
        other
    };
    if x > 0.0 && x < f64::INFINITY {
        result
    } else {
        other
    }
}
