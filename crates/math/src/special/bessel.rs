//! Bessel functions of orders zero and one.
//!
//! `i0e` and the like are multiplied by exp(-|x|), `k0e` by exp(x). Functions of the second kind are infinite at
//! zero and, as in TensorFlow, below. Waves have no value at infinity.

use std::f64::consts::{FRAC_2_PI, LN_2, PI};

/// Euler's constant.
pub(super) const EULER: f64 = 0.577_215_664_901_532_9;

/// From here on the expansions in 1/x are exact.
const FAR: f64 = 25.0;

/// The modified function of the first kind, order zero.
pub fn i0(x: f64) -> f64 {
    match x.abs() {
        x if x < FAR => i_series(0, x),
        x => grown(i_far(0, x), x),
    }
}

/// [`i0`] times exp(-|x|).
pub fn i0e(x: f64) -> f64 {
    match x.abs() {
        x if x < FAR => i_series(0, x) * (-x).exp(),
        x => i_far(0, x),
    }
}

/// The modified function of the first kind, order one.
pub fn i1(x: f64) -> f64 {
    let size = match x.abs() {
        x if x < FAR => i_series(1, x),
        x => grown(i_far(1, x), x),
    };
    size.copysign(x)
}

/// [`i1`] times exp(-|x|).
pub fn i1e(x: f64) -> f64 {
    let size = match x.abs() {
        x if x < FAR => i_series(1, x) * (-x).exp(),
        x => i_far(1, x),
    };
    size.copysign(x)
}

/// The modified function of the second kind, order zero.
pub fn k0(x: f64) -> f64 {
    k(0, x, false)
}

/// [`k0`] times exp(x).
pub fn k0e(x: f64) -> f64 {
    k(0, x, true)
}

/// The modified function of the second kind, order one.
pub fn k1(x: f64) -> f64 {
    k(1, x, false)
}

/// [`k1`] times exp(x).
pub fn k1e(x: f64) -> f64 {
    k(1, x, true)
}

/// The function of the first kind, order zero.
pub fn j0(x: f64) -> f64 {
    oscillating(x.abs()).j[0]
}

/// The function of the first kind, order one.
pub fn j1(x: f64) -> f64 {
    let value = oscillating(x.abs()).j[1];
    if x.is_sign_negative() { -value } else { value }
}

/// The function of the second kind, order zero.
pub fn y0(x: f64) -> f64 {
    second_kind(x, 0)
}

/// The function of the second kind, order one.
pub fn y1(x: f64) -> f64 {
    second_kind(x, 1)
}

/// `value` · exp(x), where exp(x) alone may be too large.
fn grown(value: f64, x: f64) -> f64 {
    let half = (0.5 * x).exp();
    value * half * half
}

/// Σ (x/2)^(2k + order) / (k! · (k + order)!): all terms are positive.
fn i_series(order: u32, x: f64) -> f64 {
    let square = 0.25 * x * x;
    let mut term = if order == 0 { 1.0 } else { 0.5 * x };
    let mut sum = term;
    let mut k = 1.0;
    while term > sum * 1e-17 {
        term *= square / (k * (k + f64::from(order)));
        sum += term;
        k += 1.0;
    }
    sum
}

/// The factor of term `k` of the expansions in 1/x: ((2k - 1)² - 4·order²) / 8k.
fn far_factor(order: u32, k: f64) -> f64 {
    let odd = 2.0 * k - 1.0;
    (odd * odd - f64::from(4 * order * order)) / (8.0 * k)
}

fn i_far(order: u32, x: f64) -> f64 {
    let (mut term, mut sum, mut k) = (1.0f64, 1.0, 1.0);
    while term.abs() > 1e-17 && k < 50.0 {
        term *= far_factor(order, k) / x;
        sum += term;
        k += 1.0;
    }
    sum / (2.0 * PI * x).sqrt()
}

fn k(order: u32, x: f64, is_scaled: bool) -> f64 {
    if x <= 0.0 {
        return f64::INFINITY;
    }
    if x.is_nan() {
        return x;
    }
    if x.is_infinite() {
        return 0.0;
    }
    if x < 0.5 {
        let scale = if is_scaled { x.exp() } else { 1.0 };
        return scale * k_series(order, x);
    }
    let scaled = k_integral(order, x);
    if is_scaled {
        scaled
    } else {
        scaled * (-x).exp()
    }
}

/// The series with a logarithm.
fn k_series(order: u32, x: f64) -> f64 {
    // Of the smallest number there is no half.
    let (square, log) = (0.25 * x * x, x.ln() - LN_2);
    // digamma(k + 1) at k = 0.
    let mut digamma = -EULER;
    let (mut term, mut sum) = (1.0, 0.0);
    for k in 0..12 {
        let k = f64::from(k);
        if order == 0 {
            sum += term * (digamma - log);
        } else {
            let mean = digamma + 0.5 / (k + 1.0);
            sum += term * (log - mean) / (k + 1.0);
        }
        digamma += 1.0 / (k + 1.0);
        term *= square / ((k + 1.0) * (k + 1.0));
    }
    if order == 0 {
        sum
    } else {
        1.0 / x + 0.5 * x * sum
    }
}

