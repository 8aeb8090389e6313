//! Functions of two arguments for `f32`: computed in double precision, a block of elements at a time.
//!
//! Every step of a series is a loop over the block, which vectorises; the series ends when it has for all elements. Arguments that
//! these expansions are not made for go one by one to the functions in double precision.

use crate::num::isa::{Isa, multiversion};
use crate::num::lanes::{exp64, log64};

/// Elements of a block.
const LANES: usize = 16;

type Block = [f64; LANES];

/// Relative errors that `f32` does not show.
const EXACT: f64 = 1e-10;

/// Easy for all functions.
const EASY: f64 = 2.0;

/// A whole block of what may be the end of a slice.
#[inline(always)]
fn block(x: &[f32]) -> [f32; LANES] {
    x.first_chunk::<LANES>().copied().unwrap_or_else(|| {
        let mut block = [EASY as f32; LANES];
        block[..x.len()].copy_from_slice(x);
        block
    })
}

/// Declares loops over `f32` slices, as long as the shortest one.
macro_rules! loops {
    ($($(#[$doc:meta])* $name:ident = $body:ident, $block:ident, $is_easy:ident, $slow:path;)*) => {$(
        multiversion! {
            $(#[$doc])*
            pub fn $name(a: &[f32], x: &[f32], out: &mut [f32]) = $body with isa;
        }

        #[inline(always)]
        fn $body<I: Isa>(a: &[f32], x: &[f32], out: &mut [f32]) {
            let blocks = a.chunks(LANES).zip(x.chunks(LANES));
            for ((a, x), out) in blocks.zip(out.chunks_mut(LANES)) {
                let (narrow_a, narrow_x) = (block(a), block(x));
                let (mut wide_a, mut wide_x) = ([0.0; LANES], [0.0; LANES]);
                let mut is_hard = false;
                for i in 0..LANES {
                    let (a, x) = (f64::from(narrow_a[i]), f64::from(narrow_x[i]));
                    let is_easy = $is_easy(a, x);
                    is_hard |= !is_easy;
                    wide_a[i] = if is_easy { a } else { EASY };
                    wide_x[i] = if is_easy { x } else { EASY };
                }
                let found = $block::<I>(&wide_a, &wide_x).map(|found| found as f32);
                match out.first_chunk_mut::<LANES>() {
                    Some(out) => *out = found,
                    None => out.copy_from_slice(&found[..out.len()]),
                }
                if is_hard {
                    for ((a, x), out) in a.iter().zip(x).zip(out) {
                        let (a, x) = (f64::from(*a), f64::from(*x));
                        if !$is_easy(a, x) {
                            *out = $slow(a, x) as f32;
                        }
                    }
                }
            }
        }
    )*};
}

loops! {
    /// [`super::igamma`] of each pair.
    igamma = igamma_loop, lower, is_easy_gamma, super::igamma;
    /// [`super::igammac`] of each pair.
    igammac = igammac_loop, upper, is_easy_gamma, super::igammac;
    /// [`super::polygamma`] of each pair.
    polygamma = polygamma_loop, derivative, is_easy_derivative, super::polygamma;
    /// [`super::zeta`] of each pair.
    zeta = zeta_loop, hurwitz, is_easy_zeta, super::zeta;
}

#[inline(always)]
fn is_easy_gamma(a: f64, x: f64) -> bool {
    // Without a jump, here and below: these are asked in vectors.
    (0.05..=500.0).contains(&a) & (1e-30..=500.0).contains(&x)
}

#[inline(always)]
fn lower<I: Isa>(a: &Block, x: &Block) -> Block {
    let (parts, is_far) = gamma_parts::<I>(a, x);
    let mut out = [0.0; LANES];
    for i in 0..LANES {
        out[i] = if is_far[i] { 1.0 - parts[i] } else { parts[i] };
    }
    out
}

#[inline(always)]
fn upper<I: Isa>(a: &Block, x: &Block) -> Block {
    let (parts, is_far) = gamma_parts::<I>(a, x);
    let mut out = [0.0; LANES];
    for i in 0..LANES {
        out[i] = if is_far[i] { parts[i] } else { 1.0 - parts[i] };
    }
    out
}

/// The upper part of those that are far, the lower part of the others.
#[inline(always)]
fn gamma_parts<I: Isa>(a: &Block, x: &Block) -> (Block, [bool; LANES]) {
    let mut is_far = [false; LANES];
    let (mut any_far, mut any_near) = (false, false);
    for i in 0..LANES {
        is_far[i] = x[i] > 1.0 && x[i] > a[i];
        any_far |= is_far[i];
        any_near |= !is_far[i];
    }
    let near = match any_near {
        true => series(a, x, &is_far),
        false => [0.0; LANES],
    };
    let far = match any_far {
        true => fraction(a, x, &is_far),
        false => [0.0; LANES],
    };
    let front = front::<I>(a, x);
    let mut parts = [0.0; LANES];
    for i in 0..LANES {
        parts[i] = front[i] * if is_far[i] { far[i] } else { near[i] };
    }
    (parts, is_far)
}

/// `x^a e^-x / Γ(a)`, by Stirling's series for a large `a`: a small one goes up by eight.
#[inline(always)]
fn front<I: Isa>(a: &Block, x: &Block) -> Block {
    const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_7;
    let mut out = [0.0; LANES];
    for i in 0..LANES {
        let (a, x) = (a[i], x[i]);
        let mut product = a;
        for k in 1..8 {
            product *= a + f64::from(k);
        }
        let is_small = a < 8.0;
        let large = if is_small { a + 8.0 } else { a };
        let product = if is_small { product } else { 1.0 };
        let inverse = 1.0 / large;
        let square = inverse * inverse;
        let rest = inverse
            * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
        let log_gamma = (large - 0.5) * log64::<I>(large) - large + HALF_LOG_TAU + rest;
        out[i] = product * exp64::<I>(a * log64::<I>(x) - x - log_gamma);
    }
    out
}

/// The lower function by its power series, without [`front`]; of no meaning for those that are far.
#[inline(always)]
fn series(a: &Block, x: &Block, is_far: &[bool; LANES]) -> Block {
    let (mut rising, mut term, mut sum) = (*a, [1.0; LANES], [1.0; LANES]);
    for _ in 0..500 {
        let mut is_done = true;
        for i in 0..LANES {
            for _ in 0..4 {
                rising[i] += 1.0;
                term[i] *= x[i] / rising[i];
                sum[i] += term[i];
            }
            is_done &= is_far[i] | (term[i] <= EXACT * sum[i]);
        }
        if is_done {
            break;
        }
    }
    for i in 0..LANES {
        sum[i] /= a[i];
    }
    sum
}

/// The upper function by its continued fraction, without [`front`]; of no meaning for those that are not far.
#[inline(always)]
fn fraction(a: &Block, x: &Block, is_far: &[bool; LANES]) -> Block {
    const BIG: f64 = 1e100;
    let (mut y, mut z, mut ratio) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let (mut p_before, mut q_before) = ([1.0; LANES], *x);
    let (mut p, mut q) = ([0.0; LANES], [0.0; LANES]);
    for i in 0..LANES {
        y[i] = 1.0 - a[i];
        z[i] = y[i] + x[i] + 1.0;
        p[i] = x[i] + 1.0;
        q[i] = z[i] * x[i];
    }
    let mut step = 0.0;
    for _ in 0..500 {
        let mut is_done = true;
        for i in 0..LANES {
            for k in 1..5 {
                y[i] += 1.0;
                z[i] += 2.0;
                let c = y[i] * (step + f64::from(k));
                let (p_next, q_next) =
                    (p[i] * z[i] - p_before[i] * c, q[i] * z[i] - q_before[i] * c);
                (p_before[i], q_before[i], p[i], q[i]) = (p[i], q[i], p_next, q_next);
            }
            let scale = if p[i].abs() > BIG { 1.0 / BIG } else { 1.0 };
            p_before[i] *= scale;
            q_before[i] *= scale;
            p[i] *= scale;
            q[i] *= scale;
            let next = p[i] / q[i];
            is_done &= !is_far[i] | ((next - ratio[i]).abs() <= EXACT * next.abs());
            ratio[i] = next;
        }
        if is_done {
            break;
        }
        step += 4.0;
    }
    ratio
}

#[inline(always)]
fn is_easy_zeta(x: f64, q: f64) -> bool {
    (x > 1.0) & (x <= 1e3) & (q > 0.0) & (q <= 1e30)
}

/// The first terms one by one, the rest as an integral with corrections.
#[inline(always)]
fn hurwitz<I: Isa>(x: &Block, q: &Block) -> Block {
    // B_2k / (2k)!
    const FACTORS: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30_240.0,
        -1.0 / 1_209_600.0,
        1.0 / 47_900_160.0,
        -691.0 / 1_307_674_368_000.0,
        1.0 / 74_724_249_600.0,
        -3617.0 / 10_670_622_842_880_000.0,
    ];
    let (mut at, mut term, mut sum) = (*q, [0.0; LANES], [0.0; LANES]);
    for k in 0..10 {
        for i in 0..LANES {
            at[i] = q[i] + f64::from(k);
            term[i] = exp64::<I>(-x[i] * log64::<I>(at[i]));
            sum[i] += term[i];
        }
    }
    for i in 0..LANES {
        let (x, at, term) = (x[i], at[i], term[i]);
        sum[i] += term * at / (x - 1.0) - 0.5 * term;
        let inverse = 1.0 / at;
        let mut power = term * inverse * x;
        for (k, factor) in FACTORS.iter().enumerate() {
            sum[i] += power * factor;
            let k = 2.0 * k as f64 + 1.0;
            power *= (x + k) * inverse * ((x + k + 1.0) * inverse);
        }
    }
    sum
}

/// The largest order whose factorial is an `f64` without rounding.
const ORDERS: usize = 20;

/// Whether the digamma function has no such derivative.
#[inline(always)]
fn is_none(n: f64) -> bool {
    (n.floor() != n) | (n < 0.0)
}

#[inline(always)]
fn is_easy_derivative(n: f64, x: f64) -> bool {
    is_none(n) | ((n >= 1.0) & (n <= ORDERS as f64) & is_easy_zeta(n + 1.0, x))
}

/// (-1)^(n + 1) · n! · ζ(n + 1, x).
#[inline(always)]
fn derivative<I: Isa>(n: &Block, x: &Block) -> Block {
    let (mut power, mut has_any) = ([0.0; LANES], false);
    for i in 0..LANES {
        power[i] = n[i] + 1.0;
        has_any |= !is_none(n[i]);
    }
    if !has_any {
        return [f64::NAN; LANES];
    }
    let mut out = hurwitz::<I>(&power, x);
    for i in 0..LANES {
        let mut factor = -1.0;
        for k in 1..=ORDERS {
            let k = k as f64;
            factor *= if k <= n[i] { -k } else { 1.0 };
        }
        out[i] = if is_none(n[i]) {
            f64::NAN
        } else {
            out[i] * factor
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    type Loop = fn(&[f32], &[f32], &mut [f32]);
    type Exact = fn(f64, f64) -> f64;

    #[test]
    fn loops_agree_with_double_precision() {
        let all: [(&str, Loop, Exact); 4] = [
            ("igamma", igamma, super::super::igamma),
            ("igammac", igammac, super::super::igammac),
            ("polygamma", polygamma, super::super::polygamma),
            ("zeta", zeta, super::super::zeta),
        ];
        let odd = [
            f32::NAN,
            f32::INFINITY,
            0.0,
            -1.0,
            -1.5,
            1e-8,
            1e-3,
            600.0,
            3e6,
        ];
        let steps = (1..40).map(|i| i as f32 * 0.25);
        let places: Vec<f32> = steps.chain([25.0, 80.0, 300.0]).chain(odd).collect();
        let mut pairs = (Vec::new(), Vec::new());
        for a in &places {
            for x in &places {
                pairs.0.push(*a);
                pairs.1.push(*x);
            }
        }
        for (name, run, exact) in all {
            let mut out = vec![0.0; pairs.0.len()];
            run(&pairs.0, &pairs.1, &mut out);
            for ((a, x), got) in pairs.0.iter().zip(&pairs.1).zip(&out) {
                let want = exact(f64::from(*a), f64::from(*x)) as f32;
                let is_same = *got == want || got.is_nan() && want.is_nan();
                // Below the normal range there are few digits.
                let error = (got - want).abs();
                let is_near = error <= 3e-7 * want.abs() || error < f32::MIN_POSITIVE;
                assert!(
                    is_same || is_near,
                    "{name}({a}, {x}) is {got} instead of {want}"
                );
            }
        }
    }
}
