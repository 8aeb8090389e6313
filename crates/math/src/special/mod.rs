//! Special functions one value at a time in double precision (and in [`single`] and [`pairs`] whole slices for `f32`): incomplete gamma and beta functions, the Hurwitz zeta function,
//! derivatives of the digamma function, Bessel functions, integrals without elementary form.
//!
//! ```
//! use tensorfleet_math::special::{betainc, igamma, zeta};
//! assert!((zeta(2.0, 1.0) - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-14);
//! assert!((igamma(1.0, 2.0) - (1.0 - (-2f64).exp())).abs() < 1e-14);
//! assert!((betainc(2.0, 2.0, 0.5) - 0.5).abs() < 1e-14);
//! ```

mod bessel;
mod bessel_single;
mod gamma;
mod integrals;
pub mod pairs;
pub mod single;
#[cfg(test)]
mod tests;

pub use bessel::{i0, i0e, i1, i1e, j0, j1, k0, k0e, k1, k1e, y0, y1};
pub use gamma::{gamma_sample_grad, igamma, igamma_grad_a, igammac};
pub use integrals::{dawsn, expint, fresnel_cos, fresnel_sin, spence};

use crate::num::special::{digamma, lgamma};

const EPSILON: f64 = 1e-16;

/// The Hurwitz zeta function, the sum of `(q + k)^-x` for all `k` from zero: infinite at the poles of even powers, NaN at all others
/// and where it is not real.
pub fn zeta(x: f64, q: f64) -> f64 {
    // (2k)! / B_2k, the denominators of the Euler-Maclaurin series.
    const FACTORS: [f64; 12] = [
        12.0,
        -720.0,
        30_240.0,
        -1_209_600.0,
        47_900_160.0,
        -1.892_437_580_318_379_2e9,
        7.472_424_96e10,
        -2.950_130_727_918_164e12,
        1.164_678_281_435_006_7e14,
        -4.597_978_722_407_473e15,
        1.815_210_540_194_354_7e17,
        -7.166_165_256_175_667e18,
    ];
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || x.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q.floor() == q {
            return if x % 2.0 == 0.0 || x.is_infinite() {
                f64::INFINITY
            } else {
                f64::NAN
            };
        }
        if x.floor() != x {
            return f64::NAN;
        }
    }
    if q == f64::INFINITY || x == f64::INFINITY && q > 1.0 {
        return 0.0;
    }
    // The first terms one by one, the rest as an integral with corrections.
    let mut sum = q.powf(-x);
    let mut at = q;
    let mut term = 0.0;
    let mut count = 0;
    while count < 9 || at <= 9.0 {
        count += 1;
        at += 1.0;
        term = at.powf(-x);
        sum += term;
        if (term / sum).abs() < EPSILON {
            return sum;
        }
    }
    sum += term * at / (x - 1.0) - 0.5 * term;
    let mut rising = 1.0;
    for (k, factor) in FACTORS.iter().enumerate() {
        let k = 2.0 * k as f64;
        rising *= x + k;
        term /= at;
        let correction = rising * term / factor;
        sum += correction;
        if (correction / sum).abs() < EPSILON {
            break;
        }
        rising *= x + k + 1.0;
        term /= at;
    }
    sum
}

/// The `n`-th derivative of the digamma function; NaN unless `n` is a whole number from zero.
pub fn polygamma(n: f64, x: f64) -> f64 {
    if n.floor() != n || n < 0.0 {
        return f64::NAN;
    }
    if n == 0.0 {
        return digamma(x);
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    sign * lgamma(n + 1.0).exp() * zeta(n + 1.0, x)
}

/// The regularised incomplete beta function; NaN unless `a` and `b` are positive and `x` is from zero to one. At both ends of
/// that it is not asked whether `a` and `b` are NaN.
pub fn betainc(a: f64, b: f64, x: f64) -> f64 {
    let is_outside = a <= 0.0 || b <= 0.0;
    if !is_outside && (x == 0.0 || x == 1.0) {
        return x;
    }
    let is_inside = a > 0.0 && b > 0.0 && (0.0..=1.0).contains(&x);
    if !is_inside {
        return f64::NAN;
    }
    let front = (a * x.ln() + b * (-x).ln_1p() + lgamma(a + b) - lgamma(a) - lgamma(b)).exp();
    // The fraction converges fast below the mean; above it, by symmetry.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        let step = d * c;
        fraction *= step;
        if (step - 1.0).abs() < 4.0 * EPSILON {
            break;
        }
    }
    fraction
}