/// ∫ exp(x - x·cosh t) · cosh(order·t) dt from zero, by steps that the integrand is too smooth to notice.
fn k_integral(order: u32, x: f64) -> f64 {
    let step = f64::min(0.25, 0.65 / x.sqrt());
    let (mut sum, mut t) = (0.5, step);
    // Some twenty are enough.
    for _ in 0..1000 {
        // cosh t - 1 without cancellation.
        let half = (0.5 * t).sinh();
        let above = 2.0 * half * half;
        let decay = (-x * above).exp();
        let term = if order == 0 {
            decay
        } else {
            decay * (1.0 + above)
        };
        sum += term;
        t += step;
        if term <= sum * 1e-18 {
            break;
        }
    }
    sum * step
}

/// Orders zero and one of both kinds at one place.
struct Oscillating {
    j: [f64; 2],
    y: [f64; 2],
}

fn second_kind(x: f64, order: usize) -> f64 {
    if x <= 0.0 {
        return f64::NEG_INFINITY;
    }
    oscillating(x).y[order]
}

/// At `x` from zero on.
fn oscillating(x: f64) -> Oscillating {
    if x == f64::INFINITY {
        return Oscillating {
            j: [f64::NAN; 2],
            y: [f64::NAN; 2],
        };
    }
    if x < FAR { near(x) } else { far(x) }
}

/// All orders by their recurrence downwards, scaled by their sum; functions of the second kind as sums of them.
fn near(x: f64) -> Oscillating {
    let log = FRAC_2_PI * ((0.5 * x).ln() + EULER);
    if x < 1e-8 {
        let y = [log, log * 0.5 * x - FRAC_2_PI * (1.0 / x + 0.5 * x)];
        return Oscillating {
            j: [1.0, 0.5 * x],
            y,
        };
    }
    let first = 2 * ((x as u32 + 42) / 2);
    let (mut above, mut here) = (0.0, 1e-280);
    // 1 = J0 + 2·Σ J2k; Σ (-1)^k · J2k / k; Σ (-1)^k · (2k + 1) / (k·(k + 1)) · J(2k + 1).
    let (mut whole, mut even, mut odd) = (0.0, 0.0, 0.0);
    for order in (1..=first).rev() {
        // `here` is of this order.
        let k = f64::from(order / 2);
        let sign = if order / 2 % 2 == 0 { 1.0 } else { -1.0 };
        if order % 2 == 0 {
            whole += 2.0 * here;
            even += sign * here / k;
        } else if order > 1 {
            odd += sign * (2.0 * k + 1.0) / (k * (k + 1.0)) * here;
        }
        let below = 2.0 * f64::from(order) / x * here - above;
        (above, here) = (here, below);
        if here.abs() > 1e250 {
            for value in [&mut above, &mut here, &mut whole, &mut even, &mut odd] {
                *value *= 1e-250;
            }
        }
    }
    whole += here;
    let j = [here / whole, above / whole];
    let y0 = log * j[0] - 2.0 * FRAC_2_PI * even / whole;
    let y1 = (log - FRAC_2_PI) * j[1] - FRAC_2_PI * (j[0] / x + odd / whole);
    Oscillating { j, y: [y0, y1] }
}

/// A wave whose amplitude and phase are expansions in 1/x.
fn far(x: f64) -> Oscillating {
    let (sin, cos) = x.sin_cos();
    let amplitude = 1.0 / (PI * x).sqrt();
    let waves = [0u32, 1].map(|order| {
        let (mut p, mut q) = (1.0, 0.0);
        let mut term = 1.0f64;
        for k in 1..50 {
            term *= -far_factor(order, f64::from(k)) / x;
            match k % 4 {
                0 => p += term,
                1 => q += term,
                2 => p -= term,
                _ => q -= term,
            }
            if term.abs() < 1e-17 {
                break;
            }
        }
        // The phase is x - π/4, a quarter turn less for order one.
        let (c, s) = match order {
            0 => (cos + sin, sin - cos),
            _ => (sin - cos, -(sin + cos)),
        };
        [amplitude * (p * c - q * s), amplitude * (p * s + q * c)]
    });
    Oscillating {
        j: waves.map(|wave| wave[0]),
        y: waves.map(|wave| wave[1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_kinds_end_at_both_ends() {
        for far in [k0, k0e, k1, k1e] {
            assert_eq!(far(f64::INFINITY), 0.0);
            assert!(far(f64::MAX) >= 0.0);
            assert!(far(f64::NAN).is_nan());
        }
        let near = f64::from_bits(1);
        assert!((k0(near) - 744.556).abs() < 1e-2, "{}", k0(near));
        assert_eq!(k1(near), f64::INFINITY);
    }
}
