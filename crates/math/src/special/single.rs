//! Functions of one argument for `f32`: sums of Chebyshev's polynomials in double precision, without a branch, so that loops over
//! them vectorise.
//!
//! Coefficients are those of the interpolation in Chebyshev's nodes, cut off where relative errors are below 5e-9. Functions that end
//! at infinity are interpolated over a power of 1/x there.

use std::f64::consts::{FRAC_PI_2, PI};

use super::bessel::EULER;
use crate::num::isa::{Isa, fma64, multiversion};
use crate::num::lanes::{exp64, log64};

pub use super::bessel_single::{i0, i1, j0, j1, k0, k0e, k1, k1e, y0, y1};

/// Declares loops over `f32` slices, as long as the shorter one.
macro_rules! loops {
    ($($(#[$doc:meta])* $name:ident = $function:ident, $body:ident;)*) => {$(
        multiversion! {
            $(#[$doc])*
            pub fn $name(x: &[f32], out: &mut [f32]) = $body with isa;
        }

        #[inline(always)]
        fn $body<I: Isa>(x: &[f32], out: &mut [f32]) {
            let n = x.len().min(out.len());
            let (x, out) = (&x[..n], &mut out[..n]);
            for i in 0..n {
                out[i] = $function::<I>(f64::from(x[i])) as f32;
            }
        }
    )*};
}

loops! {
    /// [`super::i0e`] of each.
    i0e = i0e_lane, i0e_loop;
    /// [`super::i1e`] of each.
    i1e = i1e_lane, i1e_loop;
    /// [`super::dawsn`] of each.
    dawsn = dawsn_lane, dawsn_loop;
    /// [`super::expint`] of each.
    expint = expint_lane, expint_loop;
    /// [`super::fresnel_cos`] of each.
    fresnel_cos = fresnel_cos_lane, fresnel_cos_loop;
    /// [`super::fresnel_sin`] of each.
    fresnel_sin = fresnel_sin_lane, fresnel_sin_loop;
    /// [`super::spence`] of each.
    spence = spence_lane, spence_loop;
}

/// A sum of Chebyshev's polynomials by Clenshaw's recurrence, for `t` from -1 to 1.
#[inline(always)]
pub(super) fn chebyshev<I: Isa, const N: usize>(t: f64, coefficients: [f64; N]) -> f64 {
    let (twice, mut next, mut after) = (2.0 * t, 0.0, 0.0);
    for k in (1..N).rev() {
        let here = fma64::<I>(twice, next, coefficients[k] - after);
        (next, after) = (here, next);
    }
    fma64::<I>(t, next, coefficients[0] - after)
}

/// The smaller one; NaN if `x` is.
#[inline(always)]
pub(super) fn at_most(x: f64, limit: f64) -> f64 {
    if x > limit { limit } else { x }
}

/// The larger one; NaN if `x` is.
#[inline(always)]
pub(super) fn at_least(x: f64, limit: f64) -> f64 {
    if x < limit { limit } else { x }
}

#[inline(always)]
pub(super) fn i0e_lane<I: Isa>(x: f64) -> f64 {
    const NEAR: [f64; 20] = [
        0.338_397_637_204_738,
        -0.304_682_672_343_198_24,
        0.171_620_901_522_209_32,
        -0.094_901_097_048_047_47,
        0.049_305_284_239_670_85,
        -0.023_737_414_805_899_134,
        0.010_546_460_394_595_345,
        -0.004_324_309_995_050_527,
        0.001_639_475_616_941_630_9,
        -0.000_576_375_574_538_341_8,
        0.000_188_502_885_095_401_14,
        -5.754_195_010_091_492_5e-05,
        1.644_844_807_112_478_2e-05,
        -4.416_738_358_545_71e-06,
        1.117_387_538_949_598_9e-06,
        -2.670_793_852_999_125_3e-07,
        6.046_995_037_047_988e-08,
        -1.300_025_060_297_367_6e-08,
        2.659_823_803_881_549e-09,
        -5.189_799_970_792_689e-10,
    ];
    const FAR: [f64; 7] = [
        0.402_245_205_507_054_17,
        0.003_369_116_478_256_198,
        6.889_758_346_872_09e-05,
        2.891_370_521_235_393e-06,
        2.048_918_585_391_325_7e-07,
        2.266_669_026_021_594_7e-08,
        3.396_231_662_975_884_7e-09,
    ];
    let size = x.abs();
    let (low, high) = (at_most(size, 8.0), at_least(size, 8.0));
    let near = chebyshev::<I, _>(0.25 * low - 1.0, NEAR);
    let far = chebyshev::<I, _>(16.0 / high - 1.0, FAR) / high.sqrt();
    if size > 8.0 { far } else { near }
}

#[inline(always)]
pub(super) fn i1e_lane<I: Isa>(x: f64) -> f64 {
    // Of the function divided by x.
    const NEAR: [f64; 20] = [
        0.126_293_593_221_817_4,
        -0.176_416_518_357_835_14,
        0.102_643_658_689_848_61,
        -0.052_945_981_208_096_064,
        0.024_726_449_030_627_762,
        -0.010_564_084_894_627_17,
        0.004_156_422_944_314_239,
        -0.001_513_572_450_632_302_4,
        0.000_512_285_956_169_814_4,
        -0.000_161_760_815_826_826_53,
        4.781_565_107_633_408e-05,
        -1.327_316_365_709_634_5e-05,
        3.470_251_309_382_872_8e-06,
        -8.568_720_275_315_933e-07,
        2.003_294_762_401_868_6e-07,
        -4.445_059_218_482_888e-08,
        9.381_538_433_207_317e-09,
        -1.887_250_934_045_516_5e-09,
        3.625_599_648_710_618_6e-10,
        -6.663_597_856_565_807e-11,
    ];
    const FAR: [f64; 7] = [
        0.389_288_117_509_139_94,
        -0.009_761_097_491_360_964,
        -0.000_110_588_938_763_063_86,
        -3.882_564_808_448_946e-06,
        -2.512_236_241_483_111_4e-07,
        -2.631_468_807_026_594_3e-08,
        -3.835_380_724_462_252e-09,
    ];
    let size = x.abs();
    let (low, high) = (at_most(size, 8.0), at_least(size, 8.0));
    let near = x * chebyshev::<I, _>(0.25 * low - 1.0, NEAR);
    let far = chebyshev::<I, _>(16.0 / high - 1.0, FAR) / high.sqrt();
    if size > 8.0 { far.copysign(x) } else { near }
}

#[inline(always)]
fn dawsn_lane<I: Isa>(x: f64) -> f64 {
    const NEAR: [f64; 15] = [
        0.313_308_687_321_307_3,
        -0.376_701_240_299_589_9,
        0.189_096_408_228_370_62,
        -0.079_883_897_938_760_44,
        0.028_794_703_729_553_287,
        -0.008_988_283_306_056_867,
        0.002_463_535_049_717_197,
        -0.000_600_172_331_154_053_2,
        0.000_131_352_910_143_762_28,
        -2.606_302_036_867_943e-05,
        4.725_630_903_556_065e-06,
        -7.883_410_874_228_002e-07,
        1.217_231_568_204_560_4e-07,
        -1.748_644_183_309_745_2e-08,
        2.347_979_731_668_132_8e-09,
    ];
    const FAR: [f64; 14] = [
        1.037_753_737_285_968,
        0.040_410_793_983_813_39,
        0.003_012_302_377_557_991_5,
        0.000_397_020_837_715_300_17,
        3.376_449_272_559_228e-05,
        -1.478_722_863_678_690_6e-05,
        -7.919_853_135_864_974e-06,
        -5.995_014_689_950_974e-07,
        7.847_423_055_544_478e-07,
        1.918_919_994_573_684_2e-07,
        -8.882_670_152_565_473e-08,
        -3.275_747_157_052_397e-08,
        1.362_111_872_273_788_6e-08,
        4.991_284_557_393_196e-09,
    ];
    let square = x * x;
    let (low, high) = (at_most(square, 8.0), at_least(square, 8.0));
    let near = x * chebyshev::<I, _>(0.25 * low - 1.0, NEAR);
    let far = chebyshev::<I, _>(16.0 / high - 1.0, FAR) * (0.5 / x);
    if square > 8.0 { far } else { near }
}

#[inline(always)]
fn expint_lane<I: Isa>(x: f64) -> f64 {
    // Of the series without the logarithm, divided by x.
    const NEAR: [f64; 15] = [
        4.911_105_884_346_457_5,
        5.666_113_598_608_02,
        2.349_262_667_613_692_7,
        0.756_354_309_384_399_1,
        0.199_202_293_823_570_3,
        0.044_428_752_653_063_04,
        0.008_598_716_638_273_222,
        0.001_470_502_596_393_308_7,
        0.000_225_333_019_391_958_5,
        3.128_466_278_156_228e-05,
        3.971_103_924_495_69e-06,
        4.643_268_474_743_151_3e-07,
        5.032_917_778_521_49e-08,
        5.084_550_517_285_623e-09,
        4.810_129_508_057_536e-10,
    ];
    // Times x·exp(-x).
    const FAR: [f64; 20] = [
        1.122_281_496_293_034_3,
        0.138_721_282_348_888_42,
        0.018_195_488_408_478_896,
        0.001_096_745_272_907_282_4,
        -0.001_071_703_495_558_104,
        -0.000_430_602_265_049_032_67,
        3.743_330_582_068_749e-05,
        6.315_563_645_822_541e-05,
        -1.152_554_965_766_582e-06,
        -1.019_397_305_351_971_3e-05,
        6.229_017_744_639_81e-07,
        1.813_509_285_109_546e-06,
        -3.615_547_152_406_725e-07,
        -3.046_070_136_601_343e-07,
        1.402_872_862_684_647e-07,
        3.251_784_970_917_808e-08,
        -4.081_160_355_409_1e-08,
        4.870_115_106_900_594e-09,
        8.212_703_663_085_363e-09,
        -4.163_564_159_094_135_5e-09,
    ];
    let is_none = x < 0.0 || x == f64::INFINITY;
    // Beyond any `f32` from here on.
    let x = at_most(x, 200.0);
    let (low, high) = (at_most(x, 6.0), at_least(x, 6.0));
    let near = log64::<I>(low) + EULER + low * chebyshev::<I, _>(low / 3.0 - 1.0, NEAR);
    let far = exp64::<I>(high) / high * chebyshev::<I, _>(12.0 / high - 1.0, FAR);
    let value = if x > 6.0 { far } else { near };
    if is_none { f64::NAN } else { value }
}

/// Where the integrals of Fresnel are written as waves.
const WAVES: f64 = 1.6;
/// From here on the waves are lost in rounding.
const CALM: f64 = 1e7;

/// With the cosine and sine of πx²/2 the integrals are 1/2 - (g·cos - f·sin) and 1/2 - (g·sin + f·cos).
struct Waves {
    cos: f64,
    sin: f64,
    f: f64,
    g: f64,
}

#[inline(always)]
fn waves<I: Isa>(size: f64) -> Waves {
    // Of f·πx and g·π²x³ over 1/x⁴.
    const F: [f64; 12] = [
        0.981_897_388_025_641_6,
        -0.016_815_761_738_886_638,
        0.001_111_110_113_195_581_6,
        -0.000_141_948_458_687_810_04,
        2.573_388_462_611_032_6e-05,
        -5.825_182_199_692_99e-06,
        1.540_760_365_625_366e-06,
        -4.578_748_797_970_404e-07,
        1.490_549_417_699_399_3e-07,
        -5.223_622_847_778_003e-08,
        1.946_130_313_152_921e-08,
        -7.636_065_733_504_862e-09,
    ];
    const G: [f64; 13] = [
        0.922_142_671_602_049_3,
        -0.069_062_147_630_524_48,
        0.007_238_890_271_537_499,
        -0.001_199_667_701_661_296_5,
        0.000_259_653_991_881_306_03,
        -6.714_358_497_890_646e-05,
        1.974_775_280_404_739_7e-05,
        -6.408_634_589_043_758_5e-06,
        2.249_033_724_975_188_5e-06,
        -8.415_113_620_402_275e-07,
        3.322_382_675_838_759e-07,
        -1.373_243_482_696_532_4e-07,
        5.905_977_779_080_741_6e-08,
    ];
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let x = at_most(at_least(size, WAVES), CALM);
    let square = x * x;
    // In quarter turns: the square of an `f32` is exact, and so is what is left of it.
    let shifted = square + ROUND;
    let quadrant = shifted.to_bits() & 3;
    let rest = FRAC_PI_2 * (square - (shifted - ROUND));
    let r2 = rest * rest;
    let mut sine = -1.0 / 39_916_800.0;
    for factor in [362_880.0, -5040.0, 120.0, -6.0, 1.0] {
        sine = fma64::<I>(sine, r2, 1.0 / factor);
    }
    let sine = sine * rest;
    let mut cosine = 1.0 / 479_001_600.0;
    for factor in [-3_628_800.0, 40_320.0, -720.0, 24.0, -2.0, 1.0] {
        cosine = fma64::<I>(cosine, r2, 1.0 / factor);
    }
    let is_odd = quadrant & 1 != 0;
    let (cos, sin) = if is_odd {
        (-sine, cosine)
    } else {
        (cosine, sine)
    };
    let sign = if quadrant & 2 != 0 { -1.0 } else { 1.0 };
    const SCALE: f64 = 2.0 * WAVES * WAVES * WAVES * WAVES;
    let t = SCALE / (square * square) - 1.0;
    Waves {
        cos: sign * cos,
        sin: sign * sin,
        f: chebyshev::<I, _>(t, F) / (PI * x),
        g: chebyshev::<I, _>(t, G) / (PI * PI * x * square),
    }
}

/// x⁴, scaled for the sums near zero.
#[inline(always)]
fn near_waves(size: f64) -> f64 {
    let square = at_most(size, WAVES) * at_most(size, WAVES);
    const SCALE: f64 = 2.0 / (WAVES * WAVES * WAVES * WAVES);
    SCALE * square * square - 1.0
}

#[inline(always)]
fn fresnel(x: f64, near: f64, wave: f64) -> f64 {
    let size = x.abs();
    let far = 0.5 - if size > CALM { 0.0 } else { wave };
    (if size > WAVES { far } else { near }).copysign(x)
}

#[inline(always)]
fn fresnel_cos_lane<I: Isa>(x: f64) -> f64 {
    const NEAR: [f64; 8] = [
        0.528_293_131_170_855_6,
        -0.376_762_202_501_618_1,
        0.085_373_775_496_569_76,
        -0.009_010_259_972_062_395,
        0.000_539_312_772_040_982_7,
        -2.075_044_934_575_109_8e-05,
        5.564_687_024_885_24e-07,
        -1.099_981_277_696_464_4e-08,
    ];
    let size = x.abs();
    let near = size * chebyshev::<I, _>(near_waves(size), NEAR);
    let Waves { cos, sin, f, g } = waves::<I>(size);
    fresnel(x, near, g * cos - f * sin)
}

#[inline(always)]
fn fresnel_sin_lane<I: Isa>(x: f64) -> f64 {
    const NEAR: [f64; 8] = [
        0.314_274_319_534_783_46,
        -0.181_885_878_501_061_14,
        0.025_424_557_742_876_556,
        -0.001_921_458_209_844_973_2,
        8.966_525_954_746_829e-05,
        -2.830_802_867_977_58e-06,
        6.442_546_975_064_245e-08,
        -1.106_823_514_934_999_3e-09,
    ];
    let size = x.abs();
    let near = size * size * size * chebyshev::<I, _>(near_waves(size), NEAR);
    let Waves { cos, sin, f, g } = waves::<I>(size);
    fresnel(x, near, g * sin + f * cos)
}

#[inline(always)]
fn spence_lane<I: Isa>(x: f64) -> f64 {
    const AT_ZERO: f64 = PI * PI / 6.0;
    // Of the dilogarithm of t/2, divided by t/2.
    const NEAR: [f64; 12] = [
        1.014_941_606_409_653_5,
        0.131_480_128_387_657_94,
        0.015_313_452_518_101_687,
        0.002_272_188_943_655_856_2,
        0.000_385_161_993_008_042_57,
        7.103_404_374_189_94e-05,
        1.388_562_248_725_133_4e-05,
        2.832_395_458_394_46e-06,
        5.968_314_737_345_244e-07,
        1.290_231_242_570_462_3e-07,
        2.847_530_919_298_198_6e-08,
        6.392_641_397_723_861_6e-09,
    ];
    let is_large = x > 1.5;
    let y = if is_large { 1.0 / x } else { x };
    let is_small = y < 0.5;
    let z = if is_small { y } else { 1.0 - y };
    let dilogarithm = z * chebyshev::<I, _>(2.0 * z, NEAR);
    let log = log64::<I>(y);
    let logs = if y == 0.0 {
        0.0
    } else {
        log * log64::<I>(1.0 - y)
    };
    let value = if is_small {
        AT_ZERO - logs - dilogarithm
    } else {
        dilogarithm
    };
    let value = if is_large {
        -0.5 * log * log - value
    } else {
        value
    };
    if x < 0.0 || x == f64::INFINITY {
        f64::NAN
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Loop = fn(&[f32], &mut [f32]);
    type Exact = fn(f64) -> f64;

    #[test]
    fn loops_agree_with_double_precision() {
        let all: [(&str, Loop, Exact, f32); 7] = [
            ("i0e", i0e, super::super::i0e, -1.0),
            ("i1e", i1e, super::super::i1e, -1.0),
            ("dawsn", dawsn, super::super::dawsn, -1.0),
            ("expint", expint, super::super::expint, 0.0),
            ("fresnel_cos", fresnel_cos, super::super::fresnel_cos, -1.0),
            ("fresnel_sin", fresnel_sin, super::super::fresnel_sin, -1.0),
            ("spence", spence, super::super::spence, 0.0),
        ];
        let mut x: Vec<f32> = vec![0.0, 1e-30, 1.6, 8.0, 2.828_427, 6.0, 0.5, 1.5, 1.0];
        x.extend((1..3000).map(|i| i as f32 * 0.003_7));
        x.extend((1..300).map(|i| 1.04f32.powi(i)));
        for (name, run, exact, low) in all {
            let mut places = x.clone();
            if low < 0.0 {
                places.extend(x.iter().map(|x| -x));
            }
            let mut out = vec![0.0; places.len()];
            run(&places, &mut out);
            for (x, got) in places.iter().zip(&out) {
                let want = exact(f64::from(*x));
                let is_near = (f64::from(*got) - want).abs() <= 2e-7 * want.abs();
                // The reference has no waves from 4e4 on.
                let is_calm = name.starts_with("fresnel") && x.abs() > 1e3;
                let is_calm = is_calm && (f64::from(*got) - want).abs() < 1e-5;
                let is_same = *got == want as f32;
                assert!(
                    is_near || is_calm || is_same,
                    "{name}({x}) is {got} instead of {want}"
                );
            }
        }
    }

    #[test]
    fn loops_know_the_ends() {
        let x = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -1.0];
        let run = |run: Loop| {
            let mut out = [0.0; 4];
            run(&x, &mut out);
            out
        };
        for (found, ends) in [
            (run(i0e), [0.0, 0.0]),
            (run(i1e), [0.0, 0.0]),
            (run(dawsn), [0.0, 0.0]),
            (run(fresnel_cos), [0.5, -0.5]),
            (run(fresnel_sin), [0.5, -0.5]),
        ] {
            assert_eq!(found[..2], ends);
            assert!(found[2].is_nan());
        }
        for found in [run(expint), run(spence)] {
            assert!(found.iter().all(|x| x.is_nan()));
        }
        let mut out = [0.0; 2];
        spence(&[0.0, 1.0], &mut out);
        assert_eq!(out, [(PI * PI / 6.0) as f32, 0.0]);
    }
}
