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
    /// For each group the powers 1 to `radix - 1` of its root.
    turns: Vec<[T; 2]>,
}

impl<T: Real> Pass<T> {
    /// The pass that splits `radix` off transforms of length `len`.
    pub(super) fn new(radix: usize, len: usize) -> Pass<T> {
        let groups = len / radix;
        let powers = |p| (1..radix).map(move |k| root((p * k) as u64, len as u64));
        Pass {
            radix,
            groups,
            turns: (0..groups).flat_map(powers).collect(),
        }
    }

    /// From one pair of parts to the other.
    pub(super) fn run(&self, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) {
        match self.radix {
            2 => run2(self, stride, from, to),
            3 => run3(self, stride, from, to),
            4 => run4(self, stride, from, to),
            5 => run5(self, stride, from, to),
            _ => run7(self, stride, from, to),
        }
    }
}

/// Real and imaginary parts.
pub(super) type Parts<'a, T> = (&'a [T], &'a [T]);
/// The same to write to.
pub(super) type PartsMut<'a, T> = (&'a mut [T], &'a mut [T]);

multiversion! {
    fn run2<T: Real>(pass: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) = halves;
}
multiversion! {
    fn run3<T: Real>(pass: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) = thirds;
}
multiversion! {
    fn run4<T: Real>(pass: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) = quarters;
}
multiversion! {
    fn run5<T: Real>(pass: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) = fifths;
}
multiversion! {
    fn run7<T: Real>(pass: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) = sevenths;
}

/// Two complex numbers multiplied.
#[inline(always)]
fn times<T: Real>(x: [T; 2], y: [T; 2]) -> [T; 2] {
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

/// Runs `butterfly` over all groups: `R` numbers in, their transform out.
#[inline(always)]
fn pass<T: Real, const R: usize>(
    pass: &Pass<T>,
    stride: usize,
    (re, im): Parts<'_, T>,
    (to_re, to_im): PartsMut<'_, T>,
    butterfly: impl Fn([[T; 2]; R]) -> [[T; 2]; R],
) {
    let whole = pass.groups * stride * R;
    let (re, im) = (&re[..whole], &im[..whole]);
    let (to_re, to_im) = (&mut to_re[..whole], &mut to_im[..whole]);
    let targets = to_re.chunks_exact_mut(stride * R);
    let targets = targets.zip(to_im.chunks_exact_mut(stride * R));
    let turns = pass.turns.chunks_exact(R - 1);
    for ((p, (to_re, to_im)), turns) in targets.enumerate().zip(turns) {
        let begin = |j: usize| stride * (p + pass.groups * j);
        let re: [&[T]; R] = std::array::from_fn(|j| &re[begin(j)..begin(j) + stride]);
        let im: [&[T]; R] = std::array::from_fn(|j| &im[begin(j)..begin(j) + stride]);
        let turn: [[T; 2]; R] = std::array::from_fn(|k| turns[k.max(1) - 1]);
        for q in 0..stride {
            let found = butterfly(std::array::from_fn(|j| [re[j][q], im[j][q]]));
            for k in 0..R {
                let turned = if k == 0 {
                    found[0]
                } else {
                    times(found[k], turn[k])
                };
                to_re[k * stride + q] = turned[0];
                to_im[k * stride + q] = turned[1];
            }
        }
    }
}

#[inline(always)]
fn halves<T: Real>(it: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) {
    pass::<T, 2>(it, stride, from, to, |[a, b]| [plus(a, b), minus(a, b)]);
}

#[inline(always)]
fn quarters<T: Real>(it: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) {
    pass::<T, 4>(it, stride, from, to, |[a, b, c, d]| {
        let (even, odd) = (plus(a, c), plus(b, d));
        let (left, [x, y]) = (minus(a, c), minus(b, d));
        let right = [y, -x];
        [
            plus(even, odd),
            plus(left, right),
            minus(even, odd),
            minus(left, right),
        ]
    });
}

/// A butterfly of odd length: pairs from both ends share their cosines and sines.
#[inline(always)]
fn odd<T: Real, const R: usize>(
    it: &Pass<T>,
    stride: usize,
    from: Parts<'_, T>,
    to: PartsMut<'_, T>,
) {
    let roots: [[T; 2]; R] = std::array::from_fn(|k| root(k as u64, R as u64));
    pass::<T, R>(it, stride, from, to, |x| {
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
    });
}

#[inline(always)]
fn thirds<T: Real>(it: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) {
    odd::<T, 3>(it, stride, from, to);
}

#[inline(always)]
fn fifths<T: Real>(it: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) {
    odd::<T, 5>(it, stride, from, to);
}

#[inline(always)]
fn sevenths<T: Real>(it: &Pass<T>, stride: usize, from: Parts<'_, T>, to: PartsMut<'_, T>) {
    odd::<T, 7>(it, stride, from, to);
}
