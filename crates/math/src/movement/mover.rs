//! How elements are copied: cloned one by one, or as plain bytes by vector moves.

use std::ops::Range;
use std::slice;

use super::Item;
use super::index::Index;
use super::prefetch::{AHEAD, prefetch};
#[cfg(target_arch = "x86_64")]
use super::squares;
#[cfg(target_arch = "x86_64")]
use crate::num::isa::{Level, level};

/// Edge of the blocks in which two dimensions are exchanged.
pub(crate) const BLOCK: usize = 32;

/// Side below which a block is exchanged one by one.
pub(super) const SHORT: usize = 8;

/// The loop of [`Mover::pick`], to be inlined where it is known how a row is copied.
#[inline(always)]
fn pick_rows<T, I: Index>(
    src: &[T],
    inner: usize,
    indices: &[I],
    dst: &mut [T],
    copy: impl Fn(&[T], &mut [T]),
) {
    for (i, dst) in dst.chunks_exact_mut(inner).enumerate() {
        if let Some(index) = indices.get(i + AHEAD) {
            prefetch(&src[index.position() * inner..][..inner]);
        }
        copy(&src[indices[i].position() * inner..][..inner], dst);
    }
}

/// A way to copy elements of `T`.
pub(super) trait Mover<T>: Copy + Sync {
    /// Copies `src` to `dst` of the same length.
    fn copy(self, src: &[T], dst: &mut [T]);

    /// Copies the rows of `inner` elements that `indices` name to one after another.
    #[inline(always)]
    fn pick<I: Index>(self, src: &[T], inner: usize, indices: &[I], dst: &mut [T]) {
        pick_rows(src, inner, indices, dst, |src, dst| self.copy(src, dst));
    }

    /// Fills `dst` with `value`.
    fn fill(self, value: &T, dst: &mut [T]);

    /// Exchanges two dimensions of at most [`BLOCK`] each: `dst[row * row_len + i] = src[at + row + i * stride]` for `rows` rows
    /// and `i` below `width`.
    fn exchange(self, block: Block, src: &[T], dst: &mut [T]);
}

/// The geometry of [`Mover::exchange`].
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) at: isize,
    pub(crate) stride: isize,
    pub(crate) width: usize,
    pub(crate) rows: usize,
    pub(crate) row_len: usize,
}

impl Block {
    /// Asks for what the block reads: short runs far apart.
    #[inline(always)]
    pub(super) fn prefetch<T>(&self, src: &[T]) {
        for i in 0..self.width {
            prefetch(&src[self.run(i)]);
        }
    }

    /// Asks for what the block writes.
    #[inline(always)]
    pub(super) fn prefetch_rows<T>(&self, dst: &[T]) {
        for row in dst.chunks(self.row_len).take(self.rows) {
            prefetch(&row[..self.width]);
        }
    }

    /// Writes rows that were put together in a buffer.
    #[inline(always)]
    pub(super) fn write_rows<T: Copy>(&self, buffer: &[[T; BLOCK]; BLOCK], dst: &mut [T]) {
        for (dst, buffer) in dst.chunks_mut(self.row_len).zip(&buffer[..self.rows]) {
            let buffer = &buffer[..self.width];
            match <&[T; BLOCK]>::try_from(buffer) {
                Ok(whole) => dst[..BLOCK].copy_from_slice(whole),
                Err(_) => dst[..self.width].copy_from_slice(buffer),
            }
        }
    }

    /// What run `i` is in the source.
    #[inline(always)]
    pub(crate) fn run(&self, i: usize) -> Range<usize> {
        let from = (self.at + i as isize * self.stride) as usize;
        from..from + self.rows
    }
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

    /// With the vectors chosen once for all rows: a loop that calls nothing has more rows under way at a time.
    fn pick<I: Index>(
        self,
        src: &[[u8; SIZE]],
        inner: usize,
        indices: &[I],
        dst: &mut [[u8; SIZE]],
    ) {
        #[cfg(target_arch = "x86_64")]
        {
            let (row, src, dst) = (inner * SIZE, src.as_flattened(), dst.as_flattened_mut());
            match vectors_for(row) {
                // SAFETY: the machine has AVX-512.
                Some(Level::Avx512) => return unsafe { vectors::pick512(src, row, indices, dst) },
                // SAFETY: the machine has AVX2.
                Some(Level::Avx2) => return unsafe { vectors::pick256(src, row, indices, dst) },
                _ => {}
            }
        }
        ByClone.pick(src, inner, indices, dst);
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
        if block.rows.min(block.width) < SHORT {
            return ByClone.exchange(block, src, dst);
        }
        #[cfg(target_arch = "x86_64")]
        if (SIZE == 4 || SIZE == 8) && level() >= Level::Avx2 {
            return squares::exchange_words(block, src, dst);
        }
        // By way of a buffer: both sides are then touched in whole runs, whatever the distance of their rows, which for powers of
        // two would all fall into one set of the cache.
        let mut buffer = [[[0; SIZE]; BLOCK]; BLOCK];
        for column in 0..block.width {
            for (buffer, element) in buffer.iter_mut().zip(&src[block.run(column)]) {
                buffer[column] = *element;
            }
        }
        block.write_rows(&buffer, dst);
    }
}

