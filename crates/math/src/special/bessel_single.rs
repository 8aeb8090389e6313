//! Bessel functions for `f32`, as in [`super::single`]: sums of Chebyshev's polynomials in double precision, without a branch.
//!
//! Relative errors are below 5e-9, for the waves near their zeros below 1e-11 of the wave. What is far away or has no value goes,
//! one by one, to the functions in double precision, which so have the last word on zero, infinity and NaN.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, PI};

use super::single::{at_least, at_most, chebyshev, i0e_lane, i1e_lane};
use crate::num::isa::{Isa, fma64, multiversion};
use crate::num::lanes::{exp64, log64};

/// Declares loops over `f32` slices, as long as the shorter one.
macro_rules! loops {
    ($($name:ident = $function:ident, $body:ident, $low:expr, $high:expr, $exact:expr;)*) => {$(
        multiversion! {
            #[doc = concat!("[`super::", stringify!($name), "`] of each.")]
            pub fn $name(x: &[f32], out: &mut [f32]) = $body with isa;
        }

        #[inline(always)]
        fn $body<I: Isa>(x: &[f32], out: &mut [f32]) {
            for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                let n = x.len().min(out.len());
                let (x, out) = (&x[..n], &mut out[..n]);
                let mut strange = false;
                for i in 0..n {
                    out[i] = $function::<I>(f64::from(x[i])) as f32;
                    strange |= !(x[i] > $low && x[i] < $high);
                }
                if strange {
                    one_by_one(x, out, $low, $high, $exact);
                }
            }
        }
    )*};
}

/// So many numbers are looked at together for strange ones.
const BLOCK: usize = 256;

loops! {
    i0 = i0_lane, i0_loop, -LARGE, LARGE, super::i0;
    i1 = i1_lane, i1_loop, -LARGE, LARGE, super::i1;
    k0 = k0_lane, k0_loop, 0.0, LARGE, super::k0;
    k0e = k0e_lane, k0e_loop, 0.0, f32::INFINITY, super::k0e;
    k1 = k1_lane, k1_loop, 0.0, LARGE, super::k1;
    k1e = k1e_lane, k1e_loop, 0.0, f32::INFINITY, super::k1e;
    j0 = j0_lane, j0_loop, -FAR, FAR, super::j0;
    j1 = j1_lane, j1_loop, -FAR, FAR, super::j1;
    y0 = y0_lane, y0_loop, 0.0, FAR, super::y0;
    y1 = y1_lane, y1_loop, 0.0, FAR, y1_in_single;
}

/// The functions of `i` and `k` are beyond any `f32` from some place below.
const LARGE: f32 = 120.0;
/// So far, rounding to quarter turns leaves enough digits.
const FAR: f32 = 1e6;

/// Replaces what is not between `low` and `high`.
#[cold]
fn one_by_one(x: &[f32], out: &mut [f32], low: f32, high: f32, exact: fn(f64) -> f64) {
    for (x, out) in x.iter().zip(out) {
        if !(*x > low && *x < high) {
            *out = exact(f64::from(*x)) as f32;
        }
    }
}

/// In single precision TensorFlow's has no value at zero.
fn y1_in_single(x: f64) -> f64 {
    if x == 0.0 { f64::NAN } else { super::y1(x) }
}

#[inline(always)]
fn i0_lane<I: Isa>(x: f64) -> f64 {
    i0e_lane::<I>(x) * exp64::<I>(x.abs())
}

#[inline(always)]
fn i1_lane<I: Isa>(x: f64) -> f64 {
    i1e_lane::<I>(x) * exp64::<I>(x.abs())
}

/// Where the sums with a logarithm end.
const LOGARITHM: f64 = 2.0;

/// One value of `k`: below [`LOGARITHM`], and above times exp(x).
struct Second {
    near: f64,
    far: f64,
}

