//! Integrals without elementary form: Dawson's, the exponential, Fresnel's, the dilogarithm.

use std::f64::consts::{FRAC_PI_2, PI};

use super::bessel::EULER;
use crate::num::Complex128;

/// Dawson's integral: exp(-x²) · ∫ exp(t²) dt from zero to x.
pub fn dawsn(x: f64) -> f64 {
    let size = x.abs();
    if size < 0.25 {
        // Σ (-2x²)^k · x / (2k + 1)!!
        let (mut term, mut sum) = (x, x);
        for k in 1..16 {
            term *= -2.0 * x * x / f64::from(2 * k + 1);
            sum += term;
        }
        return sum;
    }
    // There TensorFlow loses the sign.
    if size > 1e9 {
        return 0.5 / size;
    }
    if size > 10.0 {
        let inverse = 0.5 / (x * x);
        let (mut term, mut sum) = (1.0f64, 1.0);
        for k in 1..30 {
            term *= f64::from(2 * k - 1) * inverse;
            sum += term;
        }
        return 0.5 / x * sum;
    }
    // Rybicki's sum over odd multiples of a step, written from the even multiple nearest to x.
    const STEP: f64 = 0.2;
    let nearest = 2.0 * (0.5 * size / STEP).round();
    let rest = size - nearest * STEP;
    let mut sum = 0.0;
    for odd in (1..70).step_by(2) {
        let odd = f64::from(odd);
        for n in [odd, -odd] {
            let distance = rest - n * STEP;
            sum += (-distance * distance).exp() / (nearest + n);
        }
    }
    (sum / PI.sqrt()).copysign(x)
}

/// The exponential integral Ei(x) of positive x; minus infinity at zero, NaN below and, as in TensorFlow, at infinity.
pub fn expint(x: f64) -> f64 {
    if x < 0.0 || x.is_nan() || x == f64::INFINITY {
        return f64::NAN;
    }
    let (mut term, mut sum) = (1.0, 0.0);
    if x < 40.0 {
        for k in 1..150 {
            let k = f64::from(k);
            term *= x / k;
            sum += term / k;
            if term < k * sum * 1e-17 {
                break;
            }
        }
        return EULER + x.ln() + sum;
    }
    for k in 1..40 {
        sum += term;
        term *= f64::from(k) / x;
        if term < 1e-17 {
            break;
        }
    }
    let half = (0.5 * x).exp();
    half * (half / x * sum)
}

/// ∫ cos(πt²/2) dt from zero to x.
pub fn fresnel_cos(x: f64) -> f64 {
    fresnel(x).re
}

/// ∫ sin(πt²/2) dt from zero to x.
pub fn fresnel_sin(x: f64) -> f64 {
    fresnel(x).im
}

fn fresnel(x: f64) -> Complex128 {
    let size = x.abs();
    let value = if size < 1.6 {
        fresnel_series(size)
    } else if size < 4e4 {
        fresnel_fraction(size)
    } else if size.is_nan() {
        Complex128::new(x, x)
    } else {
        // The last wave is lost in rounding.
        Complex128::new(0.5, 0.5)
    };
    if x < 0.0 { -value } else { value }
}

/// Σ (iπ/2)^k · x^(2k + 1) / ((2k + 1) · k!)
fn fresnel_series(x: f64) -> Complex128 {
    let step = Complex128::new(0.0, FRAC_PI_2 * x * x);
    let mut term = Complex128::new(x, 0.0);
    let mut sum = term;
    for k in 1..40 {
        let k = f64::from(k);
        term *= step / k;
        sum += term / (2.0 * k + 1.0);
    }
    sum
}

/// (1 + i)/2 · erf(√π/2 · (1 - i)·x), the complement by its continued fraction, from the front by Lentz's method.
fn fresnel_fraction(x: f64) -> Complex128 {
    let square = PI * x * x;
    let mut b = Complex128::new(1.0, -square);
    let mut d = 1.0 / b;
    let mut c = Complex128::new(1e300, 0.0);
    let mut fraction = d;
    for n in (1..400).step_by(2) {
        let a = -f64::from(n * (n + 1));
        b += 4.0;
        d = 1.0 / (d * a + b);
        c = b + a / c;
        let step = c * d;
        fraction *= step;
        if (step - 1.0).norm() < 1e-16 {
            break;
        }
    }
    let wave = Complex128::from_polar(1.0, 0.5 * square);
    let rest = wave * fraction * Complex128::new(x, -x);
    Complex128::new(0.5, 0.5) * (1.0 - rest)
}

/// Spence's integral: -∫ ln t / (t - 1) dt from one to x, the dilogarithm of 1 - x; NaN below zero and, as in
/// TensorFlow, at infinity.
pub fn spence(x: f64) -> f64 {
    const AT_ZERO: f64 = PI * PI / 6.0;
    if x < 0.0 || x.is_nan() || x == f64::INFINITY {
        f64::NAN
    } else if x == 0.0 {
        AT_ZERO
    } else if x < 0.5 {
        AT_ZERO - x.ln() * (-x).ln_1p() - dilogarithm(x)
    } else if x <= 1.5 {
        dilogarithm(1.0 - x)
    } else {
        let log = x.ln();
        -0.5 * log * log - spence(1.0 / x)
    }
}

/// Σ z^k / k² for |z| of at most one half.
fn dilogarithm(z: f64) -> f64 {
    let (mut power, mut sum) = (z, z);
    for k in 2..60 {
        let k = f64::from(k);
        power *= z;
        sum += power / (k * k);
    }
    sum
}
