//! Transforms between real lines and the half of their spectrum that determines the rest.
//!
//! A line of even length is half as many complex numbers, whose transform is taken apart; one of odd length is transformed
//! as complex numbers are.

use num_complex::Complex;

use super::bundle::{each_bundle, numbers, numbers_mut, store_block};
use super::lanes::{Cell, LANES, pick};
use super::plan::{Bundle, SideBySide, roots};
use super::{Direction, Plan, Real};
use crate::disjoint::Disjoint;
use crate::num::isa::multiversion;
use crate::par::{Par, rows_mut};

/// What transforms of real lines of one length need.
pub struct RealPlan<T> {
    len: usize,
    /// Of the half length if the length is even.
    plan: Plan<T>,
    roots: Vec<[T; 2]>,
}

impl<T: Real> RealPlan<T> {
    /// A plan for lines of this length.
    pub fn new(len: usize) -> RealPlan<T> {
        let is_even = len.is_multiple_of(2);
        RealPlan {
            len,
            plan: Plan::new(if is_even { len / 2 } else { len }),
            roots: if is_even {
                roots(len / 2 + 1, len)
            } else {
                Vec::new()
            },
        }
    }

    /// The length of a real line.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether lines have no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length of half a spectrum.
    pub fn half(&self) -> usize {
        self.len / 2 + 1
    }
}

/// The first half of the spectrum of each row of `from`; of rows that are longer than the plan the end is not read.
///
/// # Panics
/// If the numbers of rows differ, or rows of `from` are too short.
pub fn real_to_complex<T: Real>(
    par: &dyn Par,
    plan: &RealPlan<T>,
    from: (&[T], usize),
    to: &mut [Complex<T>],
) {
    let (from, from_len) = from;
    let (half, len) = (plan.half(), plan.len);
    if to.is_empty() || len == 0 {
        return;
    }
    let rows = to.len() / half;
    assert!(from.len() == rows * from_len && from_len >= len);
    if let Some(way) = plan.plan.side_by_side(rows) {
        return spectra(par, plan, way, (from, from_len), to);
    }
    rows_mut(par, to, half, 1, |first, to| {
        let (mut line, mut spare) = (Bundle::new(), Bundle::new());
        for (row, to) in (first..).zip(to.chunks_mut(half)) {
            load_real(plan, &mut line, &from[row * from_len..][..len]);
            plan.plan.run(&mut line, &mut spare);
            for (k, value) in to.iter_mut().enumerate() {
                *value = frequency(plan, &line, k);
            }
        }
    });
}

/// [`real_to_complex`] of lines side by side.
fn spectra<T: Real>(
    par: &dyn Par,
    plan: &RealPlan<T>,
    way: SideBySide<'_, T>,
    (from, from_len): (&[T], usize),
    to: &mut [Complex<T>],
) {
    let (half, len) = (plan.half(), plan.len);
    let rows = to.len() / half;
    let places = way.places(Direction::Forward);
    let to = Disjoint::new(to);
    each_bundle(par, rows.div_ceil(LANES), way, |at, cells, spare| {
        let lines = LANES.min(rows - at * LANES);
        let from = (&from[at * LANES * from_len..], from_len);
        // SAFETY: each row belongs to one bundle only.
        let to = numbers_mut(unsafe { to.slice(at * LANES * half, lines * half) });
        if plan.roots.is_empty() {
            let (re, _) = spare.as_flattened_mut().split_at_mut(len);
            T::transpose(from, [lines, len], (re.as_flattened_mut(), LANES));
            for (cell, re) in cells.iter_mut().zip(re) {
                *cell = [*re, [T::of(0.0); LANES]];
            }
        } else {
            let flat = cells.as_flattened_mut().as_flattened_mut();
            T::transpose(from, [lines, len], (flat, LANES));
        }
        way.run(cells, spare);
        let mut block = [[[T::of(0.0); LANES]; 2]; LANES];
        for (number, first) in (0..half).step_by(LANES).enumerate() {
            let range = first..half.min(first + LANES);
            let block = &mut block[..range.len()];
            match plan.roots.is_empty() {
                true => pick(cells, &places[range], T::of(1.0), block),
                false => frequencies(cells, places, &plan.roots, first, block),
            }
            store_block(block, lines, (&mut *to, 2 * half), number);
        }
    });
}

