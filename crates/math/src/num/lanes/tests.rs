//! Errors against double precision over dense sweeps, and the special values.

use super::*;
use crate::num::isa::{Fused, Portable};
use crate::num::special;

/// Distance in units of the last place of the exact value; both NaN or both the same infinity count as 0.
fn ulps(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if got.is_nan() || rounded.is_nan() {
        return if got.is_nan() && rounded.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    if got.is_infinite() || rounded.is_infinite() {
        // One step around the overflow limit is rounding.
        return if got == rounded {
            0.0
        } else {
            (f64::from(got) / exact - 1.0).abs() * 1e7
        };
    }
    let spacing = f64::from(rounded.abs().max(f32::MIN_POSITIVE)) * 2f64.powi(-23);
    (f64::from(got) - exact).abs() / spacing
}

fn special_values() -> Vec<f32> {
    let mut values = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        0.25,
        1e-30,
        -1e-30,
        1e-40,
        -1e-40,
        1e30,
        -1e30,
        88.72,
        88.73,
        89.4,
        90.0,
        -87.3,
        -87.4,
        -103.9,
        -104.1,
        -110.0,
        1e9,
        1.1e9,
        16_777_216.0,
        1e6,
        -1e6,
        0.999_999_9,
        1.000_000_1,
        9.01,
        9.1,
        4.0,
        10.5,
        11.0,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::EPSILON,
    ];
    values.extend((-200..=200).map(|i| i as f32 * 0.125));
    values
}

fn check(
    name: &str,
    lane: [fn(f32) -> f32; 2],
    exact: fn(f64) -> f64,
    range: (f32, f32),
    limit: f64,
) {
    let steps = 200_000;
    let mut worst = (0.0, 0.0);
    let sweep = (0..=steps).map(|i| range.0 + (range.1 - range.0) * (i as f32 / steps as f32));
    // The same number of points at all binary scales inside the range.
    let scales = (0..steps)
        .map(|i: u32| f32::from_bits(i.wrapping_mul(2_654_435_769)))
        .filter(|x| *x >= range.0 && *x <= range.1);
    for x in sweep.chain(scales).chain(special_values()) {
        for lane in lane {
            let error = ulps(lane(x), exact(f64::from(x)));
            if error > worst.0 {
                worst = (error, x);
            }
        }
    }
    assert!(worst.0 <= limit, "{name}: {} ulp at {:e}", worst.0, worst.1);
}

macro_rules! checks {
    ($($name:ident: $exact:expr, $low:expr, $high:expr, $limit:expr;)*) => {$(
        #[test]
        fn $name() {
            check(stringify!($name), [super::$name::<Portable>, super::$name::<Fused>], $exact, ($low, $high), $limit);
        }
    )*};
}

checks! {
    exp: f64::exp, -104.0, 90.0, 1.1;
    expm1: f64::exp_m1, -20.0, 90.0, 1.6;
    log: f64::ln, 0.0, 4.0, 1.5;
    log1p: f64::ln_1p, -1.0, 4.0, 2.0;
    tanh: f64::tanh, -10.0, 10.0, 3.0;
    sigmoid: |x| 1.0 / (1.0 + (-x).exp()), -88.0, 40.0, 2.5;
    softplus: |x| if x > 30.0 { x } else { x.exp().ln_1p() }, -100.0, 40.0, 3.0;
    sinh: f64::sinh, -90.0, 90.0, 2.5;
    cosh: f64::cosh, -90.0, 90.0, 2.5;
    asinh: f64::asinh, -100.0, 100.0, 3.0;
    acosh: f64::acosh, 1.0, 100.0, 3.0;
    atanh: f64::atanh, -1.0, 1.0, 3.0;
    asin: f64::asin, -1.0, 1.0, 2.5;
    acos: f64::acos, -1.0, 1.0, 2.5;
    atan: f64::atan, -100.0, 100.0, 2.5;
    erf: special::erf, -4.5, 4.5, 2.5;
    erfc: special::erfc, -5.0, 10.0, 4.0;
}

#[test]
fn inverse_functions() {
    for i in 1..200_000 {
        let x = i as f32 / 200_000.0;
        for x in [x, x * 1e-3, 1.0 - x * 1e-5] {
            let exact = special::erfinv(f64::from(x));
            for got in [
                erfinv::<Portable>(x),
                erfinv::<Fused>(x),
                -erfinv::<Fused>(-x),
            ] {
                assert!(
                    is_far((1.0 - x) * (1.0 + x)) || ulps(got, exact) <= 4.0,
                    "{x:e}: {got} {exact}"
                );
            }
            let exact = special::ndtri(f64::from(x));
            for got in [ndtri::<Portable>(x), ndtri::<Fused>(x)] {
                assert!(
                    is_far(4.0 * x * (1.0 - x)) || ulps(got, exact) <= 4.0,
                    "{x:e}: {got} {exact}"
                );
            }
        }
    }
    assert!(is_far(f32::NAN) && is_far(-1.0) && is_far(0.0));
}

