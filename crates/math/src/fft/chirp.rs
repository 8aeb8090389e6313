//! Bluestein's transform: any length as a convolution, which a power of two can do.
//!
//! With w(j) = exp(-πi·j²/n), the transform of x is w(k) · Σ x(j)·w(j) · w̄(k - j).

use super::lanes::{Cell, LANES, Lanes, pick, turn};
use super::passes::times;
use super::plan::Bundle;
use super::{Direction, Plan, Real, root};

pub(super) struct Chirp<T> {
    len: usize,
    /// Of the convolution.
    pub(super) plan: Plan<T>,
    /// w(j).
    chirp: Vec<[T; 2]>,
    /// The transform of w̄, divided by the convolution's length.
    filter: Vec<[T; 2]>,
    /// Where frequencies are found: in order, and from the other end.
    forward: Vec<u32>,
    inverse: Vec<u32>,
}

impl<T: Real> Chirp<T> {
    pub(super) fn new(len: usize) -> Chirp<T> {
        let wide = (2 * len - 1).next_power_of_two();
        let turns = 2 * len as u64;
        let square = |j: usize| (j as u128 * j as u128 % u128::from(turns)) as u64;
        let chirp: Vec<[T; 2]> = (0..len).map(|j| root(square(j), turns)).collect();
        let plan = Plan::new(wide);
        let mut filter = Bundle::new();
        filter.resize(wide);
        for (j, [re, im]) in chirp.iter().enumerate() {
            for at in [j, (wide - j) % wide] {
                (filter.re[at], filter.im[at]) = (*re, -*im);
            }
        }
        plan.run(&mut filter, &mut Bundle::new());
        let share = T::of(1.0 / wide as f64);
        let filter = filter.re.iter().zip(&filter.im);
        let filter = filter.map(|(re, im)| [*re * share, *im * share]).collect();
        let place = |k: usize| (k % len) as u32;
        Chirp {
            len,
            plan,
            chirp,
            filter,
            forward: (0..len).map(place).collect(),
            inverse: (0..len).map(|k| place(len - k)).collect(),
        }
    }

    /// In which cell each frequency is found after [`run_lanes`](Self::run_lanes).
    pub(super) fn places(&self, direction: Direction) -> &[u32] {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Inverse => &self.inverse,
        }
    }

    /// As [`Plan::run`].
    pub(super) fn run(&self, data: &mut Bundle<T>, spare: &mut Bundle<T>) {
        turn_line(data, &self.chirp);
        data.resize(self.plan.len());
        self.plan.run(data, spare);
        turn_line(data, &self.filter);
        data.swap();
        self.plan.run(data, spare);
        data.swap();
        data.resize(self.len);
        turn_line(data, &self.chirp);
    }

    /// Transforms lines that lie side by side in the first cells; `lanes` are those of the convolution.
    pub(super) fn run_lanes(&self, lanes: &Lanes<T>, cells: &mut [Cell<T>], spare: &mut [Cell<T>]) {
        let one = T::of(1.0);
        turn(cells, &self.chirp);
        cells[self.len..].fill([[T::of(0.0); LANES]; 2]);
        lanes.run(cells);
        let spare = &mut spare[..self.filter.len()];
        pick(cells, &lanes.forward, one, spare);
        turn(spare, &self.filter);
        lanes.run(spare);
        pick(spare, &lanes.inverse[..self.len], one, cells);
        turn(cells, &self.chirp);
    }
}

/// Multiplies each number by a factor.
fn turn_line<T: Real>(data: &mut Bundle<T>, factors: &[[T; 2]]) {
    for ((re, im), factor) in data.re.iter_mut().zip(&mut data.im).zip(factors) {
        (*re, *im) = times([*re, *im], *factor).into();
    }
}
