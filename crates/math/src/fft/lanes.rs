//! Sixteen lines at once, each in a lane of its own: number `j` of all of them lies side by side, in a [`Cell`].
//!
//! Every butterfly is then a row of plain vector operations, the same for all lengths and both precisions. Passes work in
//! place; frequencies end up where their digits are reversed and are put in order when they are read. Parts of a long line are
//! finished one by one, so that most passes stay in the nearest cache.

use super::passes::{RADICES, butterfly2, butterfly4, odd, pieces, radix_roots, times};
use super::{Real, root};
use crate::num::isa::multiversion;

/// How many lines.
pub(super) const LANES: usize = 16;

/// A number of each line: real parts, imaginary parts.
pub(super) type Cell<T> = [[T; LANES]; 2];

/// Parts of so many cells are in the nearest cache.
const NEAR: usize = 256;

/// The passes of a length, for lines in lanes.
pub(super) struct Lanes<T> {
    steps: Vec<Step<T>>,
    /// In which cell each frequency is found.
    pub(super) forward: Vec<u32>,
    /// The same for the inverse transform, which is the forward one read from the other end.
    pub(super) inverse: Vec<u32>,
}

struct Step<T> {
    radix: usize,
    groups: usize,
    /// The powers of each group's root, from the first on.
    turns: Vec<[T; 2]>,
}

impl<T: Real> Lanes<T> {
    /// For lines of this length; none if it has a factor without a butterfly.
    pub(super) fn new(len: usize) -> Option<Lanes<T>> {
        let (mut left, mut steps) = (len, Vec::new());
        while left > 1 {
            let radix = RADICES.into_iter().find(|radix| left % radix == 0)?;
            let groups = left / radix;
            let powers = |p: usize| (1..radix).map(move |k| root((p * k) as u64, left as u64));
            let turns = match groups {
                1 => Vec::new(),
                _ => (0..groups).flat_map(powers).collect(),
            };
            steps.push(Step {
                radix,
                groups,
                turns,
            });
            left = groups;
        }
        let place = |mut k: usize| {
            let mut place = 0;
            for step in &steps {
                place += k % step.radix * step.groups;
                k /= step.radix;
            }
            place as u32
        };
        let forward: Vec<u32> = (0..len).map(place).collect();
        let inverse = (0..len).map(|k| forward[(len - k) % len]).collect();
        Some(Lanes {
            steps,
            forward,
            inverse,
        })
    }

    /// Transforms the lines in place.
    pub(super) fn run(&self, cells: &mut [Cell<T>]) {
        Self::part(&self.steps, cells);
    }

    fn part(steps: &[Step<T>], cells: &mut [Cell<T>]) {
        match steps {
            [first, rest @ ..] if cells.len() > NEAR => {
                passes(std::slice::from_ref(first), cells);
                for part in cells.chunks_exact_mut(first.groups) {
                    Self::part(rest, part);
                }
            }
            steps => passes(steps, cells),
        }
    }
}

multiversion! {
    fn passes<T: Real>(steps: &[Step<T>], cells: &mut [Cell<T>]) = all_passes;
}

#[inline(always)]
fn all_passes<T: Real>(steps: &[Step<T>], cells: &mut [Cell<T>]) {
    for step in steps {
        match step.radix {
            2 => pass(step, cells, butterfly2),
            3 => pass(step, cells, odd::<T, 3>(radix_roots())),
            4 => pass(step, cells, butterfly4),
            5 => pass(step, cells, odd::<T, 5>(radix_roots())),
            _ => pass(step, cells, odd::<T, 7>(radix_roots())),
        }
    }
}

