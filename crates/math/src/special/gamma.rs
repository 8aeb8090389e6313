//! Incomplete gamma functions, and the derivative by their first argument.
//!
//! Both expansions are written over numbers that carry their derivative along, so that the gradient is as exact as the value.

use std::ops::{Add, Div, Mul, Sub};

use super::EPSILON;
use crate::num::special::{digamma, lgamma};

/// More steps than any argument needs that converges at all.
const STEPS: usize = 20_000;

/// The lower regularised incomplete gamma function; zero at zero, else NaN unless `a > 0` and `x >= 0`.
pub fn igamma(a: f64, x: f64) -> f64 {
    lower(a, x).value
}

/// The upper regularised incomplete gamma function; NaN unless `a > 0` and `x >= 0`.
pub fn igammac(a: f64, x: f64) -> f64 {
    match is_far(a, x) {
        _ if !is_inside(a, x) => f64::NAN,
        _ if x == 0.0 => 1.0,
        _ if x == f64::INFINITY => 0.0,
        _ if a == f64::INFINITY => 1.0,
        true => (fraction(a, x) * front(a, x)).value,
        false => 1.0 - (series(a, x) * front(a, x)).value,
    }
}

/// The derivative of [`igamma`] by `a`.
pub fn igamma_grad_a(a: f64, x: f64) -> f64 {
    lower(a, x).slope
}

fn lower(a: f64, x: f64) -> Dual {
    match is_far(a, x) {
        // TensorFlow looks at `a` after that.
        _ if x == 0.0 => Dual::constant(0.0),
        _ if !is_inside(a, x) => Dual::constant(f64::NAN).with_slope(f64::NAN),
        _ if a == f64::INFINITY => Dual::constant(0.0),
        _ if x == f64::INFINITY => Dual::constant(1.0).with_slope(-0.0),
        true => Dual::constant(1.0) - fraction(a, x) * front(a, x),
        false => series(a, x) * front(a, x),
    }
}

/// By how much a gamma sample `x` of parameter `a` changes with `a` if the probability of smaller ones is kept.
pub fn gamma_sample_grad(a: f64, x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    if !is_inside(a, x) {
        return f64::NAN;
    }
    if a == f64::INFINITY {
        return 0.0;
    }
    if x == f64::INFINITY {
        return -0.0;
    }
    // The derivatives of the lower function by both arguments share a factor that may be too small to divide by.
    let slope = x.ln() - digamma(a);
    let along = |part: Dual| part.slope + part.value * slope;
    match is_far(a, x) {
        true => x * along(fraction(a, x)),
        false => -x * along(series(a, x)),
    }
}

fn is_inside(a: f64, x: f64) -> bool {
    a > 0.0 && x >= 0.0
}

/// Whether the continued fraction converges better than the series.
fn is_far(a: f64, x: f64) -> bool {
    x > 1.0 && x > a
}

/// A number with its derivative by `a`.
#[derive(Clone, Copy)]
struct Dual {
    value: f64,
    slope: f64,
}

impl Dual {
    fn constant(value: f64) -> Dual {
        Dual { value, slope: 0.0 }
    }

    fn with_slope(self, slope: f64) -> Dual {
        Dual { slope, ..self }
    }
}

impl Add for Dual {
    type Output = Dual;
    fn add(self, other: Dual) -> Dual {
        Dual {
            value: self.value + other.value,
            slope: self.slope + other.slope,
        }
    }
}

impl Sub for Dual {
    type Output = Dual;
    fn sub(self, other: Dual) -> Dual {
        Dual {
            value: self.value - other.value,
            slope: self.slope - other.slope,
        }
    }
}

impl Mul for Dual {
    type Output = Dual;
    fn mul(self, other: Dual) -> Dual {
        Dual {
            value: self.value * other.value,
            slope: self.slope * other.value + self.value * other.slope,
        }
    }
}

impl Div for Dual {
    type Output = Dual;
    fn div(self, other: Dual) -> Dual {
        let value = self.value / other.value;
        Dual {
            value,
            slope: (self.slope - value * other.slope) / other.value,
        }
    }
}

/// `x^a e^-x / Γ(a)`.
fn front(a: f64, x: f64) -> Dual {
    let log = a * x.ln() - x - lgamma(a);
    let value = log.exp();
    Dual::constant(value).with_slope(value * (x.ln() - digamma(a)))
}

/// The lower function by its power series, without [`front`].
fn series(a: f64, x: f64) -> Dual {
    let one = Dual::constant(1.0);
    let from = Dual::constant(a).with_slope(1.0);
    let (mut rising, mut term, mut sum) = (from, one, one);
    for _ in 0..STEPS {
        rising = rising + one;
        term = term * Dual::constant(x) / rising;
        sum = sum + term;
        let is_small = |part: f64, whole: f64| part.abs() <= EPSILON * whole.abs();
        if is_small(term.value, sum.value) && is_small(term.slope, sum.slope) {
            break;
        }
    }
    sum / from
}

/// The upper function by its continued fraction, without [`front`].
fn fraction(a: f64, x: f64) -> Dual {
    const BIG: f64 = 1e150;
    let (one, two) = (Dual::constant(1.0), Dual::constant(2.0));
    let mut y = Dual::constant(1.0 - a).with_slope(-1.0);
    let mut z = y + Dual::constant(x + 1.0);
    let (mut p_before, mut q_before) = (one, Dual::constant(x));
    let (mut p, mut q) = (Dual::constant(x + 1.0), z * Dual::constant(x));
    let mut ratio = p / q;
    for step in 1..STEPS {
        y = y + one;
        z = z + two;
        let c = y * Dual::constant(step as f64);
        let (p_next, q_next) = (p * z - p_before * c, q * z - q_before * c);
        (p_before, q_before, p, q) = (p, q, p_next, q_next);
        if q.value != 0.0 {
            let next = p / q;
            let is_near = |new: f64, old: f64| (new - old).abs() <= EPSILON * new.abs();
            let is_done = is_near(next.value, ratio.value) && is_near(next.slope, ratio.slope);
            ratio = next;
            if is_done {
                break;
            }
        }
        if p.value.abs() > BIG {
            let small = Dual::constant(1.0 / BIG);
            (p_before, q_before) = (p_before * small, q_before * small);
            (p, q) = (p * small, q * small);
        }
    }
    ratio
}
