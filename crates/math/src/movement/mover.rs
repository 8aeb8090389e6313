//! How elements are copied: cloned one by one, or as plain bytes by vector moves.

use super::Item;
#[cfg(target_arch = "x86_64")]
use crate::num::isa::{Level, level};

/// Edge of the blocks in which two dimensions are exchanged.
pub(super) const BLOCK: usize = 32;

/// A way to copy elements of `T`.
pub(super) trait Mover<T>: Copy + Sync {
    /// Copies `src` to `dst` of the same length.
    fn copy(self, src: &[T], dst: &mut [T]);

    /// Fills `dst` with `value`.
    fn fill(self, value: &T, dst: &mut [T]);

    /// Exchanges two dimensions of at most [`BLOCK`] each: `dst[row * row_len + i] = src[at + row + i * stride]` for `rows` rows
    /// and `i` below `width`.
    fn exchange(self, block: Block, src: &[T], dst: &mut [T]);
}

/// The geometry of [`Mover::exchange`].
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) at: isize,
    pub(super) stride: isize,
    pub(super) width: usize,
    pub(super) rows: usize,
    pub(super) row_len: usize,
}

/// Clones element by element.
#[derive(Clone, Copy)]
pub(super) struct ByClone;

impl<T: Item> Mover<T> for ByClone {
    #[inline(always)]
    fn copy(self, src: &[T], dst: &mut [T]) {
        if dst.len() <= 8 {
            // Spares the call that a copy of unknown length is.
            for (dst, src) in dst.iter_mut().zip(src) {
                dst.clone_from(src);
            }
        } else {
            dst.clone_from_slice(src);
        }
    }

    #[inline(always)]
    fn fill(self, value: &T, dst: &mut [T]) {
        dst.fill(value.clone());
    }

    fn exchange(self, block: Block, src: &[T], dst: &mut [T]) {
        for (row, dst) in dst.chunks_mut(block.row_len).take(block.rows).enumerate() {
            let mut from = block.at + row as isize;
            for dst in &mut dst[..block.width] {
                dst.clone_from(&src[from as usize]);
                from += block.stride;
            }
        }
    }
}

/// Moves plain bytes.
#[derive(Clone, Copy)]
pub(super) struct ByBytes;

impl<const SIZE: usize> Mover<[u8; SIZE]> for ByBytes {
    #[inline(always)]
    fn copy(self, src: &[[u8; SIZE]], dst: &mut [[u8; SIZE]]) {
        if dst.len() <= 8 {
            dst.iter_mut().zip(src).for_each(|(dst, src)| *dst = *src);
        } else {
            copy_bytes(src.as_flattened(), dst.as_flattened_mut());
        }
    }

    fn fill(self, value: &[u8; SIZE], dst: &mut [[u8; SIZE]]) {
        let mut pattern = [0; 64];
        for piece in pattern.chunks_exact_mut(SIZE) {
            piece.copy_from_slice(value);
        }
        let (blocks, rest) = dst.as_flattened_mut().as_chunks_mut::<64>();
        blocks.fill(pattern);
        rest.copy_from_slice(&pattern[..rest.len()]);
    }

    fn exchange(self, block: Block, src: &[[u8; SIZE]], dst: &mut [[u8; SIZE]]) {
        if block.rows.min(block.width) < 8 {
            return ByClone.exchange(block, src, dst);
        }
        // By way of a buffer: both sides are then touched in whole runs, whatever the distance of their rows, which for powers of
        // two would all fall into one set of the cache.
        let mut buffer = [[[0; SIZE]; BLOCK]; BLOCK];
        let run = |i: usize| {
            let from = (block.at + i as isize * block.stride) as usize;
            &src[from..from + block.rows]
        };
        let mut done = 0;
        #[cfg(target_arch = "x86_64")]
        if SIZE == 4 && block.rows == BLOCK && level() >= Level::Avx2 {
            while done + 8 <= block.width {
                let runs: [&[u8]; 8] = std::array::from_fn(|i| run(done + i).as_flattened());
                // SAFETY: the machine has AVX2.
                unsafe {
                    avx2::transpose_8(runs, buffer.as_flattened_mut().as_flattened_mut(), 4 * done)
                };
                done += 8;
            }
        }
        for column in done..block.width {
            for (buffer, element) in buffer.iter_mut().zip(run(column)) {
                buffer[column] = *element;
            }
        }
        for (dst, buffer) in dst.chunks_mut(block.row_len).zip(&buffer[..block.rows]) {
            let buffer = &buffer[..block.width];
            match <&[[u8; SIZE]; BLOCK]>::try_from(buffer) {
                Ok(whole) => dst[..BLOCK].copy_from_slice(whole),
                Err(_) => dst[..block.width].copy_from_slice(buffer),
            }
        }
    }
}