/// Distance in units of the last place of `f64`.
fn ulps64(got: f64, exact: f64) -> f64 {
    if got == exact || (got.is_nan() && exact.is_nan()) {
        return 0.0;
    }
    (got - exact).abs() / (exact.abs().max(f64::MIN_POSITIVE) * f64::EPSILON)
}

#[test]
fn double_precision() {
    let special = special_values().into_iter().map(f64::from);
    let wide = [
        709.78,
        709.79,
        711.0,
        -745.1,
        -745.2,
        -708.4,
        -800.0,
        5e-324,
        1e-310,
        f64::MAX,
        f64::MIN,
        19.06,
        19.2,
        22.0,
    ];
    let sweep = (0..200_000).map(|i| (f64::from(i) - 100_000.0) * 7.3e-3);
    let scales = (0..2000).map(|i| (f64::from(i) * 0.7 - 700.0).exp2() * 1.3);
    for x in special
        .chain(wide)
        .chain(sweep)
        .chain(scales)
        .flat_map(|x| [x, -x])
    {
        for (name, got, exact, limit) in [
            ("exp", exp64::<Fused>(x), x.exp(), 1.5),
            ("exp", exp64::<Portable>(x), x.exp(), 1.5),
            ("log", log64::<Fused>(x), x.ln(), 1.5),
            ("log", log64::<Portable>(x), x.ln(), 1.5),
            ("tanh", tanh64::<Fused>(x), x.tanh(), 3.0),
            (
                "sigmoid",
                sigmoid64::<Portable>(x),
                1.0 / (1.0 + (-x).exp()),
                2.5,
            ),
        ] {
            assert!(
                ulps64(got, exact) <= limit,
                "{name}({x:e}) = {got:e}, not {exact:e}"
            );
        }
    }
}

#[test]
fn sin_cos_tan_below_huge() {
    for i in 0..400_000 {
        let x = i as f32 * 2.413_7 - 480_000.0;
        for x in [x, x * 1e-3, x * 1e-5, 0.0, -0.0] {
            let wide = f64::from(x);
            for (got, exact) in [
                (sin::<Portable>(x), wide.sin()),
                (sin::<Fused>(x), wide.sin()),
                (cos::<Portable>(x), wide.cos()),
                (cos::<Fused>(x), wide.cos()),
            ] {
                assert!(ulps(got, exact) <= 2.0, "{x:e}: {got} {exact}");
            }
            assert!(ulps(tan::<Fused>(x), wide.tan()) <= 4.0, "{x:e}");
            assert!(ulps(tan::<Portable>(x), wide.tan()) <= 4.0, "{x:e}");
        }
    }
    assert!(sin::<Fused>(f32::NAN).is_nan());
    assert!(sin::<Fused>(-0.0).is_sign_negative());
}

#[test]
fn pow_against_double() {
    let mut values = special_values();
    values.extend((1..400).map(|i| (i as f32).exp2().sqrt() * 1e-20));
    for &x in &values {
        for &y in &values {
            let exact = f64::from(x).powf(f64::from(y));
            for got in [pow::<Portable>(x, y), pow::<Fused>(x, y)] {
                assert!(ulps(got, exact) <= 1.5, "{x:e} ^ {y:e}: {got:e} {exact:e}");
            }
        }
    }
}

#[test]
fn atan2_against_double() {
    let values = special_values();
    for &y in &values {
        for &x in &values {
            let exact = f64::from(y).atan2(f64::from(x));
            let got = atan2::<Fused>(y, x);
            assert!(ulps(got, exact) <= 3.0, "{y:e} {x:e}: {got:e} {exact:e}");
            assert_eq!(
                got.is_sign_negative(),
                exact.is_sign_negative() || (got.is_nan() && got.is_sign_negative())
            );
        }
    }
}

#[test]
fn keeps_signed_zero() {
    for f in [
        super::expm1::<Fused>,
        super::log1p::<Fused>,
        super::tanh::<Fused>,
        super::sinh::<Fused>,
        super::asinh::<Fused>,
        super::atanh::<Fused>,
        super::asin::<Fused>,
        super::atan::<Fused>,
        super::erf::<Fused>,
    ] {
        assert!(f(-0.0).is_sign_negative());
        assert!(f(0.0).is_sign_positive());
    }
}
