//! Remainders of `f32` and quotients of `i32` in vectors, by way of doubles: those have room for whole quotients and products.

use super::Binary;
use crate::num::isa::{Isa, Kernel2, Map2, kernel2, multiversion};

/// The loop for a remainder of this sign.
pub(super) fn of_floats(is_floor: bool) -> Kernel2<f32> {
    if is_floor { floor_mod } else { truncate_mod }
}

multiversion! { fn floor_mod(x: &[f32], y: &[f32], out: &mut [f32]) = floor_loop; }
multiversion! { fn truncate_mod(x: &[f32], y: &[f32], out: &mut [f32]) = truncate_loop; }

#[inline(always)]
fn floor_loop(x: &[f32], y: &[f32], out: &mut [f32]) {
    remainders(x, y, out, |rest, y| {
        let is_other = (rest < 0.0) != (y < 0.0);
        if rest != 0.0 && is_other {
            rest + y
        } else {
            rest
        }
    });
}

#[inline(always)]
fn truncate_loop(x: &[f32], y: &[f32], out: &mut [f32]) {
    remainders(x, y, out, |rest, _| rest);
}

/// Whole quotients below this are right after the division, as between a multiple of `y` and the nearest other `x` lies more than
/// a double's rounding; their products with `y` are exact.
const EXACT: f64 = 134_217_728.0;

#[inline(always)]
fn remainders(x: &[f32], y: &[f32], out: &mut [f32], finish: impl Fn(f32, f32) -> f32 + Copy) {
    const BLOCK: usize = 256;
    let n = x.len().min(y.len()).min(out.len());
    let blocks = x[..n].chunks(BLOCK).zip(y[..n].chunks(BLOCK));
    for ((x, y), out) in blocks.zip(out[..n].chunks_mut(BLOCK)) {
        let n = out.len();
        let (x, y) = (&x[..n], &y[..n]);
        let mut is_hard = false;
        for i in 0..n {
            let (dividend, divisor) = (f64::from(x[i]), f64::from(y[i]));
            let quotient = (dividend / divisor).trunc();
            let rest = dividend - quotient * divisor;
            out[i] = finish((rest as f32).copysign(x[i]), y[i]);
            // Infinities and NaN end here, too.
            is_hard |= !(quotient.abs() < EXACT && rest.abs() < f64::INFINITY);
        }
        if is_hard {
            one_by_one(x, y, out, finish);
        }
    }
}

#[cold]
#[inline(never)]
fn one_by_one(x: &[f32], y: &[f32], out: &mut [f32], finish: impl Fn(f32, f32) -> f32) {
    for ((x, y), out) in x.iter().zip(y).zip(out) {
        *out = finish(x % y, *y);
    }
}

/// The loop for a division of integers, none of which is by zero.
pub(super) fn of_integers(op: Binary) -> Option<Kernel2<i32>> {
    match op {
        Binary::Div | Binary::TruncateDiv => Some(kernel2::<i32, i32, Quotient>()),
        Binary::FloorDiv => Some(kernel2::<i32, i32, FloorQuotient>()),
        Binary::FloorMod => Some(kernel2::<i32, i32, FloorRest>()),
        Binary::TruncateMod => Some(kernel2::<i32, i32, Rest>()),
        _ => None,
    }
}

/// A whole number of at most 32 bits and a sign; one more than the largest is the smallest, as in wrapping arithmetic.
#[inline(always)]
fn wrapped(x: f64) -> i32 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    (x + ROUND).to_bits() as i32
}

#[inline(always)]
fn ratio(x: i32, y: i32) -> f64 {
    f64::from(x) / f64::from(y)
}

struct Quotient;
impl Map2<i32> for Quotient {
    #[inline(always)]
    fn eval<I: Isa>(x: i32, y: i32) -> i32 {
        wrapped(ratio(x, y).trunc())
    }
}

struct FloorQuotient;
impl Map2<i32> for FloorQuotient {
    #[inline(always)]
    fn eval<I: Isa>(x: i32, y: i32) -> i32 {
        wrapped(ratio(x, y).floor())
    }
}

struct Rest;
impl Map2<i32> for Rest {
    #[inline(always)]
    fn eval<I: Isa>(x: i32, y: i32) -> i32 {
        x.wrapping_sub(wrapped(ratio(x, y).trunc()).wrapping_mul(y))
    }
}

struct FloorRest;
impl Map2<i32> for FloorRest {
    #[inline(always)]
    fn eval<I: Isa>(x: i32, y: i32) -> i32 {
        x.wrapping_sub(wrapped(ratio(x, y).floor()).wrapping_mul(y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::Int;

    #[test]
    fn remainders_have_every_bit() {
        let tiny = f32::from_bits(1);
        let mut values = vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            3.0,
            0.1,
            -0.7,
            1e9,
            16_777_216.0,
            tiny,
            5.0 * tiny,
        ];
        values.extend([
            f32::MAX,
            f32::MIN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            1e-40,
            -7e-38,
        ]);
        values.extend((0..60).map(|i| f32::from_bits(0x3f80_0000 ^ (i * 0x0123_4567))));
        values.extend((1..30).map(|i| i as f32 * 0.3));
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for a in &values {
            for b in &values {
                x.extend([*a, *b * 3.0, (b * 1e8).next_down()]);
                y.extend([*b; 3]);
            }
        }
        let mut out = vec![0.0; x.len()];
        for is_floor in [false, true] {
            // In halves of blocks, so that few share one with numbers that are hard.
            for at in (0..x.len()).step_by(2) {
                let part = at..(at + 2).min(x.len());
                of_floats(is_floor)(&x[part.clone()], &y[part.clone()], &mut out[part]);
            }
            for ((x, y), got) in x.iter().zip(&y).zip(&out) {
                let rest = x % y;
                let moves = is_floor && rest != 0.0 && (rest < 0.0) != (*y < 0.0);
                let want = if moves { rest + y } else { rest };
                let is_same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(is_same, "{x} of {y}: {got} instead of {want}");
            }
        }
    }

    #[test]
    fn quotients_of_integers_are_exact() {
        let mut values = vec![
            1,
            -1,
            2,
            -2,
            3,
            7,
            i32::MAX,
            i32::MIN,
            i32::MAX - 1,
            i32::MIN + 1,
        ];
        values.extend((0..40).map(|i: i32| i.wrapping_mul(0x0765_4321)));
        let divisors: Vec<i32> = values.iter().copied().filter(|y| *y != 0).collect();
        let all = [
            Binary::Div,
            Binary::FloorDiv,
            Binary::FloorMod,
            Binary::TruncateMod,
        ];
        for x in values {
            for op in all {
                let mut out = vec![0; divisors.len()];
                let run = of_integers(op).unwrap();
                run(&vec![x; divisors.len()], &divisors, &mut out);
                for (y, got) in divisors.iter().zip(out) {
                    let want = match op {
                        Binary::Div => x.wrapping_div(*y),
                        Binary::FloorDiv if x == i32::MIN && *y == -1 => x,
                        Binary::FloorDiv => Int::floor_div(x, *y),
                        Binary::FloorMod => Int::floor_mod(x, *y),
                        _ => x.wrapping_rem(*y),
                    };
                    assert_eq!(got, want, "{op:?} of {x} and {y}");
                }
            }
        }
    }
}
