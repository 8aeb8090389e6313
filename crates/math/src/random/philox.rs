//! The Philox 4x32-10 counter-based generator with TensorFlow's keys and counters.

#[cfg(target_arch = "x86_64")]
use crate::num::isa::{Level, level};

/// Philox samples (of 128 bits) that TensorFlow's stateful ops set aside for each output element.
pub const RESERVED_SAMPLES_PER_OUTPUT: u64 = 256;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// A position in a Philox stream: a 64-bit key and the 128-bit counter of the next sample.
///
/// A sample is four 32-bit words. Copies are independent; any sample can be reached by [`Philox::skip`], so a fill does not
/// depend on how it is cut into tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    key: [u32; 2],
    counter: u128,
}

impl Philox {
    /// The stream of a stateful random op with attributes `seed` and `seed2`.
    pub fn new(seed: i64, seed2: i64) -> Self {
        Self {
            key: halves(seed as u64),
            counter: u128::from(seed2 as u64) << 64,
        }
    }

    /// The stream of a random op that takes `key` and `counter` as inputs.
    pub fn from_key_counter(key: u64, counter: [u64; 2]) -> Self {
        Self {
            key: halves(key),
            counter: u128::from(counter[0]) | u128::from(counter[1]) << 64,
        }
    }

    /// The stream of a stateless random op with the given `seed` input (int32 seeds are sign-extended).
    ///
    /// The seed is scrambled: it is the counter of one sample under a fixed key, and that sample is key and counter.
    pub fn stateless(seed: [i64; 2]) -> Self {
        let seed = seed.map(|half| half as u64);
        let mix = Self::from_key_counter(0x0246_1e29_3ec8_f720, seed).sample_at(0);
        Self {
            key: [mix[0], mix[1]],
            counter: u128::from(mix[2]) << 64 | u128::from(mix[3]) << 96,
        }
    }

    /// The key as the ops with key and counter inputs spell it.
    pub fn key(&self) -> u64 {
        u64::from(self.key[0]) | u64::from(self.key[1]) << 32
    }

    /// The counter as the ops with key and counter inputs spell it, low half first.
    pub fn counter(&self) -> [u64; 2] {
        [self.counter as u64, (self.counter >> 64) as u64]
    }

    /// Moves `samples` samples forward.
    pub fn skip(&mut self, samples: u64) {
        self.counter = self.counter.wrapping_add(u128::from(samples));
    }

    /// Returns a copy that is `samples` samples further.
    #[must_use]
    pub fn skipped(mut self, samples: u64) -> Self {
        self.skip(samples);
        self
    }

    /// The stream for one call of a stateful op with `outputs` elements; `self` moves on past what the call may use.
    #[must_use]
    pub fn reserve_outputs(&mut self, outputs: usize) -> Self {
        self.reserve_samples((outputs as u64).wrapping_mul(RESERVED_SAMPLES_PER_OUTPUT))
    }

    /// The stream for one call that uses `samples` samples; `self` moves on past them.
    #[must_use]
    pub fn reserve_samples(&mut self, samples: u64) -> Self {
        let here = *self;
        self.skip(samples);
        here
    }

    /// Returns the next sample and moves on.
    #[inline]
    pub fn next_sample(&mut self) -> [u32; 4] {
        let sample = self.sample_at(0);
        self.skip(1);
        sample
    }

    /// The sample `offset` samples from here.
    #[inline]
    pub fn sample_at(&self, offset: u64) -> [u32; 4] {
        let counter = self.counter.wrapping_add(u128::from(offset));
        let mut words = [0, 32, 64, 96].map(|shift| (counter >> shift) as u32);
        let mut key = self.key;
        for _ in 0..ROUNDS {
            let product0 = u64::from(words[0]) * u64::from(MULTIPLIERS[0]);
            let product1 = u64::from(words[2]) * u64::from(MULTIPLIERS[1]);
            words = [
                (product1 >> 32) as u32 ^ words[1] ^ key[0],
                product1 as u32,
                (product0 >> 32) as u32 ^ words[3] ^ key[1],
                product0 as u32,
            ];
            key = [0, 1].map(|i| key[i].wrapping_add(WEYL[i]));
        }
        words
    }

