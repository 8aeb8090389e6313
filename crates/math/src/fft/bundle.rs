//! Lines of an array taken into bundles, transformed and put back, by all threads.

use num_complex::Complex;

use super::plan::Bundle;
use super::{Direction, Plan, Real};
use crate::disjoint::Disjoint;
use crate::par::Par;

/// So many numbers of a bundle stay in the cache.
const BUNDLE: usize = 16 * 1024;
/// More lines side by side are of no use.
const WIDEST: usize = 16;

/// How many lines of this length go into a bundle, of `lines` that may.
pub(super) fn width(len: usize, lines: usize) -> usize {
    (BUNDLE / len.max(1)).clamp(4, WIDEST).min(lines.max(1))
}

/// Transforms every line of `data` in place and multiplies it by `scale`: `data` is `[…, plan.len(), inner]`, a line is
/// along the middle one.
///
/// # Panics
/// If `data` is not a whole number of such blocks.
pub fn lines<T: Real>(
    par: &dyn Par,
    plan: &Plan<T>,
    data: &mut [Complex<T>],
    inner: usize,
    direction: Direction,
    scale: f64,
) {
    let len = plan.len();
    let block = len * inner;
    if data.is_empty() || block == 0 {
        return;
    }
    assert_eq!(data.len() % block, 0, "no whole number of blocks");
    let blocks = data.len() / block;
    // Neighbours are lines of one block, or whole blocks if these have but one line.
    let (rows, cols) = if inner == 1 {
        (1, blocks)
    } else {
        (blocks, inner)
    };
    let width = width(len, cols);
    let per_row = cols.div_ceil(width);
    let scale = T::of(scale);
    let is_inverse = direction == Direction::Inverse;
    let data = Disjoint::new(data);
    par.for_each(rows * per_row, 1, &|range| {
        let (mut bundle, mut spare) = (Bundle::new(), Bundle::new());
        for at in range {
            let (row, first) = (at / per_row, at % per_row * width);
            let width = width.min(cols - first);
            bundle.resize(len * width);
            let piece = |from: usize, len: usize| {
                // SAFETY: each line belongs to one bundle only, and one piece at a time is alive in it.
                unsafe { data.slice(from, len) }
            };
            if inner == 1 {
                for line in 0..width {
                    let from = piece((first + line) * len, len);
                    for (j, value) in from.iter().enumerate() {
                        bundle.re[j * width + line] = value.re;
                        bundle.im[j * width + line] = value.im;
                    }
                }
            } else {
                for j in 0..len {
                    let from = piece(row * block + j * inner + first, width);
                    for (line, value) in from.iter().enumerate() {
                        bundle.re[j * width + line] = value.re;
                        bundle.im[j * width + line] = value.im;
                    }
                }
            }
            if is_inverse {
                bundle.swap();
            }
            plan.run(&mut bundle, &mut spare, width);
            if is_inverse {
                bundle.swap();
            }
            let found = |at: usize| Complex::new(bundle.re[at] * scale, bundle.im[at] * scale);
            if inner == 1 {
                for line in 0..width {
                    let to = piece((first + line) * len, len);
                    for (j, value) in to.iter_mut().enumerate() {
                        *value = found(j * width + line);
                    }
                }
            } else {
                for j in 0..len {
                    let to = piece(row * block + j * inner + first, width);
                    for (line, value) in to.iter_mut().enumerate() {
                        *value = found(j * width + line);
                    }
                }
            }
        }
    });
}
