//! Two dimensions exchanged by squares of words that fit into registers, with AVX2.

use std::arch::x86_64::{
    _mm256_loadu_pd, _mm256_loadu_ps, _mm256_setzero_pd, _mm256_setzero_ps, _mm256_storeu_pd,
    _mm256_storeu_ps,
};

use super::mover::{BLOCK, Block, ByClone, Mover};
use crate::gemm::simd::pack_x86::{transpose_f32, transpose_f64};
use crate::num::isa::{Level, level};

/// Rows as far apart fall into few sets of the cache, where they push each other out while they are written square by square:
/// they are put together in a buffer first.
const ALIASED: usize = 2048;

/// [`Mover::exchange`] of words of four or eight bytes, by squares in registers; what is left of them at two sides goes one by one.
pub(super) fn exchange_words<const SIZE: usize>(
    block: Block,
    src: &[[u8; SIZE]],
    dst: &mut [[u8; SIZE]],
) {
    let side = 32 / SIZE;
    let squares = Block {
        rows: block.rows - block.rows % side,
        width: block.width - block.width % side,
        ..block
    };
    if (block.row_len * SIZE).is_multiple_of(ALIASED) {
        let mut buffer = [[[0; SIZE]; BLOCK]; BLOCK];
        let near = Block {
            row_len: BLOCK,
            ..squares
        };
        exchange_squares(near, src, buffer.as_flattened_mut());
        squares.write_rows(&buffer, dst);
    } else {
        exchange_squares(squares, src, dst);
    }
    let right = Block {
        at: block.at + squares.width as isize * block.stride,
        width: block.width - squares.width,
        ..squares
    };
    ByClone.exchange(right, src, &mut dst[squares.width..]);
    if squares.rows < block.rows {
        let below = Block {
            at: block.at + squares.rows as isize,
            rows: block.rows - squares.rows,
            ..block
        };
        ByClone.exchange(below, src, &mut dst[squares.rows * block.row_len..]);
    }
}

/// [`exchange_words`] of whole squares.
#[inline]
fn exchange_squares<const SIZE: usize>(block: Block, src: &[[u8; SIZE]], dst: &mut [[u8; SIZE]]) {
    let side = 32 / SIZE;
    assert!(block.rows.is_multiple_of(side) && block.width.is_multiple_of(side));
    let (first, last) = (block.run(0), block.run(block.width - 1));
    assert!(first.end <= src.len() && last.end <= src.len() && level() >= Level::Avx2);
    assert!(dst.len() >= (block.rows - 1) * block.row_len + block.width);
    let (from, to) = (src[first.start..].as_ptr(), dst.as_mut_ptr());
    if SIZE == 4 {
        // SAFETY: the machine has AVX2; the first and the last run are inside `src`, so those between them are; the last row
        // is inside `dst`, so those before it are.
        unsafe { exchange_f32(block, from.cast(), to.cast()) };
    } else {
        // SAFETY: as above.
        unsafe { exchange_f64(block, from.cast(), to.cast()) };
    }
}

macro_rules! exchange {
    ($name:ident, $t:ty, $side:literal, $load:ident, $store:ident, $zero:ident, $transpose:ident) => {
        /// # Safety
        /// The CPU has AVX2; `block.rows` and `block.width` are multiples of the side; `from` begins the first run, and all
        /// runs are readable; `to` begins the first row, and all rows are writable.
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn $name(block: Block, from: *const $t, to: *mut $t) {
            for row in (0..block.rows).step_by($side) {
                for column in (0..block.width).step_by($side) {
                    let mut runs = [$zero(); $side];
                    for (i, run) in runs.iter_mut().enumerate() {
                        let at = (column + i) as isize * block.stride + row as isize;
                        // SAFETY: elements `row..row + side` of run `column + i` are readable by contract.
                        *run = unsafe { $load(from.wrapping_offset(at)) };
                    }
                    for (i, run) in $transpose(runs).into_iter().enumerate() {
                        let at = (row + i) * block.row_len + column;
                        // SAFETY: elements `column..column + side` of row `row + i` are writable by contract.
                        unsafe { $store(to.wrapping_add(at), run) };
                    }
                }
            }
        }
    };
}

exchange!(
    exchange_f32,
    f32,
    8,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_setzero_ps,
    transpose_f32
);
exchange!(
    exchange_f64,
    f64,
    4,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_setzero_pd,
    transpose_f64
);