multiversion! {
    /// Frequencies from the first on, out of the transforms of half as many complex numbers.
    fn frequencies<T: Real>(
        cells: &[Cell<T>], places: &[u32], roots: &[[T; 2]], first: usize, to: &mut [Cell<T>],
    ) = each_frequency;
}

#[inline(always)]
fn each_frequency<T: Real>(
    cells: &[Cell<T>],
    places: &[u32],
    roots: &[[T; 2]],
    first: usize,
    to: &mut [Cell<T>],
) {
    let n = places.len();
    for (k, to) in (first..).zip(to) {
        let [a, b] = cells[places[k % n] as usize];
        let [c, d] = cells[places[(n - k) % n] as usize];
        let mut found = [a, b];
        for lane in 0..LANES {
            let pair = [[a[lane], b[lane]], [c[lane], d[lane]]];
            (found[0][lane], found[1][lane]) = part_of_spectrum(pair, roots[k]);
        }
        *to = found;
    }
}

/// A frequency out of two of the transform of half as many complex numbers.
#[inline(always)]
fn part_of_spectrum<T: Real>([[a, b], [c, d]]: [[T; 2]; 2], [cos, sin]: [T; 2]) -> (T, T) {
    // The transform of the even places, and that of the odd ones, twice.
    let ([x, y], [u, v]) = ([a + c, b - d], [b + d, c - a]);
    let half = T::of(0.5);
    (
        (x + u * cos - v * sin) * half,
        (y + u * sin + v * cos) * half,
    )
}

fn load_real<T: Real>(plan: &RealPlan<T>, line: &mut Bundle<T>, from: &[T]) {
    line.resize(plan.plan.len());
    if plan.roots.is_empty() {
        line.re.copy_from_slice(from);
        line.im.fill(T::of(0.0));
        return;
    }
    let parts = line.re.iter_mut().zip(&mut line.im);
    for ((re, im), pair) in parts.zip(from.chunks_exact(2)) {
        (*re, *im) = (pair[0], pair[1]);
    }
}

/// Frequency `k` of a line, out of its transform.
#[inline]
fn frequency<T: Real>(plan: &RealPlan<T>, line: &Bundle<T>, k: usize) -> Complex<T> {
    let at = |k: usize| [line.re[k], line.im[k]];
    let Some(root) = plan.roots.get(k) else {
        let [re, im] = at(k);
        return Complex::new(re, im);
    };
    let n = plan.plan.len();
    let (re, im) = part_of_spectrum([at(k % n), at((n - k) % n)], *root);
    Complex::new(re, im)
}

/// Real lines from the first halves of their spectra, in the rows of `from`, multiplied by `scale`; the imaginary parts that
/// a spectrum of real numbers cannot have are not read.
///
/// # Panics
/// If the numbers of rows differ, or rows of `from` are too short.
pub fn complex_to_real<T: Real>(
    par: &dyn Par,
    plan: &RealPlan<T>,
    from: (&[Complex<T>], usize),
    to: &mut [T],
    scale: f64,
) {
    let (from, from_len) = from;
    let (half, len, scale) = (plan.half(), plan.len, T::of(scale));
    if to.is_empty() || len == 0 {
        return;
    }
    let rows = to.len() / len;
    assert!(from.len() == rows * from_len && from_len >= half);
    if let Some(way) = plan.plan.side_by_side(rows) {
        return signals(par, plan, way, (from, from_len), to, scale);
    }
    rows_mut(par, to, len, 1, |first, to| {
        let (mut line, mut spare) = (Bundle::new(), Bundle::new());
        for (row, to) in (first..).zip(to.chunks_mut(len)) {
            line.resize(plan.plan.len());
            load_half(plan, &mut line, &from[row * from_len..][..half]);
            // Inverse.
            line.swap();
            plan.plan.run(&mut line, &mut spare);
            line.swap();
            if plan.roots.is_empty() {
                for (value, re) in to.iter_mut().zip(&line.re) {
                    *value = *re * scale;
                }
            } else {
                let parts = line.re.iter().zip(&line.im);
                for (pair, (re, im)) in to.chunks_exact_mut(2).zip(parts) {
                    (pair[0], pair[1]) = (*re * scale, *im * scale);
                }
            }
        }
    });
}

