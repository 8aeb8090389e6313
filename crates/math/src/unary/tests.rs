use half::{bf16, f16};
use num_complex::Complex;

use super::*;
use crate::num::special;
use crate::par::{Pool, Serial};

type Exact = fn(f64) -> f64;

const REAL: &[(Unary, Exact)] = &[
    (Unary::Abs, f64::abs),
    (Unary::Acos, f64::acos),
    (Unary::Acosh, f64::acosh),
    (Unary::Asin, f64::asin),
    (Unary::Asinh, f64::asinh),
    (Unary::Atan, f64::atan),
    (Unary::Atanh, f64::atanh),
    (Unary::Ceil, f64::ceil),
    (Unary::Cos, f64::cos),
    (Unary::Cosh, f64::cosh),
    (Unary::Digamma, special::digamma),
    (Unary::Elu, |x| if x < 0.0 { x.exp_m1() } else { x }),
    (Unary::Erf, special::erf),
    (Unary::Erfc, special::erfc),
    (Unary::Erfinv, special::erfinv),
    (Unary::Exp, f64::exp),
    (Unary::Expm1, f64::exp_m1),
    (Unary::Floor, f64::floor),
    (Unary::Lgamma, special::lgamma),
    (Unary::Log, f64::ln),
    (Unary::Log1p, f64::ln_1p),
    (Unary::Ndtri, special::ndtri),
    (Unary::Neg, |x| -x),
    (Unary::Reciprocal, f64::recip),
    (Unary::Relu, |x| if x > 0.0 || x.is_nan() { x } else { 0.0 }),
    (
        Unary::Relu6,
        |x| if x.is_nan() { x } else { x.clamp(0.0, 6.0) },
    ),
    (Unary::Round, f64::round_ties_even),
    (Unary::Rsqrt, |x| 1.0 / x.sqrt()),
    (Unary::Selu, |x| {
        1.050_700_987
            * if x < 0.0 {
                1.673_263_242 * x.exp_m1()
            } else {
                x
            }
    }),
    (Unary::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
    (Unary::Sign, |x| {
        if x == 0.0 || x.is_nan() {
            x
        } else {
            x.signum()
        }
    }),
    (Unary::Sin, f64::sin),
    (Unary::Sinh, f64::sinh),
    (
        Unary::Softplus,
        |x| if x > 40.0 { x } else { x.exp().ln_1p() },
    ),
    (Unary::Softsign, |x| x / (1.0 + x.abs())),
    (Unary::Sqrt, f64::sqrt),
    (Unary::Square, |x| x * x),
    (Unary::Tan, f64::tan),
    (Unary::Tanh, f64::tanh),
];

fn inputs(n: usize) -> Vec<f64> {
    let mut x = vec![
        0.5,
        f64::NAN,
        1.0,
        f64::INFINITY,
        -1.0,
        f64::NEG_INFINITY,
        -0.0,
        0.0,
        7.0,
        -2.5,
        2.5,
        3.5,
        0.25,
        60.0,
        -60.0,
        1.5e7,
    ];
    while x.len() < n {
        let i = x.len() as f64;
        x.push((i * 0.7).sin() * (i % 17.0) * 0.3);
    }
    x.truncate(n);
    x
}

fn close(got: f64, want: f64, tolerance: f64) -> bool {
    got == want
        || (got.is_nan() && want.is_nan())
        || (got - want).abs() <= tolerance * want.abs().max(1e-30)
}

fn check<T: UnaryElement + crate::num::Float>(tolerance: f64, tiny: f64) {
    for &(op, exact) in REAL {
        for n in [0, 1, 5, 16, 17, 33, 700, 1100] {
            let x: Vec<T> = inputs(n).into_iter().map(T::from_f64).collect();
            let mut y = vec![T::ZERO; n];
            apply(&Serial, op, &x, &mut y).unwrap();
            for (x, y) in x.iter().zip(&y) {
                // In double precision TensorFlow has none at the ends.
                let has_value = size_of::<T>() < 8 || !matches!(op, Unary::Erf);
                let is_none = !has_value && x.to_f64().is_infinite();
                let exact = if is_none { |_| f64::NAN } else { exact };
                let want = T::from_f64(exact(x.to_f64())).to_f64();
                let ok = close(y.to_f64(), want, tolerance) || (y.to_f64() - want).abs() < tiny;
                assert!(ok, "{op:?}({x:?}) = {y:?}, not {want}");
            }
            let mut again = x.clone();
            apply_in_place(&Serial, op, &mut again).unwrap();
            assert_eq!(format!("{again:?}"), format!("{y:?}"), "{op:?} in place");
        }
    }
}

#[test]
fn single_precision_agrees_with_double() {
    check::<f32>(4e-7, 1e-37);
}

#[test]
fn double_precision_agrees_with_itself() {
    check::<f64>(1e-9, 0.0);
}

#[test]
fn halves_agree_within_their_precision() {
    check::<f16>(2e-3, 1e-6);
    check::<bf16>(1.6e-2, 1e-37);
}

#[test]
fn threads_do_not_change_results() {
    let x: Vec<f32> = inputs(100_003).into_iter().map(|x| x as f32).collect();
    let pool = Pool::new(3);
    for op in [Unary::Exp, Unary::Neg, Unary::Sin] {
        let (mut one, mut many) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        apply(&Serial, op, &x, &mut one).unwrap();
        apply(&pool, op, &x, &mut many).unwrap();
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&one), bits(&many));
    }
}

