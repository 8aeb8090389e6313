use half::{bf16, f16};
use num_complex::Complex;
use proptest::prelude::*;

use super::*;
use crate::num::{Float, Num, Real};
use crate::par::{Pool, Serial};
use crate::unary::{self, Unary};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

fn both<T: BinaryElement>(op: Binary, x: &[T], y: &[T]) -> Result<Vec<T>, Fault> {
    let same = Broadcast::same(x.len());
    let mut out = vec![T::default(); x.len()];
    apply(&Serial, op, &same, x, y, &mut out)?;
    let (mut left, mut right) = (x.to_vec(), y.to_vec());
    apply_lhs(&Serial, op, &same, &mut left, y)?;
    apply_rhs(&Serial, op, &same, x, &mut right)?;
    assert_eq!(format!("{left:?}"), format!("{out:?}"));
    assert_eq!(format!("{right:?}"), format!("{out:?}"));
    Ok(out)
}

fn check_float<T: BinaryElement + Float>(
    op: Binary,
    x: &[f64],
    y: &[f64],
    want: &[f64],
    tolerance: f64,
) {
    // Repeated so that the vector loop is taken as well as the tail.
    let make = |v: &[f64]| {
        v.iter()
            .cycle()
            .take(v.len() * 5)
            .map(|&v| T::from_f64(v))
            .collect::<Vec<_>>()
    };
    let got = both(op, &make(x), &make(y)).unwrap();
    for (i, got) in got.iter().enumerate() {
        let (got, want) = (got.to_f64(), want[i % want.len()]);
        let ok = got == want
            || (got.is_nan() && want.is_nan())
            || (got - want).abs() <= tolerance * want.abs();
        assert!(
            ok,
            "{op:?}({}, {}) = {got}, not {want}",
            x[i % x.len()],
            y[i % x.len()]
        );
    }
}

fn check(op: Binary, x: &[f64], y: &[f64], want: &[f64]) {
    check_float::<f32>(op, x, y, want, 1e-6);
    check_float::<f64>(op, x, y, want, 1e-6);
    check_float::<f16>(op, x, y, want, 2e-3);
    check_float::<bf16>(op, x, y, want, 1.6e-2);
}

/// Values of TensorFlow 2.21's CPU kernels.
#[test]
fn floats_as_tensorflow() {
    let x = &[
        7.0, -7.0, 7.0, -7.0, 0.0, 5.0, -0.0, INF, 3.0, NAN, -3.0, 0.0,
    ];
    let y = &[3.0, 3.0, -3.0, -3.0, 0.0, 0.0, 2.0, 3.0, INF, 1.0, INF, NAN];
    check(
        Binary::FloorDiv,
        x,
        y,
        &[
            2.0, -3.0, -3.0, 2.0, NAN, INF, 0.0, INF, 0.0, NAN, -0.0, NAN,
        ],
    );
    check(
        Binary::FloorMod,
        x,
        y,
        &[1.0, 2.0, -2.0, -1.0, NAN, NAN, 0.0, NAN, 3.0, NAN, INF, NAN],
    );
    check(
        Binary::TruncateMod,
        x,
        y,
        &[
            1.0, -1.0, 1.0, -1.0, NAN, NAN, 0.0, NAN, 3.0, NAN, -3.0, NAN,
        ],
    );
    check(
        Binary::TruncateDiv,
        x,
        y,
        &[2.0, -2.0, -2.0, 2.0, NAN, INF, 0.0, INF, 0.0, NAN, 0.0, NAN],
    );
    let third = 7.0 / 3.0;
    check(
        Binary::Div,
        x,
        y,
        &[
            third, -third, -third, third, NAN, INF, 0.0, INF, 0.0, NAN, 0.0, NAN,
        ],
    );
    check(
        Binary::DivNoNan,
        x,
        y,
        &[
            third, -third, -third, third, 0.0, 0.0, 0.0, INF, 0.0, NAN, 0.0, NAN,
        ],
    );
    check(
        Binary::MulNoNan,
        x,
        y,
        &[
            21.0, -21.0, -21.0, 21.0, 0.0, 0.0, 0.0, INF, INF, NAN, -INF, NAN,
        ],
    );
    check(
        Binary::Xdivy,
        x,
        y,
        &[
            third, -third, -third, third, 0.0, INF, 0.0, INF, 0.0, NAN, 0.0, 0.0,
        ],
    );
    let log = 7.690_286_02;
    check(
        Binary::Xlogy,
        x,
        y,
        &[
            log, -log, NAN, NAN, 0.0, -INF, 0.0, INF, INF, NAN, -INF, 0.0,
        ],
    );
    let log = 9.704_060_53;
    check(
        Binary::Xlog1py,
        x,
        y,
        &[log, -log, NAN, NAN, 0.0, 0.0, 0.0, INF, INF, NAN, -INF, 0.0],
    );
    let cube = 1.0 / 343.0;
    check(
        Binary::Pow,
        x,
        y,
        &[
            343.0, -343.0, cube, -cube, 1.0, 1.0, 0.0, INF, INF, NAN, INF, NAN,
        ],
    );
    check(
        Binary::Maximum,
        x,
        y,
        &[7.0, 3.0, 7.0, -3.0, 0.0, 5.0, 2.0, INF, INF, NAN, INF, NAN],
    );
    check(
        Binary::Minimum,
        x,
        y,
        &[
            3.0, -7.0, -3.0, -7.0, 0.0, 0.0, 0.0, 3.0, 3.0, NAN, -3.0, NAN,
        ],
    );
    check(
        Binary::SquaredDifference,
        x,
        y,
        &[
            16.0, 100.0, 100.0, 16.0, 0.0, 25.0, 4.0, INF, INF, NAN, INF, NAN,
        ],
    );
    let atan = 0.404_891_79;
    let flat = std::f64::consts::PI - atan;
    check(
        Binary::Atan2,
        &[3.0, 3.0, -3.0, -3.0],
        &[7.0, -7.0, 7.0, -7.0],
        &[atan, flat, -atan, -flat],
    );
}