/// Floats, exchanged as plain bytes.
pub(crate) trait Exchange: Sized {
    /// As [`Mover::exchange`].
    fn exchange(block: Block, src: &[Self], dst: &mut [Self]);
}

macro_rules! exchange_floats {
    ($($t:ty),*) => {$(
        impl Exchange for $t {
            #[inline]
            fn exchange(block: Block, src: &[Self], dst: &mut [Self]) {
                type Cell = [u8; size_of::<$t>()];
                // SAFETY: a float is so many bytes, which need no alignment.
                let src = unsafe { slice::from_raw_parts(src.as_ptr().cast::<Cell>(), src.len()) };
                // SAFETY: as above; and whatever is written is a float.
                let dst = unsafe { slice::from_raw_parts_mut(dst.as_mut_ptr().cast::<Cell>(), dst.len()) };
                ByBytes.exchange(block, src, dst);
            }
        }
    )*};
}

exchange_floats!(f32, f64);

/// Copies bytes.
///
/// From 4 KiB on the C library takes `rep movsb`, which on Zen 3 runs at an eighth of the speed when source and destination
/// differ by a few bytes modulo 4 KiB (measured: 16 MiB in rows of 4 KiB, 5.8 ms against 0.8 ms). Rows of whole blocks, such as
/// embeddings have, need none of its cases.
#[inline]
pub(crate) fn copy_bytes(src: &[u8], dst: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    match vectors_for(dst.len()) {
        // SAFETY: the machine has AVX-512.
        Some(Level::Avx512) => return unsafe { vectors::copy512(src, dst) },
        // SAFETY: the machine has AVX2.
        Some(Level::Avx2) => return unsafe { vectors::copy256(src, dst) },
        _ => {}
    }
    dst.copy_from_slice(src);
}

/// The vectors that copy rows of so many bytes better than the C library does.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn vectors_for(row: usize) -> Option<Level> {
    (row >= 2048 || row.is_multiple_of(128)).then(level)
}

/// Copies in blocks of 128 bytes, which are loaded as a whole before they are stored.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::{
        __m256, __m512, _mm256_loadu_ps, _mm256_storeu_ps, _mm512_loadu_ps, _mm512_storeu_ps,
    };

    #[cfg(doc)]
    use super::Mover;
    use super::pick_rows;
    use crate::movement::index::Index;

    const BLOCK: usize = 128;

    macro_rules! copy {
        ($copy:ident, $pick:ident, $feature:literal, $vector:ty, $load:ident, $store:ident) => {
            #[target_feature(enable = $feature)]
            #[inline]
            pub(super) fn $copy(src: &[u8], dst: &mut [u8]) {
                const WIDTH: usize = size_of::<$vector>();
                assert_eq!(src.len(), dst.len());
                let (from, rest) = src.as_chunks::<BLOCK>();
                let (to, last) = dst.as_chunks_mut::<BLOCK>();
                for (from, to) in from.iter().zip(to) {
                    let values: [$vector; BLOCK / WIDTH] = std::array::from_fn(|i| {
                        // SAFETY: so many bytes are in the block; the load needs no alignment.
                        unsafe { $load(from[WIDTH * i..][..WIDTH].as_ptr().cast()) }
                    });
                    for (i, value) in values.into_iter().enumerate() {
                        // SAFETY: there is room for so many bytes; the store needs no alignment.
                        unsafe { $store(to[WIDTH * i..][..WIDTH].as_mut_ptr().cast(), value) };
                    }
                }
                if !rest.is_empty() {
                    last.copy_from_slice(rest);
                }
            }

            /// As [`Mover::pick`].
            #[target_feature(enable = $feature)]
            pub(super) fn $pick<I: Index>(src: &[u8], row: usize, indices: &[I], dst: &mut [u8]) {
                pick_rows(src, row, indices, dst, |src, dst| $copy(src, dst));
            }
        };
    }
    copy!(
        copy256,
        pick256,
        "avx2",
        __m256,
        _mm256_loadu_ps,
        _mm256_storeu_ps
    );
    copy!(
        copy512,
        pick512,
        "avx512f",
        __m512,
        _mm512_loadu_ps,
        _mm512_storeu_ps
    );
}
