//! Bluestein's transform: any length as a convolution, which a power of two can do.
//!
//! With w(j) = exp(-πi·j²/n), the transform of x is w(k) · Σ x(j)·w(j) · w̄(k - j).

use super::plan::Bundle;
use super::{Plan, Real, root};

pub(super) struct Chirp<T> {
    len: usize,
    /// Of the convolution.
    plan: Plan<T>,
    /// w(j).
    chirp: Vec<[T; 2]>,
    /// The transform of w̄, divided by the convolution's length.
    filter: Vec<[T; 2]>,
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
        plan.run(&mut filter, &mut Bundle::new(), 1);
        let share = T::of(1.0 / wide as f64);
        let filter = filter.re.iter().zip(&filter.im);
        let filter = filter.map(|(re, im)| [*re * share, *im * share]).collect();
        Chirp {
            len,
            plan,
            chirp,
            filter,
        }
    }

    /// As [`Plan::run`].
    pub(super) fn run(&self, data: &mut Bundle<T>, spare: &mut Bundle<T>, width: usize) {
        turn(data, &self.chirp, width);
        data.resize(self.plan.len() * width);
        self.plan.run(data, spare, width);
        turn(data, &self.filter, width);
        data.swap();
        self.plan.run(data, spare, width);
        data.swap();
        data.resize(self.len * width);
        turn(data, &self.chirp, width);
    }
}

/// Multiplies element `j` of all lines by `factors[j]`.
fn turn<T: Real>(data: &mut Bundle<T>, factors: &[[T; 2]], width: usize) {
    if width == 1 {
        // The same without a loop over lines.
        for ((re, im), factor) in data.re.iter_mut().zip(&mut data.im).zip(factors) {
            (*re, *im) = turned(*re, *im, *factor);
        }
        return;
    }
    let rows = data.re.chunks_mut(width).zip(data.im.chunks_mut(width));
    for ((re, im), factor) in rows.zip(factors) {
        for (re, im) in re.iter_mut().zip(im) {
            (*re, *im) = turned(*re, *im, *factor);
        }
    }
}

fn turned<T: Real>(re: T, im: T, [x, y]: [T; 2]) -> (T, T) {
    (re * x - im * y, re * y + im * x)
}
