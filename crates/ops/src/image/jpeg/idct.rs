//! Blocks of samples out of blocks of coefficients, in the integers that libjpeg calculates with, at full size or at a half, a
//! quarter or an eighth of it.
//!
//! Each is done for columns, then for rows. What is too large saturates, as in libjpeg's vectors. At full size there are two ways:
//! the accurate one ("islow"), and the fast one ("ifast"), which TensorFlow takes if it is not told otherwise. They differ by a few
//! of 255.

use std::num::Wrapping;

use super::scan::Block;

/// What is damaged may be too large for 32 bits.
type Number = Wrapping<i32>;

/// Binary digits of the constants, and further ones that are kept between columns and rows.
const DIGITS: usize = 13;
const KEPT: usize = 2;

const fn fixed(value: f64) -> Number {
    Wrapping((value * (1 << DIGITS) as f64 + 0.5) as i32)
}

fn rounded(value: Number, digits: usize) -> i32 {
    (value + Wrapping(1 << (digits - 1))).0 >> digits
}

/// What is kept between columns and rows.
fn kept(value: i32) -> Number {
    Wrapping(value.clamp(-0x8000, 0x7fff))
}

/// A sample: the middle of the range is zero.
fn sample(value: i32) -> u8 {
    (value.clamp(-128, 127) + 128) as u8
}

/// How blocks of one component are transformed.
pub(super) struct Transform {
    /// What coefficients are multiplied by.
    steps: [i16; 64],
    size: usize,
    is_fast: bool,
}

impl Transform {
    /// To squares of `size` samples; a component without a table of quantisation is all zeros.
    pub(super) fn new(table: Option<&[u16; 64]>, size: usize, is_fast: bool) -> Transform {
        let is_fast = is_fast && size == 8;
        let table = table.unwrap_or(&[0; 64]);
        let steps = std::array::from_fn(|at| match is_fast {
            true => fast_step(table[at], at),
            false => table[at] as i16,
        });
        Transform {
            steps,
            size,
            is_fast,
        }
    }

    /// Writes the samples of a block to `out`, whose lines are `stride` apart.
    pub(super) fn run(&self, block: &Block, out: &mut [u8], stride: usize) {
        match self.is_fast {
            true => fast(block, &self.steps, out, stride),
            false => accurate(block, &self.steps, self.size, out, stride),
        }
    }
}

fn accurate(block: &Block, steps: &[i16; 64], size: usize, out: &mut [u8], stride: usize) {
    let mut values = [Wrapping(0); 64];
    for ((value, coefficient), step) in values.iter_mut().zip(block).zip(steps) {
        *value = Wrapping(i32::from(coefficient.wrapping_mul(*step)));
    }
    match size {
        8 => full(&values, out, stride),
        4 => half(&values, out, stride),
        2 => quarter(&values, out, stride),
        _ => out[0] = sample(rounded(values[0], 3)),
    }
}

/// One column or row of eight.
fn eight(v: [Number; 8], digits: usize) -> [i32; 8] {
    let z1 = (v[2] + v[6]) * fixed(0.541196100);
    let t2 = z1 - v[6] * fixed(1.847759065);
    let t3 = z1 + v[2] * fixed(0.765366865);
    let t0 = (v[0] + v[4]) << DIGITS;
    let t1 = (v[0] - v[4]) << DIGITS;
    let even = [t0 + t3, t1 + t2, t1 - t2, t0 - t3];
    let z5 = (v[7] + v[3] + v[5] + v[1]) * fixed(1.175875602);
    let z1 = -(v[7] + v[1]) * fixed(0.899976223);
    let z2 = -(v[5] + v[3]) * fixed(2.562915447);
    let z3 = z5 - (v[7] + v[3]) * fixed(1.961570560);
    let z4 = z5 - (v[5] + v[1]) * fixed(0.390180644);
    let odd = [
        v[1] * fixed(1.501321110) + z1 + z4,
        v[3] * fixed(3.072711026) + z2 + z3,
        v[5] * fixed(2.053119869) + z2 + z4,
        v[7] * fixed(0.298631336) + z1 + z3,
    ];
    let mut out = [0; 8];
    for k in 0..4 {
        out[k] = rounded(even[k] + odd[k], digits);
        out[7 - k] = rounded(even[k] - odd[k], digits);
    }
    out
}

fn full(values: &[Number; 64], out: &mut [u8], stride: usize) {
    let mut between = [Wrapping(0); 64];
    for column in 0..8 {
        let found = eight(
            std::array::from_fn(|k| values[8 * k + column]),
            DIGITS - KEPT,
        );
        for k in 0..8 {
            between[8 * k + column] = kept(found[k]);
        }
    }
    for (row, line) in between.chunks_exact(8).zip(out.chunks_mut(stride)) {
        let found = eight(std::array::from_fn(|k| row[k]), DIGITS + KEPT + 3);
        for (slot, value) in line.iter_mut().zip(found) {
            *slot = sample(value);
        }
    }
}

