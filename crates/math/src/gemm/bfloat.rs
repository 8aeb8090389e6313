//! Products of bfloat16 by the instruction for them: pairs of numbers multiplied and added to an `f32`, twice as many at a time as
//! widened ones. As in TensorFlow, which takes it too, numbers below the normal range count as zero.
//!
//! Columns of B lie in strips of vectors, two numbers of a column side by side; rows of A are taken some at a time.

use half::bf16;

use super::{Job, Operand, widened};
use crate::disjoint::Disjoint;
use crate::gemm::scratch;
use crate::num::from_f32_slice;
use crate::par::{Par, rows_mut};

/// Rows and columns of a register tile.
const ROWS: usize = 12;
const COLUMNS: usize = 32;
/// Multiply-adds that make a task worth a thread.
const TASK: usize = 1 << 20;
/// A smaller product is not worth the packing.
const SMALL: usize = 1 << 12;

type Tile = [[f32; COLUMNS]; ROWS];

/// Runs one checked product.
pub(super) fn run(par: &dyn Par, job: Job<'_, bf16>) {
    let dims = job.dims;
    let is_plain = job.alpha == bf16::ONE && job.beta == bf16::ZERO;
    let is_small = dims.m < 4 || dims.m.saturating_mul(dims.n).saturating_mul(dims.k) < SMALL;
    match kernel() {
        Some(kernel) if is_plain && !is_small => multiply(par, job, kernel),
        _ => widened::run(par, job),
    }
}

/// Sums the products of a block of rows and a strip of columns.
type Kernel = fn(&[[i32; ROWS]], &[[i32; COLUMNS]]) -> Tile;

fn kernel() -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16") {
        // SAFETY: the machine has the instructions.
        return Some(|a, b| unsafe { x86::tile(a, b) });
    }
    None
}

fn multiply(par: &dyn Par, job: Job<'_, bf16>, kernel: Kernel) {
    let (m, n, k) = (job.dims.m, job.dims.n, job.dims.k);
    let (pairs, strips) = (k.div_ceil(2), n.div_ceil(COLUMNS));
    scratch::with::<i32, _>(0, strips * pairs * COLUMNS, |packed| {
        let grain = (16 << 10) / (pairs * COLUMNS) + 1;
        rows_mut(par, packed, pairs * COLUMNS, grain, |first, strips| {
            for (i, strip) in strips.chunks_exact_mut(pairs * COLUMNS).enumerate() {
                let first = (first + i) * COLUMNS;
                let strip = strip.as_chunks_mut::<COLUMNS>().0;
                pack(&job.b, k, first..n.min(first + COLUMNS), strip);
            }
        });
        let (b, c) = (packed.as_chunks::<COLUMNS>().0, Disjoint::new(job.c));
        let grain = TASK / (ROWS * n * k).max(1) + 1;
        par.for_each(m.div_ceil(ROWS), grain, &|blocks| {
            let turned = Operand {
                transposed: !job.a.transposed,
                ..job.a
            };
            let mut a = vec![[0; ROWS]; pairs];
            for block in blocks {
                let rows = block * ROWS..m.min((block + 1) * ROWS);
                pack(&turned, k, rows.clone(), &mut a);
                for (strip, b) in b.chunks_exact(pairs).enumerate() {
                    let tile = kernel(&a, b);
                    let first = strip * COLUMNS;
                    let width = COLUMNS.min(n - first);
                    for (row, sums) in rows.clone().zip(&tile) {
                        // SAFETY: each block of rows is one task's, by `Par`, which takes one strip after the other.
                        let out = unsafe { c.slice(row * job.c_stride + first, width) };
                        from_f32_slice(&sums[..width], out);
                        job.epilogue.apply(first, out);
                    }
                }
            }
        });
    });
}

