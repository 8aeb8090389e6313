//! One pass of a transform whose length has small factors: Stockham's order, which needs no reversal of bits.
//!
//! Before a pass the data are `radix` blocks of `groups` runs of `stride` numbers. Run `p` of each block goes into a butterfly,
//! its results are turned by powers of the `p`-th root and stored next to each other. The stride grows with each pass.

use super::{Real, root};
use crate::num::isa::multiversion;

/// The radices that have a butterfly, in the order in which factors are looked for.
pub(super) const RADICES: [usize; 5] = [4, 2, 3, 5, 7];

/// A pass with its roots.
pub(super) struct Pass<T> {
    pub(super) radix: usize,
    groups: usize,
    /// The stride for which groups are taken together, as each is shorter than a vector; zero if none is.
    flat: usize,
    /// Real and imaginary parts of the powers of each group's root, the first power of all groups, then the second; each as
    /// often as a flat group has numbers.
    turns: [Vec<T>; 2],
}

impl<T: Real> Pass<T> {
    /// The pass that splits `radix` off transforms of length `len`; `stride` is that of a single line.
    pub(super) fn new(radix: usize, len: usize, stride: usize) -> Pass<T> {
        let groups = len / radix;
        let flat = if stride < VECTOR { stride } else { 0 };
        let often = flat.max(1);
        let powers = |k: usize| {
            let roots = (0..groups).map(move |p| root::<T>((p * k) as u64, len as u64));
            roots.flat_map(move |root| std::iter::repeat_n(root, often))
        };
        let turns: Vec<[T; 2]> = (1..radix).flat_map(powers).collect();
        Pass {
            radix,
            groups,
            flat,
            turns: [0, 1].map(|part| turns.iter().map(|turn| turn[part]).collect()),
        }
    }

    /// From one pair of parts to the other.
    pub(super) fn run(&self, stride: usize, from: [&[T]; 2], to: [&mut [T]; 2]) {
        let run = match self.radix {
            2 => run2,
            3 => run3,
            4 => run4,
            5 => run5,
            _ => run7,
        };
        let ([re, im], [to_re, to_im]) = (from, to);
        run(self, stride, re, im, to_re, to_im);
    }
}

/// Groups of fewer numbers than these are taken together.
const VECTOR: usize = 64;

// The parts are parameters of their own all the way down: only so is it known that none overlaps another.
multiversion! {
    fn run2<T: Real>(pass: &Pass<T>, stride: usize, re: &[T], im: &[T], to_re: &mut [T], to_im: &mut [T]) = halves;
}
multiversion! {
    fn run3<T: Real>(pass: &Pass<T>, stride: usize, re: &[T], im: &[T], to_re: &mut [T], to_im: &mut [T]) = thirds;
}
multiversion! {
    fn run4<T: Real>(pass: &Pass<T>, stride: usize, re: &[T], im: &[T], to_re: &mut [T], to_im: &mut [T]) = quarters;
}
multiversion! {
    fn run5<T: Real>(pass: &Pass<T>, stride: usize, re: &[T], im: &[T], to_re: &mut [T], to_im: &mut [T]) = fifths;
}
multiversion! {
    fn run7<T: Real>(pass: &Pass<T>, stride: usize, re: &[T], im: &[T], to_re: &mut [T], to_im: &mut [T]) = sevenths;
}

/// Two complex numbers multiplied.
#[inline(always)]
pub(super) fn times<T: Real>(x: [T; 2], y: [T; 2]) -> [T; 2] {
    [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]
}

#[inline(always)]
fn plus<T: Real>(x: [T; 2], y: [T; 2]) -> [T; 2] {
    [x[0] + y[0], x[1] + y[1]]
}

#[inline(always)]
fn minus<T: Real>(x: [T; 2], y: [T; 2]) -> [T; 2] {
    [x[0] - y[0], x[1] - y[1]]
}

/// So many numbers are taken together where groups are short.
const BLOCK: usize = 64;

