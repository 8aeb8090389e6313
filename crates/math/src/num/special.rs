//! Special functions in double precision, one value at a time.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

mod c {
    unsafe extern "C" {
        pub(super) safe fn erf(x: f64) -> f64;
        pub(super) safe fn erfc(x: f64) -> f64;
        pub(super) fn lgamma_r(x: f64, sign: *mut i32) -> f64;
        pub(super) fn lgammaf_r(x: f32, sign: *mut i32) -> f32;
    }
}

/// The error function.
pub(crate) fn erf(x: f64) -> f64 {
    c::erf(x)
}

/// The complementary error function.
pub(crate) fn erfc(x: f64) -> f64 {
    c::erfc(x)
}

/// The logarithm of the absolute value of the gamma function.
pub(crate) fn lgamma(x: f64) -> f64 {
    let mut sign = 0;
    // SAFETY: `lgamma_r` writes one int through the pointer, which is valid for that.
    unsafe { c::lgamma_r(x, &mut sign) }
}

/// The logarithm of the absolute value of the gamma function in single precision.
pub(crate) fn lgamma_single(x: f32) -> f32 {
    let mut sign = 0;
    // SAFETY: as for `lgamma`.
    unsafe { c::lgammaf_r(x, &mut sign) }
}

/// [`digamma`] with the accuracy that single precision needs: one division for the shift, a short series.
pub(crate) fn digamma_single(x: f32) -> f32 {
    let wide = f64::from(x);
    if wide <= 0.0 || wide.is_nan() {
        return digamma(wide) as f32;
    }
    // The sum of 1/(x + i) as one fraction.
    let (mut x, mut up, mut down) = (wide, 0.0, 1.0);
    while x < 6.0 {
        up = up * x + down;
        down *= x;
        x += 1.0;
    }
    let y = 1.0 / x;
    let z = y * y;
    let series = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z / 240.0)));
    (x.ln() - 0.5 * y - series - up / down) as f32
}

/// The derivative of `lgamma`; NaN at the poles.
pub(crate) fn digamma(x: f64) -> f64 {
    if x <= 0.0 {
        if x.floor() == x {
            return f64::NAN;
        }
        // Reflection; the tangent of the fraction alone, as pi x has lost it for large x.
        let fraction = x - x.round();
        return digamma(1.0 - x) - PI / (PI * fraction).tan();
    }
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0
                    - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z / 12.0))))));
    x.ln() - 0.5 / x - series - shift
}

/// The quantile of the standard normal distribution; infinite at 0 and 1, NaN outside.
pub(crate) fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    // The upper half by symmetry: 1 - p is exact there.
    if p > 0.5 {
        -lower_quantile(1.0 - p)
    } else {
        lower_quantile(p)
    }
}

/// The inverse of `erf`; infinite at -1 and 1, NaN outside.
pub(crate) fn erfinv(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    if x.abs() < 0.5 {
        return inverse_near_zero(x);
    }
    let tail = 0.5 * (1.0 - x.abs());
    (-lower_quantile(tail) * FRAC_1_SQRT_2).copysign(x)
}

/// `erfinv` by Newton's method on `erf`, which keeps relative accuracy near zero.
fn inverse_near_zero(x: f64) -> f64 {
    let c = 0.5 * PI.sqrt();
    let mut y = c * x * (1.0 + PI / 12.0 * x * x * (1.0 + 7.0 * PI / 40.0 * x * x));
    for _ in 0..4 {
        let error = (erf(y) - x) * c * (y * y).exp();
        y -= error / (1.0 + y * error);
    }
    // `+ 0.0` turns -0 to 0, which TensorFlow gives for both.
    y + 0.0
}

/// `ndtri` for `0 <= p <= 0.5`: a rough start from the tail's asymptote, then Halley's method on `erfc`.
fn lower_quantile(p: f64) -> f64 {
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p == 0.5 {
        return 0.0;
    }
    let t = (-2.0 * p.ln()).sqrt();
    // A rational start that is right to 5e-4 everywhere (Abramowitz and Stegun 26.2.23).
    let mut x = (2.515_517 + t * (0.802_853 + t * 0.010_328))
        / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)))
        - t;
    for _ in 0..3 {
        let value = 0.5 * erfc(-x * FRAC_1_SQRT_2);
        // Relative error times the tail's ratio to its density, so that nothing underflows far out.
        let error = (value - p) * (0.5 * x * x).exp() * (PI.sqrt() * SQRT_2);
        if !error.is_finite() {
            break;
        }
        x -= error / (1.0 + 0.5 * x * error);
    }
    x
}