    /// Fills `words` with the samples from here on, four words each; a rest of less than four words takes a sample's first.
    pub fn fill_words(&self, words: &mut [u32]) {
        let done = self.fill_bulk(words, 1);
        for (offset, sample) in (done as u64 / 4..).zip(words[done..].chunks_mut(4)) {
            sample.copy_from_slice(&self.sample_at(offset)[..sample.len()]);
        }
    }

    /// Fills `words` with every `stride`-th sample from here on.
    pub(super) fn fill_strided(&self, words: &mut [u32], stride: u32) {
        let done = self.fill_bulk(words, stride);
        for (offset, sample) in (done as u64 / 4..).zip(words[done..].chunks_mut(4)) {
            let words = self.sample_at(offset * u64::from(stride));
            sample.copy_from_slice(&words[..sample.len()]);
        }
    }

    /// Fills a prefix of `words` by the vector path; returns its length, a multiple of four.
    fn fill_bulk(&self, words: &mut [u32], stride: u32) -> usize {
        #[cfg(target_arch = "x86_64")]
        if words.len() >= 32 && level() >= Level::Avx2 {
            let span = (words.len() as u64 / 4).saturating_mul(u64::from(stride));
            // Within one wrap of the lowest counter word all lanes can count in 32 bits.
            if u64::from(self.counter as u32) + span <= u64::from(u32::MAX) {
                // SAFETY: the machine has AVX2.
                return unsafe { avx2::fill(self, words, stride) };
            }
        }
        let _ = (words, stride);
        0
    }
}

fn halves(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! Eight samples at a time, two to a register in their natural word order, so that no transposition is needed.

    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_mul_epu32, _mm256_setr_epi32, _mm256_shuffle_epi32,
        _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
    };

    use super::{MULTIPLIERS, Philox, ROUNDS, WEYL};

    /// Fills whole groups of 32 words; the caller made sure that the lowest counter word does not wrap.
    #[target_feature(enable = "avx2")]
    pub(super) fn fill(philox: &Philox, words: &mut [u32], stride: u32) -> usize {
        let [c0, c1, c2, c3] = [0, 32, 64, 96].map(|shift| (philox.counter >> shift) as i32);
        let step = stride as i32;
        let first = _mm256_setr_epi32(c0, c1, c2, c3, c0, c1, c2, c3);
        let mut counters: [__m256i; 4] = std::array::from_fn(|i| {
            let lane = step.wrapping_mul(2 * i as i32);
            let offsets = _mm256_setr_epi32(lane, 0, 0, 0, lane.wrapping_add(step), 0, 0, 0);
            _mm256_add_epi32(first, offsets)
        });
        let advance = step.wrapping_mul(8);
        let advance = _mm256_setr_epi32(advance, 0, 0, 0, advance, 0, 0, 0);
        let mut groups = words.chunks_exact_mut(32);
        let mut done = 0;
        for group in groups.by_ref() {
            let samples = rounds(philox.key, counters);
            for (sample, words) in samples.into_iter().zip(group.chunks_exact_mut(8)) {
                // SAFETY: `words` is eight words long; the store needs no alignment.
                unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), sample) };
            }
            counters = counters.map(|counter| _mm256_add_epi32(counter, advance));
            done += 32;
        }
        done
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn rounds(key: [u32; 2], mut state: [__m256i; 4]) -> [__m256i; 4] {
        let [m0, m1] = MULTIPLIERS.map(|m| m as i32);
        let multipliers = _mm256_setr_epi32(m0, 0, m1, 0, m0, 0, m1, 0);
        let [w0, w1] = WEYL.map(|w| w as i32);
        let weyl = _mm256_setr_epi32(w0, 0, w1, 0, w0, 0, w1, 0);
        let [k0, k1] = key.map(|k| k as i32);
        let mut key = _mm256_setr_epi32(k0, 0, k1, 0, k0, 0, k1, 0);
        for _ in 0..ROUNDS {
            for words in &mut state {
                // Products come as low and high words of the pairs (0, 1) and (2, 3); the next state wants them reversed.
                let product = _mm256_mul_epu32(*words, multipliers);
                let reversed = _mm256_shuffle_epi32::<0b00_01_10_11>(product);
                let odd = _mm256_srli_epi64::<32>(*words);
                *words = _mm256_xor_si256(reversed, _mm256_xor_si256(odd, key));
            }
            key = _mm256_add_epi32(key, weyl);
        }
        state
    }
}