#[inline(always)]
fn second0<I: Isa>(x: f64) -> Second {
    const FIRST: [f64; 6] = [
        1.602_922_806_807_963_3,
        0.638_809_625_651_177,
        0.036_854_859_694_361_05,
        0.000_982_878_127_251_183_7,
        1.498_365_418_783_898e-05,
        1.473_793_745_561_854e-07,
    ];
    const NEAR: [f64; 6] = [
        0.843_397_727_577_222_3,
        0.787_078_990_859_296_1,
        0.061_525_778_602_440_274,
        0.001_945_894_614_184_827,
        3.324_799_864_349_673_6e-05,
        3.556_243_559_632_577e-07,
    ];
    const FAR: [f64; 9] = [
        1.220_151_540_997_931,
        -0.031_448_101_273_307_75,
        0.001_569_883_881_603_962_1,
        -0.000_128_495_494_998_612_37,
        1.394_981_249_987_769_8e-05,
        -1.831_750_994_752_596e-06,
        2.766_628_016_334_822e-07,
        -4.652_532_354_345_261_5e-08,
        8.216_293_406_398_434e-09,
    ];
    let (low, high) = (at_most(x, LOGARITHM), at_least(x, LOGARITHM));
    let t = fma64::<I>(0.5 * low, low, -1.0);
    let first = chebyshev::<I, _>(t, FIRST);
    Second {
        near: fma64::<I>(-log64::<I>(low), first, chebyshev::<I, _>(t, NEAR)),
        far: chebyshev::<I, _>(2.0 * LOGARITHM / high - 1.0, FAR) / high.sqrt(),
    }
}

#[inline(always)]
fn second1<I: Isa>(x: f64) -> Second {
    // Both divided by x.
    const FIRST: [f64; 6] = [
        0.641_758_996_991_187_3,
        0.147_539_320_149_193_33,
        0.005_898_742_680_020_589_5,
        0.000_119_881_371_746_341_96,
        1.473_916_510_489_707_2e-06,
        1.213_775_744_727_622_4e-08,
    ];
    const NEAR: [f64; 6] = [
        -0.508_923_784_532_082_5,
        -0.211_435_659_776_345_5,
        -0.010_725_575_310_322_625,
        -0.000_251_323_358_648_284_76,
        -3.411_200_251_971_872_3e-06,
        -3.026_615_950_455_872e-08,
    ];
    const FAR: [f64; 9] = [
        1.360_313_095_352_545_5,
        0.103_923_736_460_079_96,
        -0.002_857_816_852_461_650_3,
        0.000_195_215_517_366_475_45,
        -1.936_197_834_598_079_4e-05,
        2.406_479_790_836_993e-06,
        -3.501_747_579_459_962_7e-07,
        5.731_865_750_037_892e-08,
        -9.926_727_770_808_283e-09,
    ];
    let (low, high) = (at_most(x, LOGARITHM), at_least(x, LOGARITHM));
    let t = fma64::<I>(0.5 * low, low, -1.0);
    let first = chebyshev::<I, _>(t, FIRST);
    let sum = fma64::<I>(log64::<I>(low), first, chebyshev::<I, _>(t, NEAR));
    Second {
        near: fma64::<I>(low, sum, 1.0 / low),
        far: chebyshev::<I, _>(2.0 * LOGARITHM / high - 1.0, FAR) / high.sqrt(),
    }
}

/// The value itself.
#[inline(always)]
fn decayed<I: Isa>(x: f64, Second { near, far }: Second) -> f64 {
    let far = far * exp64::<I>(-x);
    if x > LOGARITHM { far } else { near }
}

/// The value times exp(x).
#[inline(always)]
fn scaled<I: Isa>(x: f64, Second { near, far }: Second) -> f64 {
    let near = near * exp64::<I>(at_most(x, LOGARITHM));
    if x > LOGARITHM { far } else { near }
}

#[inline(always)]
fn k0_lane<I: Isa>(x: f64) -> f64 {
    decayed::<I>(x, second0::<I>(x))
}

#[inline(always)]
fn k0e_lane<I: Isa>(x: f64) -> f64 {
    scaled::<I>(x, second0::<I>(x))
}

#[inline(always)]
fn k1_lane<I: Isa>(x: f64) -> f64 {
    decayed::<I>(x, second1::<I>(x))
}

#[inline(always)]
fn k1e_lane<I: Isa>(x: f64) -> f64 {
    scaled::<I>(x, second1::<I>(x))
}