/// Runs `butterfly` over all groups: `R` numbers in, their transform out.
#[inline(always)]
fn pass<T: Real, const R: usize>(
    pass: &Pass<T>,
    stride: usize,
    re: &[T],
    im: &[T],
    to_re: &mut [T],
    to_im: &mut [T],
    butterfly: impl Fn([[T; 2]; R]) -> [[T; 2]; R],
) {
    let often = pass.flat.max(1);
    let groups = pass.groups;
    let turns = |k: usize| (k.max(1) - 1) * groups * often..k.max(1) * groups * often;
    let turn_re: [&[T]; R] = std::array::from_fn(|k| &pass.turns[0][turns(k)]);
    let turn_im: [&[T]; R] = std::array::from_fn(|k| &pass.turns[1][turns(k)]);
    if stride != pass.flat {
        for p in 0..groups {
            let begin = |j: usize| stride * (p + groups * j);
            let x_re: [&[T]; R] = std::array::from_fn(|j| &re[begin(j)..begin(j) + stride]);
            let x_im: [&[T]; R] = std::array::from_fn(|j| &im[begin(j)..begin(j) + stride]);
            let turn: [[T; 2]; R] =
                std::array::from_fn(|k| [turn_re[k][p * often], turn_im[k][p * often]]);
            let y_re = pieces::<T, R>(&mut to_re[p * R * stride..(p + 1) * R * stride], stride);
            let y_im = pieces::<T, R>(&mut to_im[p * R * stride..(p + 1) * R * stride], stride);
            for q in 0..stride {
                let found = butterfly(std::array::from_fn(|j| [x_re[j][q], x_im[j][q]]));
                for k in 0..R {
                    let turned = if k == 0 {
                        found[0]
                    } else {
                        times(found[k], turn[k])
                    };
                    (y_re[k][q], y_im[k][q]) = (turned[0], turned[1]);
                }
            }
        }
        return;
    }
    let all = groups * stride;
    let from_re: [&[T]; R] = std::array::from_fn(|j| &re[all * j..all * (j + 1)]);
    let from_im: [&[T]; R] = std::array::from_fn(|j| &im[all * j..all * (j + 1)]);
    let (mut block_re, mut block_im) = ([[re[0]; BLOCK]; R], [[re[0]; BLOCK]; R]);
    let step = BLOCK / stride * stride;
    for begin in (0..all).step_by(step) {
        let count = step.min(all - begin);
        let (x_re, x_im) = (cut(from_re, begin, count), cut(from_im, begin, count));
        let (w_re, w_im) = (cut(turn_re, begin, count), cut(turn_im, begin, count));
        for i in 0..count.min(BLOCK) {
            let found = butterfly(std::array::from_fn(|j| [x_re[j][i], x_im[j][i]]));
            for k in 0..R {
                let turned = match k {
                    0 => found[0],
                    _ => times(found[k], [w_re[k][i], w_im[k][i]]),
                };
                (block_re[k][i], block_im[k][i]) = (turned[0], turned[1]);
            }
        }
        let range = begin * R..(begin + count) * R;
        interleave(&block_re, stride, &mut to_re[range.clone()]);
        interleave(&block_im, stride, &mut to_im[range]);
    }
}

/// A part of each.
#[inline(always)]
fn cut<T, const R: usize>(whole: [&[T]; R], begin: usize, count: usize) -> [&[T]; R] {
    whole.map(|whole| &whole[begin..begin + count])
}

/// `R` pieces of a slice that is as long as these.
#[inline(always)]
pub(super) fn pieces<T, const R: usize>(whole: &mut [T], len: usize) -> [&mut [T]; R] {
    let mut rest = whole;
    std::array::from_fn(|_| {
        let (piece, behind) = std::mem::take(&mut rest).split_at_mut(len);
        rest = behind;
        piece
    })
}

