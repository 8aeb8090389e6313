//! Standard normal numbers by Box-Muller, and the truncated distribution that redraws what lies beyond two.

use half::{bf16, f16};

use super::fill::{Output, fill_samples};
use super::libm32;
use super::philox::{Philox, RESERVED_SAMPLES_PER_OUTPUT};
use super::uniform::{unit_f32, unit_f64};
use crate::num::isa::{Level, level, multiversion};
use crate::par::{Par, chunks_mut};

/// Outputs per task: about 20 µs of work.
const GRAIN: usize = 4 * 1024;
/// Samples transformed together.
const SAMPLES: usize = 32;
/// Uniform numbers below this are taken as this, so that the logarithm stays finite.
const SMALLEST: f32 = 1.0e-7;

/// A float type with a normal distribution; the numbers are drawn as [`Normal::Drawn`] and rounded.
pub trait Normal: Output {
    /// The type in which numbers are drawn.
    type Drawn: Drawn;

    /// Rounds to this type.
    #[doc(hidden)]
    fn round(drawn: Self::Drawn) -> Self;
}

/// A float type in which normal numbers are drawn.
pub trait Drawn: Output + Default {
    /// Turns whole samples into normal numbers, one each [`Output::WORDS`] words.
    #[doc(hidden)]
    fn draw(words: &[u32], out: &mut [Self]);

    /// Whether the truncated distribution keeps this number.
    #[doc(hidden)]
    fn is_kept(self) -> bool;
}

/// Fills `out` with standard normal numbers.
pub fn fill_normal<T: Normal>(par: &dyn Par, philox: Philox, out: &mut [T]) {
    fill_samples(par, philox, out, GRAIN, |words, out| {
        let mut drawn = [T::Drawn::default(); 4 * SAMPLES];
        let per_block = 4 * SAMPLES / T::WORDS;
        for (words, out) in words.chunks(4 * SAMPLES).zip(out.chunks_mut(per_block)) {
            let drawn = &mut drawn[..words.len() / T::WORDS];
            T::Drawn::draw(words, drawn);
            for (out, &drawn) in out.iter_mut().zip(&*drawn) {
                *out = T::round(drawn);
            }
        }
    });
}

/// Fills `out` with standard normal numbers of magnitude below two.
///
/// Each group of `4 / WORDS` outputs has a reserved run of samples of its own and draws from it until it is full.
pub fn fill_truncated_normal<T: Normal>(par: &dyn Par, philox: Philox, out: &mut [T]) {
    let group = 4 / T::WORDS;
    let stride = group as u64 * RESERVED_SAMPLES_PER_OUTPUT / 4;
    chunks_mut(par, out, GRAIN, |offset, chunk| {
        let mut philox = philox.skipped((offset / group) as u64 * stride);
        let mut words = [0; 4 * SAMPLES];
        let mut drawn = [T::Drawn::default(); 4 * SAMPLES];
        for block in chunk.chunks_mut(group * SAMPLES) {
            let groups = block.len().div_ceil(group);
            let words = &mut words[..4 * groups];
            // Nearly all groups are full after one sample: draw these together, go back for the others.
            philox.fill_strided(words, stride as u32);
            let drawn = &mut drawn[..group * groups];
            T::Drawn::draw(words, drawn);
            let candidates = drawn.chunks_exact(group);
            for (i, (out, drawn)) in block.chunks_mut(group).zip(candidates).enumerate() {
                if drawn.iter().all(|drawn| drawn.is_kept()) {
                    for (out, &drawn) in out.iter_mut().zip(drawn) {
                        *out = T::round(drawn);
                    }
                } else {
                    draw_until_full(philox.skipped(i as u64 * stride), out);
                }
            }
            philox.skip(groups as u64 * stride);
        }
    });
}

/// Fills one group from its own run of samples.
fn draw_until_full<T: Normal>(mut philox: Philox, out: &mut [T]) {
    let mut drawn = [T::Drawn::default(); 16];
    let drawn = &mut drawn[..16 / T::WORDS];
    let mut filled = 0;
    while filled < out.len() {
        let mut words = [0; 16];
        philox.fill_words(&mut words);
        philox.skip(4);
        T::Drawn::draw(&words, drawn);
        let kept = drawn.iter().filter(|drawn| drawn.is_kept());
        for (out, &drawn) in out[filled..].iter_mut().zip(kept) {
            *out = T::round(drawn);
            filled += 1;
        }
    }
}