/// From here on the functions are written as waves.
const WAVES: f64 = 5.0;

/// Where the sums of the first kind are zero, squared.
const ZEROS0: [f64; 2] = [5.783_185_962_946_783, 30.471_262_343_662_087];
const ZERO1: f64 = 14.681_970_642_123_895;

/// x² for the sums near zero, and their variable from -1 to 1.
#[inline(always)]
fn near<I: Isa>(x: f64) -> (f64, f64) {
    let low = at_most(x.abs(), WAVES);
    let square = low * low;
    const SCALE: f64 = 2.0 / (WAVES * WAVES);
    (square, fma64::<I>(SCALE, square, -1.0))
}

#[inline(always)]
fn near_j0<I: Isa>(x: f64) -> f64 {
    const NEAR: [f64; 9] = [
        0.003_433_775_195_443_006_4,
        -0.001_974_794_511_586_004_2,
        0.000_247_280_234_321_152_06,
        -1.795_165_594_529_786_3e-05,
        8.614_299_472_458_465e-07,
        -2.952_142_563_167_831e-08,
        7.609_233_562_622_708e-10,
        -1.531_306_259_470_549e-11,
        2.474_922_871_023_099_5e-13,
    ];
    let (square, t) = near::<I>(x);
    (square - ZEROS0[0]) * (square - ZEROS0[1]) * chebyshev::<I, _>(t, NEAR)
}

/// Divided by x.
#[inline(always)]
fn near_j1<I: Isa>(x: f64) -> f64 {
    const NEAR: [f64; 10] = [
        -0.018_028_415_801_166_278,
        0.013_661_487_082_063_361,
        -0.002_163_265_155_923_823_5,
        0.000_190_949_010_366_010_8,
        -1.081_617_473_694_196_6e-05,
        4.278_886_056_466_617e-07,
        -1.251_337_566_707_949_5e-08,
        2.818_348_793_925_951e-10,
        -5.042_579_027_947_358e-12,
        7.346_337_080_327_281e-14,
    ];
    let (square, t) = near::<I>(x);
    (square - ZERO1) * chebyshev::<I, _>(t, NEAR)
}

/// The wave of order zero: of the first kind, and a quarter turn later of the second.
#[inline(always)]
fn far0<I: Isa>(size: f64) -> [f64; 2] {
    const P: [f64; 9] = [
        0.998_652_339_877_694_1,
        -0.001_329_371_621_248_974_8,
        1.761_305_551_235_468e-05,
        -6.319_367_116_676_986e-07,
        3.948_825_425_522_399e-08,
        -3.540_962_880_679_760_6e-09,
        4.103_052_472_203_621e-10,
        -5.757_842_627_619_479e-11,
        9.066_781_245_827_114e-12,
    ];
    // Times x.
    const Q: [f64; 11] = [
        -0.123_647_025_821_673_08,
        0.001_319_019_404_990_714_8,
        -3.218_799_121_492_497_4e-05,
        1.623_709_324_607_728e-06,
        -1.274_329_002_749_889_6e-07,
        1.351_303_246_319_914_7e-08,
        -1.785_071_741_937_245_6e-09,
        2.790_776_845_729_148e-10,
        -4.987_433_698_356_757e-11,
        9.912_785_239_116_964e-12,
        -2.043_945_820_676_382e-12,
    ];
    let (sin, cos) = sin_cos::<I>(size);
    wave::<I, _, _>(size, P, Q, cos + sin, sin - cos)
}

/// As [`far0`] for order one.
#[inline(always)]
fn far1<I: Isa>(size: f64) -> [f64; 2] {
    const P: [f64; 9] = [
        1.002_267_620_685_342_3,
        0.002_243_735_295_805_505_7,
        -2.307_101_886_261_024e-05,
        7.639_181_728_243_59e-07,
        -4.589_685_138_910_465e-08,
        4.020_510_389_066_48e-09,
        -4.586_572_860_907_646_6e-10,
        6.364_633_387_391_874e-11,
        -9.943_012_984_798_179e-12,
    ];
    // Times x.
    const Q: [f64; 11] = [
        0.373_087_346_214_684_9,
        -0.001_870_518_968_104_508_5,
        4.005_699_452_346_402e-05,
        -1.914_402_842_771_092_4e-06,
        1.458_816_534_743_496_1e-07,
        -1.518_339_785_213_449_6e-08,
        1.979_916_887_006_151_2e-09,
        -3.065_887_013_961_347e-10,
        5.438_610_925_248_807e-11,
        -1.074_550_549_550_291_5e-11,
        2.204_852_462_222_623_5e-12,
    ];
    let (sin, cos) = sin_cos::<I>(size);
    wave::<I, _, _>(size, P, Q, sin - cos, -(sin + cos))
}