#[inline(always)]
fn pass<T: Real, const R: usize>(
    step: &Step<T>,
    cells: &mut [Cell<T>],
    butterfly: impl Fn([[T; 2]; R]) -> [[T; 2]; R],
) {
    let groups = step.groups;
    for block in cells.chunks_exact_mut(groups * R) {
        if groups == 1 {
            let x: [Cell<T>; R] = std::array::from_fn(|j| block[j]);
            let mut y = x;
            for lane in 0..LANES {
                let found = butterfly(std::array::from_fn(|j| [x[j][0][lane], x[j][1][lane]]));
                for k in 0..R {
                    (y[k][0][lane], y[k][1][lane]) = (found[k][0], found[k][1]);
                }
            }
            block.copy_from_slice(&y);
            continue;
        }
        let parts: [&mut [Cell<T>]; R] = pieces(block, groups);
        for (p, turns) in step.turns.chunks_exact(R - 1).enumerate().take(groups) {
            let x: [Cell<T>; R] = std::array::from_fn(|j| parts[j][p]);
            let turn: [[T; 2]; R] = std::array::from_fn(|k| turns[k.max(1) - 1]);
            let mut y = x;
            // Into a variable, as what is known not to overlap: these loops become single vector operations.
            for lane in 0..LANES {
                let found = butterfly(std::array::from_fn(|j| [x[j][0][lane], x[j][1][lane]]));
                for k in 0..R {
                    let turned = match k {
                        0 => found[0],
                        _ => times(found[k], turn[k]),
                    };
                    (y[k][0][lane], y[k][1][lane]) = (turned[0], turned[1]);
                }
            }
            for j in 0..R {
                parts[j][p] = y[j];
            }
        }
    }
}

multiversion! {
    /// The cells at these places, multiplied.
    pub(super) fn pick<T: Real>(cells: &[Cell<T>], places: &[u32], scale: T, to: &mut [Cell<T>]) = pick_each;
}

#[inline(always)]
fn pick_each<T: Real>(cells: &[Cell<T>], places: &[u32], scale: T, to: &mut [Cell<T>]) {
    for (to, place) in to.iter_mut().zip(places) {
        *to = cells[*place as usize].map(|part| part.map(|value| value * scale));
    }
}

multiversion! {
    /// Multiplies each cell by a factor.
    pub(super) fn turn<T: Real>(cells: &mut [Cell<T>], factors: &[[T; 2]]) = turn_each;
}

#[inline(always)]
fn turn_each<T: Real>(cells: &mut [Cell<T>], factors: &[[T; 2]]) {
    for (cell, factor) in cells.iter_mut().zip(factors) {
        let [re, im] = *cell;
        for lane in 0..LANES {
            let turned = times([re[lane], im[lane]], *factor);
            (cell[0][lane], cell[1][lane]) = (turned[0], turned[1]);
        }
    }
}

multiversion! {
    /// Puts neighbouring numbers into the first lanes of a cell.
    pub(super) fn load<T: Real>(from: &[num_complex::Complex<T>], cell: &mut Cell<T>) = load_each;
}

#[inline(always)]
fn load_each<T: Real>(from: &[num_complex::Complex<T>], cell: &mut Cell<T>) {
    let [re, im] = cell;
    match from.first_chunk::<LANES>() {
        Some(from) => {
            for lane in 0..LANES {
                (re[lane], im[lane]) = (from[lane].re, from[lane].im);
            }
        }
        None => {
            for (lane, value) in from.iter().enumerate() {
                (re[lane], im[lane]) = (value.re, value.im);
            }
        }
    }
}

multiversion! {
    /// The opposite of [`load`], multiplied.
    pub(super) fn store<T: Real>(cell: &Cell<T>, scale: T, to: &mut [num_complex::Complex<T>]) = store_each;
}

#[inline(always)]
fn store_each<T: Real>(cell: &Cell<T>, scale: T, to: &mut [num_complex::Complex<T>]) {
    let [re, im] = cell;
    match to.first_chunk_mut::<LANES>() {
        Some(to) => {
            for lane in 0..LANES {
                to[lane] = num_complex::Complex::new(re[lane] * scale, im[lane] * scale);
            }
        }
        None => {
            for (lane, to) in to.iter_mut().enumerate() {
                *to = num_complex::Complex::new(re[lane] * scale, im[lane] * scale);
            }
        }
    }
}

/// Room as cells.
pub(super) fn cells<T>(room: &mut [T]) -> &mut [Cell<T>] {
    room.as_chunks_mut::<LANES>().0.as_chunks_mut::<2>().0
}
