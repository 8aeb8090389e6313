//! Single-precision logarithm, sine and cosine with the bits of the C library that TensorFlow calls, in a form that vectorises.
//!
//! TensorFlow's normal generators call `logf` and `sincosf`. In glibc these have been one table and polynomial evaluation in
//! double precision since 2.28, so the same sums in vector registers give the same bits: the tests compare with the linked
//! library for each input the generators can produce. Only the ranges that Box-Muller needs are covered.

/// 1/c and ln(c) near the centres of the 16 parts of the reduced range.
const LN_CENTRES: [(f64, f64); 16] = [
    (1.398_907_162_146_528, -0.335_691_333_328_822_84),
    (1.340_314_189_663_799_8, -0.292_904_056_377_407_4),
    (1.286_432_210_124_115, -0.251_872_658_093_736_9),
    (1.236_715_021_426_989_5, -0.212_458_688_071_172_55),
    (1.190_697_716_671_175_2, -0.174_539_451_837_456_34),
    (1.147_982_102_055_642_9, -0.138_005_707_231_975_8),
    (1.108_225_144_827_215_8, -0.102_759_766_985_451_39),
    (1.071_129_741_305_738_1, -0.068_713_924_470_205_25),
    (1.036_437_278_977_283, -0.035_789_138_739_822_8),
    (1.0, 0.0),
    (0.949_285_979_573_905_7, 0.052_045_177_429_294_96),
    (0.895_104_942_860_900_4, 0.110_814_312_987_879_42),
    (0.847_682_162_035_110_3, 0.165_249_522_369_514_3),
    (0.805_031_485_169_200_1, 0.216_873_890_316_999_77),
    (0.766_467_100_884_310_8, 0.265_963_502_812_139_7),
    (0.731_428_603_316_328, 0.312_755_666_407_355_7),
];
const LN_POLY: [f64; 3] = [
    -0.250_893_422_142_371_54,
    0.333_456_765_744_066,
    -0.499_999_748_580_210_3,
];
/// Where the reduced range of the logarithm begins, as bits.
const LN_ORIGIN: u32 = 0x3f33_0000;

const COS_POLY: [f64; 5] = [
    1.0,
    -0.499_999_997_251_082_24,
    0.041_666_623_324_344_516,
    -0.001_388_676_379_437_604,
    2.439_045_070_356_454_2e-05,
];
const SIN_POLY: [f64; 3] = [
    -0.166_666_549_437_010_84,
    0.008_332_178_146_138_854,
    -0.000_195_172_989_813_857_25,
];

/// Natural logarithms of `LANES` normal positive numbers.
#[inline(always)]
pub(super) fn ln<const LANES: usize>(x: &[f32; LANES]) -> [f32; LANES] {
    // Looking up in a loop of its own leaves the arithmetic before and after to the vectoriser.
    let mut centres = [(0.0, 0.0); LANES];
    for i in 0..LANES {
        let part = (x[i].to_bits().wrapping_sub(LN_ORIGIN) >> 19) % 16;
        centres[i] = LN_CENTRES[part as usize];
    }
    let mut out = [0.0; LANES];
    for i in 0..LANES {
        let (inverse, ln_centre) = centres[i];
        let bits = x[i].to_bits();
        let above = bits.wrapping_sub(LN_ORIGIN);
        let exponent = f64::from(above as i32 >> 23);
        let z = f64::from(f32::from_bits(bits.wrapping_sub(above & 0xff80_0000)));
        let r = z.mul_add(inverse, -1.0);
        let head = exponent.mul_add(std::f64::consts::LN_2, ln_centre);
        let r2 = r * r;
        let y = LN_POLY[1].mul_add(r, LN_POLY[2]);
        let y = LN_POLY[0].mul_add(r2, y);
        out[i] = y.mul_add(r2, head + r) as f32;
    }
    out
}

/// Sine and cosine of `LANES` angles between 0 and 120.
#[inline(always)]
pub(super) fn sin_cos<const LANES: usize>(x: &[f32; LANES]) -> ([f32; LANES], [f32; LANES]) {
    let mut sin = [0.0; LANES];
    let mut cos = [0.0; LANES];
    for i in 0..LANES {
        let angle = f64::from(x[i]);
        let quarters = (angle * std::f64::consts::FRAC_2_PI + 0.5).floor();
        let x = (-quarters).mul_add(std::f64::consts::FRAC_PI_2, angle);
        // The quadrant from the low bits of a float that has no room for a fraction: stays in vector registers.
        let quadrant = (quarters + 4_503_599_627_370_496.0).to_bits();
        let negate_sin = (quadrant ^ (quadrant >> 1)) & 1;
        let negate_cos = (quadrant >> 1) & 1;
        let x2 = x * x;
        let x = f64::from_bits(x.to_bits() ^ (negate_sin << 63));
        let x3 = x2 * x;
        let x4 = x2 * x2;
        let c2 = x2.mul_add(COS_POLY[4], COS_POLY[3]);
        let s1 = x2.mul_add(SIN_POLY[2], SIN_POLY[1]);
        let c1 = x2.mul_add(COS_POLY[1], COS_POLY[0]);
        let (x5, x6) = (x3 * x2, x4 * x2);
        let s = x3.mul_add(SIN_POLY[0], x);
        let c = x4.mul_add(COS_POLY[2], c1);
        let s = x5.mul_add(s1, s) as f32;
        let c = x6.mul_add(c2, c);
        let c = f64::from_bits(c.to_bits() ^ (negate_cos << 63)) as f32;
        let swap = quadrant & 1 == 1;
        sin[i] = if swap { c } else { s };
        cos[i] = if swap { s } else { c };
    }
    (sin, cos)
}