/// Given the cosine and sine of the phase times √2.
#[inline(always)]
fn wave<I: Isa, const M: usize, const N: usize>(
    size: f64,
    p: [f64; M],
    q: [f64; N],
    cos: f64,
    sin: f64,
) -> [f64; 2] {
    let x = at_least(size, WAVES);
    let inverse = 1.0 / x;
    const SCALE: f64 = 2.0 * WAVES * WAVES;
    let t = fma64::<I>(SCALE * inverse, inverse, -1.0);
    let amplitude = (inverse / PI).sqrt();
    let p = amplitude * chebyshev::<I, _>(t, p);
    let q = amplitude * inverse * chebyshev::<I, _>(t, q);
    [p * cos - q * sin, p * sin + q * cos]
}

/// Sine and cosine from zero to [`FAR`].
#[inline(always)]
fn sin_cos<I: Isa>(x: f64) -> (f64, f64) {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // What π/2 is more than the nearest number.
    const REST: f64 = 6.123_233_995_736_766e-17;
    let shifted = fma64::<I>(x, FRAC_2_PI, ROUND);
    let quadrant = shifted.to_bits() & 3;
    let turns = shifted - ROUND;
    let rest = fma64::<I>(turns, -REST, fma64::<I>(turns, -FRAC_PI_2, x));
    let r2 = rest * rest;
    let mut sine = 1.0 / 6_227_020_800.0;
    for factor in [-39_916_800.0, 362_880.0, -5040.0, 120.0, -6.0, 1.0] {
        sine = fma64::<I>(sine, r2, 1.0 / factor);
    }
    let sine = sine * rest;
    let mut cosine = 1.0 / 479_001_600.0;
    for factor in [-3_628_800.0, 40_320.0, -720.0, 24.0, -2.0, 1.0] {
        cosine = fma64::<I>(cosine, r2, 1.0 / factor);
    }
    let is_odd = quadrant & 1 != 0;
    let (sin, cos) = if is_odd {
        (cosine, -sine)
    } else {
        (sine, cosine)
    };
    let sign = if quadrant & 2 != 0 { -1.0 } else { 1.0 };
    (sign * sin, sign * cos)
}

#[inline(always)]
fn j0_lane<I: Isa>(x: f64) -> f64 {
    let size = x.abs();
    let [far, _] = far0::<I>(size);
    let near = near_j0::<I>(x);
    if size > WAVES { far } else { near }
}

#[inline(always)]
fn j1_lane<I: Isa>(x: f64) -> f64 {
    let size = x.abs();
    let [far, _] = far1::<I>(size);
    let far = if x < 0.0 { -far } else { far };
    let near = x * near_j1::<I>(x);
    if size > WAVES { far } else { near }
}

#[inline(always)]
fn y0_lane<I: Isa>(x: f64) -> f64 {
    const NEAR: [f64; 11] = [
        0.206_052_576_340_922_25,
        -0.130_175_223_810_957_14,
        -0.291_894_720_865_316_87,
        0.102_682_879_660_736_4,
        -0.014_279_159_901_781_973,
        0.001_116_462_986_416_423,
        -5.677_525_113_382_529_4e-05,
        2.040_670_365_778_225_3e-06,
        -5.476_431_023_312_209_5e-08,
        1.141_220_698_749_637_2e-09,
        -1.901_846_420_248_144_3e-11,
    ];
    let [_, far] = far0::<I>(x);
    let (_, t) = near::<I>(x);
    let log = FRAC_2_PI * log64::<I>(at_most(x, WAVES));
    let near = fma64::<I>(log, near_j0::<I>(x), chebyshev::<I, _>(t, NEAR));
    if x > WAVES { far } else { near }
}

