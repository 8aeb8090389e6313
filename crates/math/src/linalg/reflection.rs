//! Householder's reflections, which make zeros in columns.

use super::Scalar;
use super::grid::{Grid, LANES, Vector, add_rows};
use crate::num::isa::Isa;
use crate::par::poll_at;

/// 1 - tau·v·vᴴ on the rows from `first` on, with one for the first element of v.
pub(super) struct Reflection<T> {
    pub(super) first: usize,
    pub(super) vector: Vec<T>,
    pub(super) tau: T,
}

impl<T: Scalar> Reflection<T> {
    /// What turns the column `x`, which begins at row `first`, into a real multiple of the first unit vector; and that multiple.
    pub(super) fn new(first: usize, mut x: Vec<T>) -> (f64, Reflection<T>) {
        let (length, tau) = reflect(&mut x);
        let reflection = Reflection {
            first,
            vector: x,
            tau,
        };
        (length, reflection)
    }

    /// Reflects the rows of `matrix` by `tau`, from column `from` on: those before are zero in these rows or not needed.
    #[inline(always)]
    pub(super) fn apply<I: Isa>(&self, tau: T, matrix: &mut Grid<T>, from: usize) {
        if tau == T::ZERO || matrix.width == 0 {
            return;
        }
        let (from, width, v) = (from / LANES, matrix.width, &self.vector);
        let rows = &mut matrix.vectors[self.first * width..];
        let mut dots: Vec<Vector<T>> = vec![[T::ZERO; LANES]; width];
        add_rows::<T, I>(&mut dots, from, |i| v[i].conj(), v.len(), rows);
        for (v, row) in v.iter().zip(rows.chunks_exact_mut(width)) {
            add_rows::<T, I>(row, from, |_| -(tau * *v), 1, &dots);
        }
    }
}

/// The first `cols` columns of the product of the adjoints of these reflections, which begin at later and later rows.
#[inline(always)]
pub(super) fn gathered<T: Scalar, I: Isa>(
    reflections: &[Reflection<T>],
    rows: usize,
    cols: usize,
) -> Grid<T> {
    let mut out = Grid::zeros(rows, cols);
    for at in 0..cols {
        *out.at_mut(at, at) = T::ONE;
    }
    for (step, reflection) in reflections.iter().rev().enumerate() {
        poll_at(step);
        reflection.apply::<I>(reflection.tau.conj(), &mut out, reflection.first);
    }
    out
}

/// Makes `x` to the vector of its reflection; gives the multiple of the first unit vector that it becomes, and tau.
fn reflect<T: Scalar>(x: &mut [T]) -> (f64, T) {
    let Some((first, rest)) = x.split_first_mut() else {
        return (0.0, T::ZERO);
    };
    let head = std::mem::replace(first, T::ONE);
    let tail: f64 = rest.iter().map(|x| x.square()).sum();
    let aside = (head - T::of(head.real())).square();
    if tail <= f64::MIN_POSITIVE && aside <= f64::MIN_POSITIVE {
        rest.fill(T::ZERO);
        return (head.real(), T::ZERO);
    }
    let length = (head.square() + tail).sqrt();
    let length = if head.real() >= 0.0 { -length } else { length };
    for value in rest {
        *value = *value / (head - T::of(length));
    }
    (length, ((T::of(length) - head) / T::of(length)).conj())
}