#[test]
fn integers_wrap() {
    let x = [i8::MIN, -7, 0, 3, 7];
    let mut y = [0; 5];
    let mut check = |op, want: [i8; 5]| {
        apply(&Serial, op, &x, &mut y).unwrap();
        assert_eq!(y, want, "{op:?}");
    };
    check(Unary::Neg, [-128, 7, 0, -3, -7]);
    check(Unary::Abs, [-128, 7, 0, 3, 7]);
    check(Unary::Sign, [-1, -1, 0, 1, 1]);
    check(Unary::Square, [0, 49, 0, 9, 49]);
    check(Unary::Invert, [127, 6, -1, -4, -8]);
    check(Unary::Relu6, [0, 0, 0, 3, 6]);
    check(Unary::Round, x);
    assert_eq!(
        apply(&Serial, Unary::Exp, &x, &mut y),
        Err(Fault::Unsupported)
    );
    let mut small = [200u8, 0];
    apply_in_place(&Serial, Unary::Sign, &mut small).unwrap();
    assert_eq!(small, [1, 0]);
    let mut flags = [true, false];
    apply_in_place(&Serial, Unary::LogicalNot, &mut flags).unwrap();
    assert_eq!(flags, [false, true]);
}

#[test]
fn complex_as_tensorflow() {
    let x = [Complex::new(1f32, 2.0), Complex::new(3.0, -1.0)];
    let mut y = [Complex::ZERO; 2];
    let mut check = |op, want: [(f32, f32); 2]| {
        apply(&Serial, op, &x, &mut y).unwrap();
        for (got, want) in y.iter().zip(want) {
            assert!(
                (got - Complex::new(want.0, want.1)).norm() < 1e-6 * got.norm(),
                "{op:?}: {y:?}"
            );
        }
    };
    check(
        Unary::Sqrt,
        [(1.272_019_6, 0.786_151_4), (1.755_317_3, -0.284_848_78)],
    );
    check(
        Unary::Rsqrt,
        [(0.568_864_46, -0.351_577_58), (0.555_080_06, 0.090_077_095)],
    );
    check(Unary::Reciprocal, [(0.2, -0.4), (0.3, 0.1)]);
    check(
        Unary::Exp,
        [(-1.131_204_2, 2.471_726_7), (10.852_262, -16.901_396)],
    );
    check(
        Unary::Log1p,
        [
            (1.039_720_8, std::f32::consts::FRAC_PI_4),
            (1.416_606_8, -0.244_978_65),
        ],
    );
    check(
        Unary::Tanh,
        [
            (1.166_736_2, -0.243_458_21),
            (1.002_055_2, -0.004_517_137_5),
        ],
    );
    check(
        Unary::Sigmoid,
        [(1.021_415_4, 0.403_438_7), (0.972_186_5, -0.039_662_227)],
    );
    check(
        Unary::Sign,
        [(0.447_213_6, 0.894_427_2), (0.948_683_26, -0.316_227_76)],
    );
    check(
        Unary::Asin,
        [(0.427_078_52, 1.528_571), (1.233_095_2, -1.824_198_6)],
    );
    check(Unary::Conj, [(1.0, -2.0), (3.0, 1.0)]);
    let mut part = [0f32; 2];
    complex_part(
        &Serial,
        ComplexPart::Abs,
        &[Complex::new(3.0, 4.0), Complex::new(3e30, 4e30)],
        &mut part,
    );
    assert_eq!(part, [5.0, 5e30]);
    let odd = [
        Complex::new(f32::NAN, f32::NEG_INFINITY),
        Complex::new(f32::NAN, 1.0),
    ];
    complex_part(&Serial, ComplexPart::Abs, &odd, &mut part);
    assert!(part[0] == f32::INFINITY && part[1].is_nan());
    let turned = [Complex::new(-1.0f32, -0.0), Complex::new(0.0, 2.0)];
    complex_part(&Serial, ComplexPart::Angle, &turned, &mut part);
    assert_eq!(part, [-std::f32::consts::PI, std::f32::consts::FRAC_PI_2]);
    complex_part(&Serial, ComplexPart::Imag, &x, &mut part);
    assert_eq!(part, [2.0, -1.0]);
}

#[test]
fn predicates() {
    let x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, f32::MAX];
    let mut y = [false; 5];
    predicate(&Serial, Predicate::IsNan, &x, &mut y);
    assert_eq!(y, [true, false, false, false, false]);
    predicate(&Serial, Predicate::IsInf, &x, &mut y);
    assert_eq!(y, [false, true, true, false, false]);
    predicate(&Serial, Predicate::IsFinite, &x.map(bf16::from_f32), &mut y);
    assert_eq!(y, [false, false, false, true, false]);
}

#[test]
fn special_functions_have_known_values() {
    let near = |got: f64, want: f64| {
        assert!(
            (got - want).abs() < 1e-14 * want.abs().max(1.0),
            "{got} {want}"
        )
    };
    near(special::digamma(1.0), -0.577_215_664_901_532_9);
    near(special::digamma(-2.5), 1.103_156_640_645_243);
    near(special::digamma(3.5), 1.103_156_640_645_243);
    near(special::lgamma(7.0), 720f64.ln());
    near(special::erfinv(0.5), 0.476_936_276_204_469_9);
    near(special::erfinv(1e-10), 8.862_269_254_527_58e-11);
    near(special::ndtri(0.975), 1.959_963_984_540_054);
    near(special::ndtri(1e-300), -37.047_096_299_361_2);
    assert!(
        special::digamma(-3.0).is_nan()
            && special::ndtri(-0.1).is_nan()
            && special::erfinv(1.1).is_nan()
    );
    assert_eq!(special::ndtri(1.0), f64::INFINITY);
    assert_eq!(special::erfinv(-1.0), f64::NEG_INFINITY);
}