/// Copies bytes.
///
/// From 4 KiB on the C library takes `rep movsb`, which on Zen 3 runs at an eighth of the speed when source and destination
/// differ by a few bytes modulo 4 KiB (measured: 16 MiB in rows of 4 KiB, 5.8 ms against 0.8 ms). Rows of whole blocks, such as
/// embeddings have, need none of its cases.
#[inline]
pub(crate) fn copy_bytes(src: &[u8], dst: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if (dst.len() >= 2048 || dst.len().is_multiple_of(128)) && level() >= Level::Avx2 {
        // SAFETY: the machine has AVX2.
        return unsafe { avx2::copy(src, dst) };
    }
    dst.copy_from_slice(src);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256, _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(src: &[u8]) -> __m256 {
        assert!(src.len() >= 32);
        // SAFETY: 32 bytes are there; the load needs no alignment.
        unsafe { _mm256_loadu_ps(src.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn store(dst: &mut [u8], value: __m256) {
        assert!(dst.len() >= 32);
        // SAFETY: there is room for 32 bytes; the store needs no alignment.
        unsafe { _mm256_storeu_ps(dst.as_mut_ptr().cast(), value) };
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn copy(src: &[u8], dst: &mut [u8]) {
        assert_eq!(src.len(), dst.len());
        let (mut from, mut to) = (src.chunks_exact(128), dst.chunks_exact_mut(128));
        for (from, to) in from.by_ref().zip(to.by_ref()) {
            let values: [__m256; 4] = std::array::from_fn(|i| load(&from[32 * i..]));
            for (i, value) in values.into_iter().enumerate() {
                store(&mut to[32 * i..], value);
            }
        }
        to.into_remainder().copy_from_slice(from.remainder());
    }

    /// Writes 8 runs of 32 four-byte elements as 8 columns of a 32 by 32 buffer, from byte `column` of its rows on.
    #[target_feature(enable = "avx2")]
    pub(super) fn transpose_8(runs: [&[u8]; 8], buffer: &mut [u8], column: usize) {
        const ROW: usize = 4 * super::BLOCK;
        for first in (0..super::BLOCK).step_by(8) {
            let columns = transpose(runs.map(|run| load(&run[4 * first..])));
            for (i, value) in columns.into_iter().enumerate() {
                store(&mut buffer[(first + i) * ROW + column..], value);
            }
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn transpose(rows: [__m256; 8]) -> [__m256; 8] {
        let pairs = |a, b| (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
        let (a0, a1) = pairs(r0, r1);
        let (a2, a3) = pairs(r2, r3);
        let (a4, a5) = pairs(r4, r5);
        let (a6, a7) = pairs(r6, r7);
        let quads = |a, b| {
            (
                _mm256_shuffle_ps::<0x44>(a, b),
                _mm256_shuffle_ps::<0xee>(a, b),
            )
        };
        let (b0, b1) = quads(a0, a2);
        let (b2, b3) = quads(a1, a3);
        let (b4, b5) = quads(a4, a6);
        let (b6, b7) = quads(a5, a7);
        let low = |a, b| _mm256_permute2f128_ps::<0x20>(a, b);
        let high = |a, b| _mm256_permute2f128_ps::<0x31>(a, b);
        [
            low(b0, b4),
            low(b1, b5),
            low(b2, b6),
            low(b3, b7),
            high(b0, b4),
            high(b1, b5),
            high(b2, b6),
            high(b3, b7),
        ]
    }
}
