//! Uniform distributions: floats in [0, 1), integers in a range, integers over the whole range of their type.

use half::{bf16, f16};

use super::fill::{Output, fill_samples};
use super::philox::Philox;
use crate::num::isa::multiversion;
use crate::par::Par;

/// Outputs per task: about 20 µs of work.
const GRAIN: usize = 16 * 1024;

/// A float type with a uniform distribution over [0, 1).
pub trait UniformFloat: Output {
    /// Turns words into outputs, one each [`Output::WORDS`] words.
    #[doc(hidden)]
    fn convert(words: &[u32], out: &mut [Self]);
}

/// An integer type with a uniform distribution over a range.
pub trait UniformInt: Output + PartialOrd {
    /// Turns words into integers from `low` to just below `high`, one each [`Output::WORDS`] words.
    #[doc(hidden)]
    fn convert(words: &[u32], low: Self, high: Self, out: &mut [Self]);
}

/// Fills `out` with uniform floats in [0, 1).
pub fn fill_uniform<T: UniformFloat>(par: &dyn Par, philox: Philox, out: &mut [T]) {
    fill_samples(par, philox, out, GRAIN, T::convert);
}

/// Fills `out` with uniform integers from `low` to just below `high`.
///
/// # Panics
/// Unless `low < high` or `out` is empty.
pub fn fill_uniform_int<T: UniformInt + Sync>(
    par: &dyn Par,
    philox: Philox,
    low: T,
    high: T,
    out: &mut [T],
) {
    assert!(out.is_empty() || low < high, "empty range of integers");
    fill_samples(par, philox, out, GRAIN, |words, out| {
        T::convert(words, low, high, out);
    });
}

/// Fills `out` with integers uniform over all of their range.
pub fn fill_full_int<T: FullInt>(par: &dyn Par, philox: Philox, out: &mut [T]) {
    fill_samples(par, philox, out, GRAIN, |words, out| {
        for (out, words) in out.iter_mut().zip(words.chunks_exact(T::WORDS)) {
            *out = T::from_words(words);
        }
    });
}

/// An integer made of a sample's words as they are.
pub trait FullInt: Output {
    /// Joins [`Output::WORDS`] words, the low one first.
    #[doc(hidden)]
    fn from_words(words: &[u32]) -> Self;
}

/// A float in [0, 1) from the low 23 bits of a word.
#[inline(always)]
pub(super) fn unit_f32(word: u32) -> f32 {
    f32::from_bits(0x3f80_0000 | (word & 0x7f_ffff)) - 1.0
}

/// A double in [0, 1) from 20 bits of the first word and all of the second.
#[inline(always)]
pub(super) fn unit_f64(high: u32, low: u32) -> f64 {
    let mantissa = u64::from(high & 0xf_ffff) << 32 | u64::from(low);
    f64::from_bits(0x3ff0_0000_0000_0000 | mantissa) - 1.0
}

#[inline(always)]
fn join(words: &[u32]) -> u64 {
    u64::from(words[0]) | u64::from(words[1]) << 32
}

multiversion! { fn convert_f32(words: &[u32], out: &mut [f32]) = convert_f32_body; }
#[inline(always)]
fn convert_f32_body(words: &[u32], out: &mut [f32]) {
    for (out, &word) in out.iter_mut().zip(words) {
        *out = unit_f32(word);
    }
}

multiversion! { fn convert_f64(words: &[u32], out: &mut [f64]) = convert_f64_body; }
#[inline(always)]
fn convert_f64_body(words: &[u32], out: &mut [f64]) {
    for (out, words) in out.iter_mut().zip(words.as_chunks::<2>().0) {
        *out = unit_f64(words[0], words[1]);
    }
}

impl UniformFloat for f32 {
    fn convert(words: &[u32], out: &mut [Self]) {
        convert_f32(words, out);
    }
}

impl UniformFloat for f64 {
    fn convert(words: &[u32], out: &mut [Self]) {
        convert_f64(words, out);
    }
}

impl UniformFloat for f16 {
    fn convert(words: &[u32], out: &mut [Self]) {
        for (out, &word) in out.iter_mut().zip(words) {
            // 1 + k/1024 minus 1 is exact in half precision, so the detour by f32 does not round.
            let above_one = Self::from_bits(0x3c00 | (word as u16 & 0x3ff));
            *out = Self::from_f32(above_one.to_f32() - 1.0);
        }
    }
}

impl UniformFloat for bf16 {
    fn convert(words: &[u32], out: &mut [Self]) {
        for (out, &word) in out.iter_mut().zip(words) {
            let above_one = Self::from_bits(0x3f80 | (word as u16 & 0x7f));
            *out = Self::from_f32(above_one.to_f32() - 1.0);
        }
    }
}

impl UniformInt for i32 {
    fn convert(words: &[u32], low: Self, high: Self, out: &mut [Self]) {
        let range = high.wrapping_sub(low) as u32;
        for (out, &word) in out.iter_mut().zip(words) {
            *out = low.wrapping_add_unsigned(word % range);
        }
    }
}

impl UniformInt for i64 {
    fn convert(words: &[u32], low: Self, high: Self, out: &mut [Self]) {
        let range = high.wrapping_sub(low) as u64;
        for (out, words) in out.iter_mut().zip(words.chunks_exact(2)) {
            *out = low.wrapping_add_unsigned(join(words) % range);
        }
    }
}

impl FullInt for u32 {
    fn from_words(words: &[u32]) -> Self {
        words[0]
    }
}

impl FullInt for i32 {
    fn from_words(words: &[u32]) -> Self {
        words[0].cast_signed()
    }
}

impl FullInt for u64 {
    fn from_words(words: &[u32]) -> Self {
        join(words)
    }
}

impl FullInt for i64 {
    fn from_words(words: &[u32]) -> Self {
        join(words).cast_signed()
    }
}