/// [`complex_to_real`] of lines side by side.
fn signals<T: Real>(
    par: &dyn Par,
    plan: &RealPlan<T>,
    way: SideBySide<'_, T>,
    (from, from_len): (&[Complex<T>], usize),
    to: &mut [T],
    scale: T,
) {
    let (half, len, zero) = (plan.half(), plan.len, T::of(0.0));
    let rows = to.len() / len;
    let places = way.places(Direction::Inverse);
    let to = Disjoint::new(to);
    each_bundle(par, rows.div_ceil(LANES), way, |at, cells, spare| {
        let lines = LANES.min(rows - at * LANES);
        let from = (numbers(&from[at * LANES * from_len..]), 2 * from_len);
        // SAFETY: each row belongs to one bundle only.
        let to = unsafe { to.slice(at * LANES * len, lines * len) };
        let spectrum = spare.as_flattened_mut().as_flattened_mut();
        T::transpose(from, [lines, 2 * half], (spectrum, LANES));
        spare[0][1] = [zero; LANES];
        if plan.roots.is_empty() {
            cells[0] = spare[0];
            for k in 1..half {
                let [re, im] = spare[k];
                (cells[k], cells[len - k]) = (spare[k], [re, im.map(|im| -im)]);
            }
        } else {
            spare[half - 1][1] = [zero; LANES];
            halves(&spare[..half], &plan.roots, cells);
        }
        way.run(cells, spare);
        let mut block = [[[zero; LANES]; 2]; LANES];
        for (number, places) in places.chunks(LANES).enumerate() {
            pick(cells, places, scale, &mut block);
            let block = &block[..places.len()];
            if plan.roots.is_empty() {
                let re: [[T; LANES]; LANES] =
                    std::array::from_fn(|k| block.get(k).map_or([zero; LANES], |cell| cell[0]));
                let to = (&mut to[number * LANES..], len);
                T::transpose((re.as_flattened(), LANES), [block.len(), lines], to);
            } else {
                store_block(block, lines, (&mut *to, len), number);
            }
        }
    });
}

multiversion! {
    /// The spectra of half as many complex numbers, out of the first halves of those of real ones.
    fn halves<T: Real>(from: &[Cell<T>], roots: &[[T; 2]], to: &mut [Cell<T>]) = each_half;
}

#[inline(always)]
fn each_half<T: Real>(from: &[Cell<T>], roots: &[[T; 2]], to: &mut [Cell<T>]) {
    let n = from.len() - 1;
    for (k, to) in to.iter_mut().enumerate().take(n) {
        let ([a, b], [c, d]) = (from[k], from[n - k]);
        let mut found = [a, b];
        for lane in 0..LANES {
            let pair = [[a[lane], b[lane]], [c[lane], d[lane]]];
            (found[0][lane], found[1][lane]) = part_of_half(pair, roots[k]);
        }
        *to = found;
    }
}

/// A frequency of half as many complex numbers.
#[inline(always)]
fn part_of_half<T: Real>([[a, b], [c, d]]: [[T; 2]; 2], [cos, sin]: [T; 2]) -> (T, T) {
    let ([x, y], [u, v]) = ([a + c, b - d], [a - c, b + d]);
    // (u + iv) times i times the root of the other direction.
    (x + u * sin - v * cos, y + u * cos + v * sin)
}

/// Puts the spectrum of one line into its parts: whole, or as that of half as many complex numbers.
fn load_half<T: Real>(plan: &RealPlan<T>, line: &mut Bundle<T>, from: &[Complex<T>]) {
    let (len, zero) = (plan.len, T::of(0.0));
    let read = |k: usize| match from[k] {
        value if k == 0 || 2 * k == len => [value.re, zero],
        value => [value.re, value.im],
    };
    if plan.roots.is_empty() {
        for k in 0..from.len() {
            let [re, im] = read(k);
            (line.re[k], line.im[k]) = (re, im);
            if k > 0 {
                (line.re[len - k], line.im[len - k]) = (re, -im);
            }
        }
        return;
    }
    let n = len / 2;
    for k in 0..n {
        (line.re[k], line.im[k]) = part_of_half([read(k), read(n - k)], plan.roots[k]);
    }
}
