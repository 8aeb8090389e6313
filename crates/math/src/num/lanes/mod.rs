//! Elementary functions of one `f32` lane, branch-free so that loops over them vectorise.
//!
//! Coefficients are minimax fits over the reduced ranges; measured errors stand in `tests`. All keep NaN, infinities, signed
//! zeros and subnormals. Selects are written as `if` over values computed on both sides, never as control flow.

mod erf;
mod exp;
mod hyper;
mod log;
mod pow;
#[cfg(test)]
mod tests;
mod trig;

pub(crate) use erf::{erf, erfc};
pub(crate) use exp::{exp, expm1, sigmoid, softplus, tanh};
pub(crate) use hyper::{acosh, asinh, atanh, cosh, sinh};
pub(crate) use log::{log, log1p};
pub(crate) use pow::pow;
pub(crate) use trig::{acos, asin, atan, atan2, cos, is_huge, sin, tan};

use super::isa::{Isa, fma};

/// Evaluates a polynomial, lowest coefficient first.
#[inline(always)]
fn poly<I: Isa, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        sum = fma::<I>(sum, x, coefficients[i]);
    }
    sum
}

/// 2 to an integer power in the normal range `-126..=127`.
#[inline(always)]
fn pow2(k: i32) -> f32 {
    f32::from_bits((k.wrapping_add(127) as u32) << 23)
}