#[inline(always)]
fn y1_lane<I: Isa>(x: f64) -> f64 {
    // Divided by x.
    const NEAR: [f64; 10] = [
        0.053_107_445_056_021_316,
        0.141_894_508_946_676_57,
        -0.088_343_288_682_898_24,
        0.017_111_109_934_210_757,
        -0.001_705_785_256_513_418_8,
        0.000_105_257_530_278_430_28,
        -4.445_075_265_686_882e-06,
        1.369_927_767_780_332_4e-07,
        -3.222_883_682_152_4e-09,
        5.983_430_695_355_452e-11,
    ];
    let [_, far] = far1::<I>(x);
    let (_, t) = near::<I>(x);
    let log = FRAC_2_PI * log64::<I>(at_most(x, WAVES));
    let sum = fma64::<I>(log, near_j1::<I>(x), chebyshev::<I, _>(t, NEAR));
    let near = fma64::<I>(x, sum, -FRAC_2_PI / x);
    if x > WAVES { far } else { near }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Loop = fn(&[f32], &mut [f32]);
    type Exact = fn(f64) -> f64;

    /// With the room that zeros of the function need.
    const ALL: [(Loop, Exact, f64, &str); 10] = [
        (i0, super::super::i0, 0.0, "i0"),
        (i1, super::super::i1, 0.0, "i1"),
        (k0, super::super::k0, 0.0, "k0"),
        (k0e, super::super::k0e, 0.0, "k0e"),
        (k1, super::super::k1, 0.0, "k1"),
        (k1e, super::super::k1e, 0.0, "k1e"),
        (j0, super::super::j0, 1e-10, "j0"),
        (j1, super::super::j1, 1e-10, "j1"),
        (y0, super::super::y0, 1e-10, "y0"),
        (y1, y1_in_single, 1e-10, "y1"),
    ];

    #[test]
    fn loops_agree_with_double_precision() {
        let mut x: Vec<f32> = vec![2.0, 5.0, 8.0, 120.0, 1e6, 2.404_825_7, 3.831_706, 7.086_051];
        x.extend((1..6000).map(|i| i as f32 * 0.003_7));
        x.extend((-800..400).map(|i| 1.1f32.powi(i)));
        x.extend((1..2000).map(|i| i as f32 * 499.9));
        x.extend(x.clone().iter().map(|x| -x));
        let mut out = vec![0.0; x.len()];
        for (run, exact, room, name) in ALL {
            run(&x, &mut out);
            for (x, got) in x.iter().zip(&out) {
                let want = exact(f64::from(*x));
                let is_near = (f64::from(*got) - want).abs() <= 7e-8 * want.abs() + room;
                let rounded = want as f32;
                let is_same = got.to_bits() == rounded.to_bits();
                // One unit where numbers have few digits.
                let is_next = got.to_bits().abs_diff(rounded.to_bits()) == 1;
                assert!(
                    is_near || is_same || is_next,
                    "{name}({x}) is {got} instead of {want}"
                );
            }
        }
    }

    #[test]
    fn loops_end_where_double_precision_does() {
        let zeros = [
            0.0,
            -0.0,
            f32::from_bits(1),
            -f32::from_bits(1),
            f32::MIN_POSITIVE,
        ];
        let ends = [
            f32::INFINITY,
            f32::MAX,
            f32::MIN,
            f32::NEG_INFINITY,
            f32::NAN,
            -1e-3,
        ];
        for x in zeros.into_iter().chain(ends) {
            for (run, exact, _, name) in ALL {
                let mut out = [0.0, 5.0, 0.0];
                run(&[x, 1.0], &mut out);
                let want = exact(f64::from(x)) as f32;
                let is_same =
                    out[0].to_bits() == want.to_bits() || out[0].is_nan() && want.is_nan();
                assert!(is_same, "{name}({x}) is {} instead of {want}", out[0]);
                assert!((f64::from(out[1]) - exact(1.0)).abs() < 1e-6);
                assert_eq!(out[2], 0.0);
            }
        }
    }
}
