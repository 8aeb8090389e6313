//! Parallel filling by whole samples: what each output gets depends on its position alone.

use super::philox::Philox;
use crate::par::{Par, chunks_mut};

/// Words handled at a time: small enough for the stack and the first-level cache.
const BLOCK: usize = 512;

/// An output type and how many of a sample's four words one output takes.
pub trait Output: Copy + Send {
    /// 1 or 2.
    const WORDS: usize;
}

/// Fills `out` with `convert` of consecutive samples.
///
/// `convert(words, out)` gets whole samples and at most `words.len() / T::WORDS` outputs; words left over are dropped.
pub(super) fn fill_samples<T: Output>(
    par: &dyn Par,
    philox: Philox,
    out: &mut [T],
    grain: usize,
    convert: impl Fn(&[u32], &mut [T]) + Sync,
) {
    let per_sample = 4 / T::WORDS;
    let per_block = BLOCK / T::WORDS;
    chunks_mut(
        par,
        out,
        grain.next_multiple_of(per_block),
        |offset, chunk| {
            let mut words = [0; BLOCK];
            let mut philox = philox.skipped((offset / per_sample) as u64);
            for block in chunk.chunks_mut(per_block) {
                let words = &mut words[..(block.len() * T::WORDS).next_multiple_of(4)];
                philox.fill_words(words);
                philox.skip(words.len() as u64 / 4);
                convert(words, block);
            }
        },
    );
}

macro_rules! elements {
    ($words:literal: $($ty:ty),*) => {
        $(impl Output for $ty {
            const WORDS: usize = $words;
        })*
    };
}

elements!(1: half::f16, half::bf16, f32, i32, u32);
elements!(2: f64, i64, u64);
