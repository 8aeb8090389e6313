//! Elementary functions of one `f32` lane, branch-free so that loops over them vectorise.
//!
//! Coefficients are minimax fits over the reduced ranges; measured errors stand in `tests`. All keep NaN, infinities, signed
//! zeros and subnormals. Selects are written as `if` over values computed on both sides, never as control flow.

mod double;
mod erf;
mod exp;
mod hyper;
mod inverse;
mod log;
mod pow;
#[cfg(test)]
mod tests;
mod trig;

pub(crate) use double::{exp64, log64, sigmoid64, tanh64};
pub(crate) use erf::{erf, erfc};
pub(crate) use exp::{exp, expm1, sigmoid, softplus, tanh};
pub(crate) use hyper::{acosh, asinh, atanh, cosh, sinh};
pub(crate) use inverse::{erfinv, is_far, ndtri};
use log::log1p_finite;
pub(crate) use log::{is_normal, log, log_normal, log1p};
pub(crate) use pow::pow;
pub(crate) use trig::{acos, asin, atan, atan2, cos, is_huge, sin, tan};

use super::isa::{Isa, fma};

/// Evaluates a polynomial, lowest coefficient first.
///
/// Long ones as even and odd part: two short chains of dependent operations overlap where one long one would stall.
#[inline(always)]
fn poly<I: Isa, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    if N < 6 {
        let mut sum = coefficients[N - 1];
        for i in (0..N - 1).rev() {
            sum = fma::<I>(sum, x, coefficients[i]);
        }
        return sum;
    }
    let x2 = x * x;
    let (mut high, mut low) = (coefficients[N - 1], coefficients[N - 2]);
    let mut i = N - 2;
    while i >= 2 {
        high = fma::<I>(high, x2, coefficients[i - 1]);
        low = fma::<I>(low, x2, coefficients[i - 2]);
        i -= 2;
    }
    // With an even count `high` is the odd part; with an odd count one more even coefficient is left.
    if N.is_multiple_of(2) {
        fma::<I>(high, x, low)
    } else {
        fma::<I>(fma::<I>(high, x, low), x, coefficients[0])
    }
}

/// 2 to an integer power in the normal range `-126..=127`.
#[inline(always)]
fn pow2(k: i32) -> f32 {
    f32::from_bits((k.wrapping_add(127) as u32) << 23)
}