/// The first `stride` numbers of all rows, then the next ones.
#[inline(always)]
fn interleave<T: Copy, const R: usize>(rows: &[[T; BLOCK]; R], stride: usize, to: &mut [T]) {
    match stride {
        1 => runs::<T, R, 1>(rows, to),
        2 => runs::<T, R, 2>(rows, to),
        4 => runs::<T, R, 4>(rows, to),
        8 => runs::<T, R, 8>(rows, to),
        16 => runs::<T, R, 16>(rows, to),
        32 => runs::<T, R, 32>(rows, to),
        _ => {
            for (i, to) in to.chunks_exact_mut(stride * R).enumerate() {
                for (row, to) in rows.iter().zip(to.chunks_exact_mut(stride)) {
                    to.copy_from_slice(&row[i * stride..(i + 1) * stride]);
                }
            }
        }
    }
}

/// As [`interleave`] for a stride that is known.
#[inline(always)]
fn runs<T: Copy, const R: usize, const S: usize>(rows: &[[T; BLOCK]; R], to: &mut [T]) {
    let rows: [&[[T; S]]; R] = std::array::from_fn(|k| rows[k].as_chunks::<S>().0);
    let (to, _) = to.as_chunks_mut::<S>();
    let (to, _) = to.as_chunks_mut::<R>();
    for (i, to) in to.iter_mut().enumerate().take(BLOCK / S) {
        *to = std::array::from_fn(|k| rows[k][i]);
    }
}

macro_rules! butterfly {
    ($name:ident, $radix:literal, $transform:expr) => {
        #[inline(always)]
        fn $name<T: Real>(
            it: &Pass<T>,
            stride: usize,
            re: &[T],
            im: &[T],
            to_re: &mut [T],
            to_im: &mut [T],
        ) {
            pass::<T, $radix>(it, stride, re, im, to_re, to_im, $transform);
        }
    };
}

butterfly!(halves, 2, butterfly2);
butterfly!(thirds, 3, odd(radix_roots()));
butterfly!(quarters, 4, butterfly4);
butterfly!(fifths, 5, odd(radix_roots()));
butterfly!(sevenths, 7, odd(radix_roots()));

#[inline(always)]
pub(super) fn butterfly2<T: Real>([a, b]: [[T; 2]; 2]) -> [[T; 2]; 2] {
    [plus(a, b), minus(a, b)]
}

#[inline(always)]
pub(super) fn butterfly4<T: Real>([a, b, c, d]: [[T; 2]; 4]) -> [[T; 2]; 4] {
    let (even, odd) = (plus(a, c), plus(b, d));
    let (left, [x, y]) = (minus(a, c), minus(b, d));
    let right = [y, -x];
    [
        plus(even, odd),
        plus(left, right),
        minus(even, odd),
        minus(left, right),
    ]
}

/// The roots of a butterfly.
pub(super) fn radix_roots<T: Real, const R: usize>() -> [[T; 2]; R] {
    std::array::from_fn(|k| root(k as u64, R as u64))
}

/// A butterfly of odd length: pairs from both ends share their cosines and sines.
#[inline(always)]
pub(super) fn odd<T: Real, const R: usize>(
    roots: [[T; 2]; R],
) -> impl Fn([[T; 2]; R]) -> [[T; 2]; R] {
    move |x| {
        let mut out = [x[0]; R];
        for j in 1..=R / 2 {
            out[0] = plus(out[0], plus(x[j], x[R - j]));
        }
        for k in 1..=R / 2 {
            let (mut even, mut odd) = (x[0], None);
            for j in 1..=R / 2 {
                let (sum, [u, v]) = (plus(x[j], x[R - j]), minus(x[j], x[R - j]));
                let [cos, sin] = roots[j * k % R];
                even = plus(even, [cos * sum[0], cos * sum[1]]);
                let side = [-(sin * v), sin * u];
                odd = Some(odd.map_or(side, |odd| plus(odd, side)));
            }
            let odd = odd.unwrap_or(even);
            (out[k], out[R - k]) = (plus(even, odd), minus(even, odd));
        }
        out
    }
}