/// Writes some columns of the `depth` rows of an operand, two rows at a time: the number of the first in the low half. What there is
/// no column or row for is zero.
fn pack<const N: usize>(
    from: &Operand<'_, bf16>,
    depth: usize,
    columns: std::ops::Range<usize>,
    to: &mut [[i32; N]],
) {
    let join =
        |low: bf16, high: bf16| (u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16) as i32;
    if columns.len() < N || !depth.is_multiple_of(2) {
        to.as_flattened_mut().fill(0);
    }
    if from.transposed {
        for (at, column) in columns.enumerate() {
            let (pairs, rest) = from.data[column * from.stride..][..depth].as_chunks::<2>();
            for (to, [low, high]) in to.iter_mut().zip(pairs) {
                to[at] = join(*low, *high);
            }
            if let (Some(to), [last]) = (to.last_mut(), rest) {
                to[at] = join(*last, bf16::ZERO);
            }
        }
        return;
    }
    let row = |row: usize| &from.data[row * from.stride..][columns.clone()];
    for (pair, to) in to.iter_mut().enumerate() {
        let low = row(2 * pair);
        if 2 * pair + 1 == depth {
            for (to, low) in to.iter_mut().zip(low) {
                *to = join(*low, bf16::ZERO);
            }
            return;
        }
        for ((to, low), high) in to.iter_mut().zip(low).zip(row(2 * pair + 1)) {
            *to = join(*low, *high);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512, __m512bh, __m512i, _mm512_dpbf16_ps, _mm512_set1_epi32, _mm512_setzero_ps,
    };

    use super::{COLUMNS, ROWS, Tile};

    /// What [`super::Kernel`] says.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) fn tile(a: &[[i32; ROWS]], b: &[[i32; COLUMNS]]) -> Tile {
        let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
        for (a, b) in a.iter().zip(b) {
            // SAFETY: both are so many bytes, of which each is a value.
            let b: [__m512bh; 2] = unsafe { std::mem::transmute(*b) };
            for (sums, a) in sums.iter_mut().zip(a) {
                let a = _mm512_set1_epi32(*a);
                // SAFETY: as above.
                let a = unsafe { std::mem::transmute::<__m512i, __m512bh>(a) };
                sums[0] = _mm512_dpbf16_ps(sums[0], a, b[0]);
                sums[1] = _mm512_dpbf16_ps(sums[1], a, b[1]);
            }
        }
        // SAFETY: as above.
        unsafe { std::mem::transmute::<[[__m512; 2]; ROWS], Tile>(sums) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Dims, Epilogue};
    use crate::par::Pool;

    #[test]
    fn products_of_all_shapes_are_the_sums_of_products() {
        let Some(kernel) = kernel() else { return };
        let pool = Pool::new(3);
        let value = |i: usize| bf16::from_f32((i * 7 % 31) as f32 - 15.0);
        for (m, n, k) in [
            (1, 1, 1),
            (5, 33, 7),
            (12, 32, 2),
            (13, 31, 16),
            (40, 100, 65),
        ] {
            for turned in 0..4 {
                let a: Vec<bf16> = (0..m * k).map(value).collect();
                let b: Vec<bf16> = (0..k * n).map(|i| value(i * i + 3)).collect();
                let (a_turned, b_turned) = (turned & 1 != 0, turned & 2 != 0);
                let operand = |data, is_turned, [rows, columns]: [usize; 2]| Operand {
                    data,
                    stride: if is_turned { rows } else { columns },
                    transposed: is_turned,
                };
                let stride = n + 3;
                let mut c = vec![bf16::ONE; (m - 1) * stride + n];
                let job = Job {
                    dims: Dims { m, n, k },
                    alpha: bf16::ONE,
                    a: operand(&a[..], a_turned, [m, k]),
                    b: operand(&b[..], b_turned, [k, n]),
                    beta: bf16::ZERO,
                    c: &mut c,
                    c_stride: stride,
                    epilogue: Epilogue::None,
                };
                multiply(&pool, job, kernel);
                for row in 0..m {
                    for column in 0..n {
                        let product = |p: usize| {
                            let a = if a_turned {
                                a[p * m + row]
                            } else {
                                a[row * k + p]
                            };
                            let b = if b_turned {
                                b[column * k + p]
                            } else {
                                b[p * n + column]
                            };
                            a.to_f32() * b.to_f32()
                        };
                        let want = bf16::from_f32((0..k).map(product).sum());
                        assert_eq!(c[row * stride + column], want, "{m} {n} {k} {turned}");
                    }
                    let between = c.get(row * stride + n..(row + 1) * stride);
                    assert!(between.is_none_or(|rest| rest == [bf16::ONE; 3]));
                }
            }
        }
    }
}