#[test]
fn gradients_as_tensorflow() {
    let x = &[NAN, INF, -INF, 0.0, 1.0, -1.0, 7.0, -2.5, 3.5];
    let one = &[1.0; 9];
    check(
        Binary::ReluGrad,
        one,
        x,
        &[0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
    );
    check(
        Binary::Relu6Grad,
        one,
        x,
        &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
    );
    let s = |x: f64| 1.0 / (1.0 + (-x).exp());
    check(
        Binary::SoftplusGrad,
        one,
        x,
        &[NAN, 1.0, 0.0, 0.5, s(1.0), s(-1.0), s(7.0), s(-2.5), s(3.5)],
    );
    check(
        Binary::SoftsignGrad,
        one,
        x,
        &[
            NAN,
            0.0,
            0.0,
            1.0,
            0.25,
            0.25,
            1.0 / 64.0,
            0.081_632_653,
            0.049_382_716,
        ],
    );
    check(
        Binary::EluGrad,
        one,
        x,
        &[1.0, 1.0, -INF, 1.0, 1.0, 0.0, 1.0, -1.5, 1.0],
    );
    let scale = 1.050_700_987;
    check(
        Binary::SeluGrad,
        one,
        x,
        &[
            scale,
            scale,
            -INF,
            scale,
            scale,
            0.758_099_341,
            scale,
            -0.741_900_659,
            scale,
        ],
    );
    check(
        Binary::SigmoidGrad,
        x,
        one,
        &[NAN, -INF, -INF, 0.0, 0.0, -2.0, -42.0, -8.75, -8.75],
    );
    check(
        Binary::TanhGrad,
        x,
        one,
        &[NAN, -INF, -INF, 1.0, 0.0, 0.0, -48.0, -5.25, -11.25],
    );
    check(
        Binary::SqrtGrad,
        x,
        one,
        &[NAN, 0.0, 0.0, INF, 0.5, -0.5, 0.5 / 7.0, -0.2, 0.5 / 3.5],
    );
    check(
        Binary::RsqrtGrad,
        x,
        one,
        &[NAN, -INF, INF, 0.0, -0.5, 0.5, -171.5, 7.8125, -21.4375],
    );
    check(
        Binary::ReciprocalGrad,
        x,
        one,
        &[NAN, -INF, -INF, 0.0, -1.0, -1.0, -49.0, -6.25, -12.25],
    );
}

#[test]
fn integers_as_tensorflow() {
    let x = [7, -7, 7, -7, i8::MIN, i8::MIN, 5];
    let y = [3, 3, -3, -3, -1, 1, -1];
    let check = |op, want: [i8; 7]| assert_eq!(both(op, &x, &y).unwrap(), want, "{op:?}");
    check(Binary::Add, [10, -4, 4, -10, 127, -127, 4]);
    check(Binary::Mul, [21, -21, -21, 21, -128, -128, -5]);
    check(Binary::Div, [2, -2, -2, 2, -128, -128, -5]);
    check(Binary::TruncateDiv, [2, -2, -2, 2, -128, -128, -5]);
    check(Binary::FloorDiv, [2, -3, -3, 2, -128, -128, -5]);
    check(Binary::FloorMod, [1, 2, -2, -1, 0, 0, 0]);
    check(Binary::TruncateMod, [1, -1, 1, -1, 0, 0, 0]);
    check(Binary::LeftShift, [56, -56, 7, -7, -128, 0, 5]);
    check(Binary::RightShift, [0, -1, 7, -7, -128, -64, 5]);
    check(Binary::Maximum, [7, 3, 7, -3, -1, 1, 5]);
    check(Binary::ReluGrad, [7, -7, 0, 0, 0, -128, 0]);
    assert_eq!(
        both(Binary::LeftShift, &[1, 1, 1, -8], &[31, 32, 40, -1]).unwrap(),
        [i32::MIN, i32::MIN, i32::MIN, -8]
    );
    assert_eq!(
        both(Binary::RightShift, &[1, -1, 1 << 30, -8], &[31, 32, 40, -1]).unwrap(),
        [0, -1, 0, -8]
    );
    assert_eq!(
        both(Binary::Pow, &[2, 3, -1, 0, 7], &[0, 5, 3, 0, 60]).unwrap(),
        [1, 243, -1, 1, -422_604_639i32]
    );
    assert_eq!(
        both(Binary::Sub, &[7u8, 200], &[9, 100]).unwrap(),
        [254, 100]
    );
    assert_eq!(both(Binary::BitwiseXor, &[6u64], &[3]).unwrap(), [5]);
    assert_eq!(
        both(Binary::LogicalAnd, &[true, true], &[true, false]).unwrap(),
        [true, false]
    );
    assert_eq!(
        both(Binary::LogicalOr, &[false, true], &[false, false]).unwrap(),
        [false, true]
    );
}

#[test]
fn logarithms_of_halves_are_rounded_before_they_are_multiplied() {
    let x: Vec<f16> = (0..2000)
        .map(|i| f16::from_f32(i as f32 * 0.37 - 90.0))
        .collect();
    let y: Vec<f16> = (0..2000)
        .map(|i| f16::from_f32(i as f32 * 0.013 - 0.5))
        .collect();
    for (op, log) in [(Binary::Xlogy, Unary::Log), (Binary::Xlog1py, Unary::Log1p)] {
        let mut logs = vec![f16::ZERO; y.len()];
        unary::apply(&Serial, log, &y, &mut logs).unwrap();
        let (got, want) = (both(op, &x, &y), both(Binary::Mul, &x, &logs));
        for (got, want) in got.unwrap().iter().zip(want.unwrap()) {
            assert!(
                *got == want || got.is_nan() && want.is_nan(),
                "{op:?}: {got} {want}"
            );
        }
    }
}

#[test]
fn reports_faults_and_leaves_the_output() {
    for op in [
        Binary::Div,
        Binary::FloorDiv,
        Binary::FloorMod,
        Binary::TruncateDiv,
        Binary::TruncateMod,
    ] {
        let mut x = [7, 8];
        assert_eq!(
            apply_lhs(&Serial, op, &Broadcast::same(2), &mut x, &[1, 0]),
            Err(Fault::DivisionByZero)
        );
        assert_eq!(x, [7, 8]);
        assert_eq!(
            apply(
                &Serial,
                op,
                &Broadcast::scalar_rhs(0),
                &[],
                &[0],
                &mut [0; 0]
            ),
            Ok(())
        );
    }
    assert_eq!(
        both(Binary::Pow, &[2i64, 1], &[0, -1]),
        Err(Fault::NegativeExponent)
    );
    assert_eq!(
        both(Binary::LogicalAnd, &[2i64], &[0]),
        Err(Fault::Unsupported)
    );
    assert_eq!(
        both(
            Binary::FloorMod,
            &[Complex::new(1f32, 0.0)],
            &[Complex::new(1.0, 0.0)]
        ),
        Err(Fault::Unsupported)
    );
    let unordered = compare(
        &Serial,
        Compare::Less,
        &Broadcast::same(1),
        &[true],
        &[false],
        &mut [false],
    );
    assert_eq!(unordered, Err(Fault::Unsupported));
}

#[test]
fn complex_as_tensorflow() {
    let x = [
        Complex::new(3f32, -1.0),
        Complex::new(1.0, 2.0),
        Complex::ZERO,
    ];
    let y = [Complex::new(2f32, 2.0), Complex::ZERO, Complex::ZERO];
    let check = |op, want: [(f32, f32); 2]| {
        for (got, want) in both(op, &x, &y).unwrap().iter().zip(want) {
            assert!(
                (got - Complex::new(want.0, want.1)).norm() <= 1e-5 * got.norm(),
                "{op:?}: {got}"
            );
        }
    };
    assert_eq!(
        both(Binary::Div, &x[..1], &y[..1]).unwrap(),
        [Complex::new(0.5, -1.0)]
    );
    check(Binary::DivNoNan, [(0.5, -1.0), (0.0, 0.0)]);
    for size in [1e-30f32, 1e-25, 1e30] {
        let (x, y) = (Complex::new(3.0 * size, size), Complex::new(size, -size));
        let got = both(Binary::Div, &[x, Complex::ZERO], &[y, y]).unwrap();
        assert!(
            (got[0] - Complex::new(1.0, 2.0)).norm() < 1e-6,
            "{}",
            got[0]
        );
        assert_eq!(got[1], Complex::ZERO);
    }
    check(Binary::Mul, [(8.0, 4.0), (0.0, 0.0)]);
    check(Binary::Pow, [(-1.678_050_9, 18.957_2), (1.0, 0.0)]);
    check(Binary::SquaredDifference, [(10.0, 0.0), (5.0, 0.0)]);
    check(Binary::SigmoidGrad, [(-20.0, 0.0), (0.0, 0.0)]);
    check(Binary::TanhGrad, [(-26.0, -2.0), (0.0, 0.0)]);
    check(Binary::SqrtGrad, [(0.4, 0.2), (0.0, 0.0)]);
    check(Binary::RsqrtGrad, [(8.0, -44.0), (0.0, 0.0)]);
    check(Binary::ReciprocalGrad, [(-4.0, -28.0), (0.0, 0.0)]);
}

#[test]
fn comparisons_follow_ieee() {
    let x = [1.0f32, 2.0, f32::NAN, 0.0, f32::INFINITY];
    let y = [2.0f32, 1.0, f32::NAN, -0.0, f32::INFINITY];
    for (op, want) in [
        (Compare::Equal, [false, false, false, true, true]),
        (Compare::NotEqual, [true, true, true, false, false]),
        (Compare::Less, [true, false, false, false, false]),
        (Compare::LessEqual, [true, false, false, true, true]),
        (Compare::Greater, [false, true, false, false, false]),
        (Compare::GreaterEqual, [false, true, false, true, true]),
    ] {
        let mut out = [false; 5];
        compare(&Serial, op, &Broadcast::same(5), &x, &y, &mut out).unwrap();
        assert_eq!(out, want, "{op:?}");
        compare(
            &Serial,
            op,
            &Broadcast::same(5),
            &x.map(f16::from_f32),
            &y.map(f16::from_f32),
            &mut out,
        )
        .unwrap();
        assert_eq!(out, want, "{op:?}");
        compare(
            &Serial,
            op,
            &Broadcast::same(5),
            &x.map(f64::from),
            &y.map(f64::from),
            &mut out,
        )
        .unwrap();
        assert_eq!(out, want, "{op:?}");
    }
    let mut out = [false; 2];
    compare(
        &Serial,
        Compare::Equal,
        &Broadcast::scalar_rhs(2),
        &[true, false],
        &[true],
        &mut out,
    )
    .unwrap();
    assert_eq!(out, [true, false]);
}

proptest! {
    #[test]
    fn sums(lists in (1usize..5, 0usize..1500).prop_flat_map(|(k, n)| prop::collection::vec(prop::collection::vec(-1000i32..1000, n), k)), a in -5i32..5) {
        let inputs: Vec<&[i32]> = lists.iter().map(Vec::as_slice).collect();
        let n = inputs[0].len();
        let want: Vec<i32> = (0..n).map(|i| inputs.iter().map(|x| x[i]).sum()).collect();
        let mut out = vec![0; n];
        add_n(&Pool::new(2), &inputs, &mut out);
        prop_assert_eq!(&out, &want);
        let halves: Vec<Vec<f16>> = lists.iter().map(|x| x.iter().map(|&x| f16::from_f64(f64::from(x % 8))).collect()).collect();
        let halves: Vec<&[f16]> = halves.iter().map(Vec::as_slice).collect();
        let mut sum = vec![f16::ZERO; n];
        add_n(&Serial, &halves, &mut sum);
        for (i, sum) in sum.iter().enumerate() {
            prop_assert_eq!(sum.to_f64(), inputs.iter().map(|x| f64::from(x[i] % 8)).sum::<f64>());
        }
        axpy(&Serial, a, inputs[0], &mut out);
        scale(&Serial, 3, &mut out);
        let want: Vec<i32> = want.iter().zip(inputs[0]).map(|(w, x)| (w + a * x) * 3).collect();
        prop_assert_eq!(out, want);
    }
}

#[test]
fn accumulator_types() {
    assert_eq!(<f16 as Num>::Acc::ONE, 1f32);
    assert!(f64::NAN.larger(1.0).is_nan() && 1f32.smaller(f32::NAN).is_nan());
    assert_eq!(<i32 as Real>::LOWEST, i32::MIN);
}