/// Four of a column or row of eight: the one in the middle does not count.
fn four(v: [Number; 8], digits: usize) -> [i32; 4] {
    let t0 = v[0] << (DIGITS + 1);
    let t2 = v[2] * fixed(1.847759065) - v[6] * fixed(0.765366865);
    let even = [t0 + t2, t0 - t2];
    let odd = [
        v[1] * fixed(2.562915447) + v[3] * fixed(0.899976223)
            - v[5] * fixed(0.601344887)
            - v[7] * fixed(0.509795579),
        v[1] * fixed(1.061594337) - v[3] * fixed(2.172734803) + v[5] * fixed(1.451774981)
            - v[7] * fixed(0.211164243),
    ];
    [
        rounded(even[0] + odd[0], digits + 1),
        rounded(even[1] + odd[1], digits + 1),
        rounded(even[1] - odd[1], digits + 1),
        rounded(even[0] - odd[0], digits + 1),
    ]
}

fn half(values: &[Number; 64], out: &mut [u8], stride: usize) {
    let mut between = [Wrapping(0); 32];
    for column in [0, 1, 2, 3, 5, 6, 7] {
        let found = four(
            std::array::from_fn(|k| values[8 * k + column]),
            DIGITS - KEPT,
        );
        for k in 0..4 {
            between[8 * k + column] = kept(found[k]);
        }
    }
    for (row, line) in between.chunks_exact(8).zip(out.chunks_mut(stride)) {
        let found = four(std::array::from_fn(|k| row[k]), DIGITS + KEPT + 3);
        for (slot, value) in line.iter_mut().zip(found) {
            *slot = sample(value);
        }
    }
}

/// Two of a column or row of eight: of the even ones only the first counts.
fn two(v: [Number; 8], digits: usize) -> [i32; 2] {
    let even = v[0] << (DIGITS + 2);
    let odd = v[1] * fixed(3.624509785) - v[3] * fixed(1.272758580) + v[5] * fixed(0.850430095)
        - v[7] * fixed(0.720959822);
    [
        rounded(even + odd, digits + 2),
        rounded(even - odd, digits + 2),
    ]
}

fn quarter(values: &[Number; 64], out: &mut [u8], stride: usize) {
    let mut between = [Wrapping(0); 16];
    for column in [0, 1, 3, 5, 7] {
        let found = two(
            std::array::from_fn(|k| values[8 * k + column]),
            DIGITS - KEPT,
        );
        for k in 0..2 {
            between[8 * k + column] = kept(found[k]);
        }
    }
    for (row, line) in between.chunks_exact(8).zip(out.chunks_mut(stride)) {
        let found = two(std::array::from_fn(|k| row[k]), DIGITS + KEPT + 3);
        for (slot, value) in line.iter_mut().zip(found) {
            *slot = sample(value);
        }
    }
}

/// Where the fast way begins: its constants are in the steps of quantisation, times four. The cosines that are put there are those of
/// the coefficient's row and column, of which there are four.
fn fast_step(step: u16, at: usize) -> i16 {
    // In units of 2^-14.
    let scale = |k: usize| match k {
        0 => 1.0,
        k => (k as f64 * std::f64::consts::PI / 16.0).cos() * std::f64::consts::SQRT_2,
    };
    let both = (scale(at / 8) * scale(at % 8) * 16384.0).round() as i64;
    ((i64::from(step) * both + (1 << 11)) >> 12) as i16
}

type Short = Wrapping<i16>;

/// `value` times `factor` / 256, rounded down.
fn times(value: Short, factor: i32) -> Short {
    let product = i32::from((value << 2).0) * (factor << 6);
    Wrapping((product >> 16) as i16)
}

/// One column or row of eight, without rounding.
fn fast_eight(v: [Short; 8]) -> [Short; 8] {
    let (sum, difference) = (v[0] + v[4], v[0] - v[4]);
    let t13 = v[2] + v[6];
    let t12 = times(v[2] - v[6], 362) - t13;
    let even = [sum + t13, difference + t12, difference - t12, sum - t13];
    let (z13, z10) = (v[5] + v[3], v[5] - v[3]);
    let (z11, z12) = (v[1] + v[7], v[1] - v[7]);
    let t7 = z11 + z13;
    let t11 = times(z11 - z13, 362);
    let z5 = times(z10 + z12, 473);
    let t10 = times(z12, 277) - z5;
    let t12 = times(z10, -413) - z10 + z5;
    let t6 = t12 - t7;
    let t5 = t11 - t6;
    let t4 = t10 + t5;
    [
        even[0] + t7,
        even[1] + t6,
        even[2] + t5,
        even[3] - t4,
        even[3] + t4,
        even[2] - t5,
        even[1] - t6,
        even[0] - t7,
    ]
}

fn fast(block: &Block, steps: &[i16; 64], out: &mut [u8], stride: usize) {
    let mut between = [Wrapping(0); 64];
    for column in 0..8 {
        let at = |k: usize| Wrapping(block[8 * k + column].wrapping_mul(steps[8 * k + column]));
        let found = fast_eight(std::array::from_fn(at));
        for k in 0..8 {
            between[8 * k + column] = found[k];
        }
    }
    for (row, line) in between.chunks_exact(8).zip(out.chunks_mut(stride)) {
        let found = fast_eight(std::array::from_fn(|k| row[k]));
        for (slot, value) in line.iter_mut().zip(found) {
            *slot = sample(i32::from(value.0 >> (KEPT + 3)));
        }
    }
}