impl Normal for f32 {
    type Drawn = f32;

    fn round(drawn: f32) -> Self {
        drawn
    }
}

impl Normal for f64 {
    type Drawn = f64;

    fn round(drawn: f64) -> Self {
        drawn
    }
}

impl Normal for f16 {
    type Drawn = f32;

    fn round(drawn: f32) -> Self {
        Self::from_f32(drawn)
    }
}

impl Normal for bf16 {
    type Drawn = f32;

    fn round(drawn: f32) -> Self {
        Self::from_f32(drawn)
    }
}

impl Drawn for f32 {
    fn draw(words: &[u32], out: &mut [Self]) {
        if level() >= Level::Avx2 {
            return draw_f32(words, out);
        }
        // Without fused multiply-add the C library rounds differently, and the one that TensorFlow would call is here too.
        for (words, out) in words.chunks_exact(2).zip(out.chunks_exact_mut(2)) {
            out.copy_from_slice(&box_muller_f32(words[0], words[1]));
        }
    }

    fn is_kept(self) -> bool {
        self.abs() < 2.0
    }
}

impl Drawn for f64 {
    fn draw(words: &[u32], out: &mut [Self]) {
        for (words, out) in words.chunks_exact(4).zip(out.chunks_exact_mut(2)) {
            out.copy_from_slice(&box_muller_f64([words[0], words[1], words[2], words[3]]));
        }
    }

    fn is_kept(self) -> bool {
        self.abs() < 2.0
    }
}

/// Two normal numbers from two words, by the linked C library.
pub(super) fn box_muller_f32(word0: u32, word1: u32) -> [f32; 2] {
    let radius = (-2.0 * unit_f32(word0).max(SMALLEST).ln()).sqrt();
    let (sin, cos) = angle(word1).sin_cos();
    [sin * radius, cos * radius]
}

/// Two normal numbers from the four words of a sample, by the linked C library.
pub(super) fn box_muller_f64(words: [u32; 4]) -> [f64; 2] {
    let u = unit_f64(words[0], words[1]).max(1.0e-7);
    let radius = (-2.0 * u.ln()).sqrt();
    let (sin, cos) = sin_cos(std::f64::consts::TAU * unit_f64(words[2], words[3]));
    [sin * radius, cos * radius]
}

/// The angle of a pair: the product is taken in double precision and rounded once.
#[inline(always)]
fn angle(word: u32) -> f32 {
    (std::f64::consts::TAU * f64::from(unit_f32(word))) as f32
}

multiversion! { fn draw_f32(words: &[u32], out: &mut [f32]) = draw_f32_body; }
#[inline(always)]
fn draw_f32_body(words: &[u32], out: &mut [f32]) {
    const PAIRS: usize = 16;
    let mut words = words.chunks_exact(2 * PAIRS);
    let mut outs = out.chunks_exact_mut(2 * PAIRS);
    for (words, out) in words.by_ref().zip(outs.by_ref()) {
        draw_pairs::<PAIRS>(words, out);
    }
    let (words, outs) = (words.remainder(), outs.into_remainder());
    for (words, out) in words.chunks_exact(4).zip(outs.chunks_exact_mut(4)) {
        draw_pairs::<2>(words, out);
    }
}

#[inline(always)]
fn draw_pairs<const PAIRS: usize>(words: &[u32], out: &mut [f32]) {
    let words = words.as_chunks::<2>().0;
    let out = out.as_chunks_mut::<2>().0;
    let mut unit = [0.0; PAIRS];
    let mut angles = [0.0; PAIRS];
    for i in 0..PAIRS {
        unit[i] = unit_f32(words[i][0]).max(SMALLEST);
        angles[i] = angle(words[i][1]);
    }
    let ln = libm32::ln(&unit);
    let (sin, cos) = libm32::sin_cos(&angles);
    for i in 0..PAIRS {
        let radius = (-2.0 * ln[i]).sqrt();
        out[i] = [sin[i] * radius, cos[i] * radius];
    }
}

/// Sine and cosine by one call where the C library has it: the bits are those of the single functions.
fn sin_cos(x: f64) -> (f64, f64) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn sincos(x: f64, sin: *mut f64, cos: *mut f64);
        }
        let (mut sin, mut cos) = (0.0, 0.0);
        // SAFETY: both pointers are to live locals; the function has no other effect.
        unsafe { sincos(x, &raw mut sin, &raw mut cos) };
        (sin, cos)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    x.sin_cos()
}
