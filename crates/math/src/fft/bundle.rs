//! Lines of an array taken into bundles, transformed and put back, by all threads.

use num_complex::Complex;

use super::passes::pieces;
use super::plan::Bundle;
use super::{Direction, Plan, Real};
use crate::disjoint::Disjoint;
use crate::par::Par;

/// Lines from this length on fill vectors by themselves.
const LONG: usize = 512;
/// More lines side by side are of no use.
const WIDEST: usize = 16;

/// How many lines of this length go into a bundle, of `lines` that may.
pub(super) fn width(len: usize, lines: usize) -> usize {
    if len < LONG {
        WIDEST.min(lines.max(1))
    } else {
        1
    }
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
                load_rows(piece(first * len, width * len), width, &mut bundle);
            } else {
                let rows = bundle.re.chunks_exact_mut(width);
                let rows = rows.zip(bundle.im.chunks_exact_mut(width));
                for (j, (re, im)) in rows.enumerate() {
                    load(piece(row * block + j * inner + first, width), re, im);
                }
            }
            if is_inverse {
                bundle.swap();
            }
            plan.run(&mut bundle, &mut spare, width);
            if is_inverse {
                bundle.swap();
            }
            if inner == 1 {
                store_rows(&bundle, width, scale, piece(first * len, width * len));
            } else {
                let rows = bundle.re.chunks_exact(width);
                let rows = rows.zip(bundle.im.chunks_exact(width));
                for (j, (re, im)) in rows.enumerate() {
                    store(re, im, scale, piece(row * block + j * inner + first, width));
                }
            }
        }
    });
}

fn load<T: Real>(from: &[Complex<T>], re: &mut [T], im: &mut [T]) {
    for ((re, im), value) in re.iter_mut().zip(im).zip(from) {
        (*re, *im) = (value.re, value.im);
    }
}

fn store<T: Real>(re: &[T], im: &[T], scale: T, to: &mut [Complex<T>]) {
    for ((re, im), value) in re.iter().zip(im).zip(to) {
        *value = Complex::new(*re * scale, *im * scale);
    }
}

/// Puts `width` lines, one after the other in `from`, side by side.
fn load_rows<T: Real>(from: &[Complex<T>], width: usize, to: &mut Bundle<T>) {
    if width == 1 {
        return load(from, &mut to.re, &mut to.im);
    }
    let len = from.len() / width;
    if width == WIDEST {
        let rows: [&[Complex<T>]; WIDEST] =
            std::array::from_fn(|line| &from[line * len..(line + 1) * len]);
        let (re, _) = to.re.as_chunks_mut::<WIDEST>();
        let (im, _) = to.im.as_chunks_mut::<WIDEST>();
        for (j, (re, im)) in re.iter_mut().zip(im).enumerate().take(len) {
            for line in 0..WIDEST {
                (re[line], im[line]) = (rows[line][j].re, rows[line][j].im);
            }
        }
        return;
    }
    for (line, from) in from.chunks_exact(len).enumerate() {
        for (j, value) in from.iter().enumerate() {
            to.re[j * width + line] = value.re;
            to.im[j * width + line] = value.im;
        }
    }
}

/// The opposite of [`load_rows`].
fn store_rows<T: Real>(from: &Bundle<T>, width: usize, scale: T, to: &mut [Complex<T>]) {
    if width == 1 {
        return store(&from.re, &from.im, scale, to);
    }
    let len = to.len() / width;
    if width == WIDEST {
        let rows: [&mut [Complex<T>]; WIDEST] = pieces(to, len);
        let (re, _) = from.re.as_chunks::<WIDEST>();
        let (im, _) = from.im.as_chunks::<WIDEST>();
        for (j, (re, im)) in re.iter().zip(im).enumerate().take(len) {
            for line in 0..WIDEST {
                rows[line][j] = Complex::new(re[line] * scale, im[line] * scale);
            }
        }
        return;
    }
    for (line, to) in to.chunks_exact_mut(len).enumerate() {
        let re = from.re.iter().skip(line).step_by(width);
        let im = from.im.iter().skip(line).step_by(width);
        for ((re, im), value) in re.zip(im).zip(to) {
            *value = Complex::new(*re * scale, *im * scale);
        }
    }
}
