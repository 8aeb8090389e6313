//! LU factorisation with partial pivoting.

use super::Scalar;
use super::grid::{Grid, LANES, add_rows};
use super::triangular::{Triangle, solve_all};
use crate::num::isa::{Isa, multiversion};
use crate::par::poll_at;

/// P·A = L·U: `factors` holds U and, below its diagonal, L without its ones.
pub struct Lu<T> {
    /// L and U.
    pub factors: Vec<T>,
    /// Row `i` of P·A is row `rows[i]` of A.
    pub rows: Vec<usize>,
    /// Whether an odd number of rows was swapped.
    pub is_odd: bool,
    n: usize,
}

impl<T: Scalar> Lu<T> {
    /// Factorises an `n` × `n` matrix. A pivot of zero stays where it is.
    pub fn new(a: &[T], n: usize) -> Lu<T> {
        let mut grid = Grid::new(a, n, n);
        let mut rows: Vec<usize> = (0..n).collect();
        let is_odd = factorise(&mut grid, &mut rows);
        Lu {
            factors: grid.to_vec(n, n),
            rows,
            is_odd,
            n,
        }
    }

    /// The diagonal of U.
    pub fn pivots(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.n).map(|at| self.factors[at * self.n + at])
    }

    /// Whether no pivot is zero (or not a number).
    pub fn is_invertible(&self) -> bool {
        self.pivots().all(|pivot| pivot.norm() > 0.0)
    }

    /// Solves A·X = B for the `cols` columns of B.
    pub fn solve(&self, b: &[T], cols: usize) -> Vec<T> {
        let n = self.n;
        let mut x = Vec::with_capacity(b.len());
        for row in &self.rows {
            x.extend_from_slice(&b[row * cols..(row + 1) * cols]);
        }
        let lower = Triangle {
            is_lower: true,
            is_unit: true,
        };
        let upper = Triangle {
            is_lower: false,
            is_unit: false,
        };
        solve_all(&self.factors, &x, n, cols, &[lower, upper])
    }
}

multiversion! {
    /// Factorises in place and swaps `rows` along; whether an odd number was swapped.
    fn factorise<T: Scalar>(a: &mut Grid<T>, rows: &mut [usize]) -> bool = factorise_body with isa;
}

/// Vector after vector of columns: first these columns of all rows, then in one go the columns behind them.
#[inline(always)]
fn factorise_body<T: Scalar, I: Isa>(a: &mut Grid<T>, rows: &mut [usize]) -> bool {
    let (n, width) = (rows.len(), a.width);
    let mut is_odd = false;
    for vector in 0..width {
        let first = vector * LANES;
        poll_at(vector);
        let last = (first + LANES).min(n);
        for k in first..last {
            let lane = k - first;
            let mut best = (k, a.at(k, k).norm());
            for row in k + 1..n {
                let size = a.at(row, k).norm();
                if size > best.1 {
                    best = (row, size);
                }
            }
            if best.0 != k {
                let [_, own, after] = a.around(k);
                let from = (best.0 - k - 1) * width;
                own.swap_with_slice(&mut after[from..from + width]);
                rows.swap(k, best.0);
                is_odd = !is_odd;
            }
            let top = a.vectors[k * width + vector];
            if top[lane] == T::ZERO {
                continue;
            }
            for row in k + 1..n {
                let own = &mut a.vectors[row * width + vector];
                let factor = own[lane] / top[lane];
                for at in 0..LANES {
                    let less = own[at].plus_product::<I>(-factor, top[at]);
                    own[at] = if at > lane { less } else { own[at] };
                }
                own[lane] = factor;
            }
        }
        let (above, below) = a.vectors.split_at_mut(last * width);
        let panel = &mut above[first * width..];
        for row in 1..last - first {
            let (before, own) = panel.split_at_mut(row * width);
            let own = &mut own[..width];
            let factors = own[vector];
            add_rows::<T, I>(own, vector + 1, |k| -factors[k], row, before);
        }
        for own in below.chunks_exact_mut(width) {
            let factors = own[vector];
            add_rows::<T, I>(own, vector + 1, |k| -factors[k], last - first, panel);
        }
    }
    is_odd
}

#[cfg(test)]
mod tests {
    use super::super::{identity, product};
    use super::*;
    use crate::num::Complex128;

    #[test]
    fn solves_what_needs_a_swap() {
        let lu = Lu::new(&[0.0, 2.0, 1.0, 1.0], 2);
        assert!(lu.is_invertible() && lu.is_odd);
        assert_eq!(lu.solve(&[2.0, 3.0], 1), [2.0, 1.0]);
        assert!(!Lu::new(&[1.0, 2.0, 2.0, 4.0], 2).is_invertible());
    }

    #[test]
    fn the_product_of_the_factors_is_the_matrix() {
        for n in [0, 1, 7, 8, 9, 25, 40] {
            let value =
                |i: usize| Complex128::new((i * i % 97 % 23) as f64 - 9.0, (i * 3 % 5) as f64);
            let a: Vec<Complex128> = (0..n * n).map(value).collect();
            let lu = Lu::new(&a, n);
            let (mut l, mut u) = (identity(n), lu.factors.clone());
            for at in (0..n * n).filter(|at| at % n < at / n) {
                l[at] = std::mem::replace(&mut u[at], Complex128::ZERO);
                assert!(l[at].norm() <= 1.0 + 1e-12);
            }
            let back = product(&l, &u, n, n, n);
            for row in 0..n {
                for col in 0..n {
                    let want = a[lu.rows[row] * n + col];
                    assert!((back[row * n + col] - want).norm() < 1e-10);
                }
            }
            let b: Vec<Complex128> = (0..n * 3).map(value).collect();
            if lu.is_invertible() {
                let back = product(&a, &lu.solve(&b, 3), n, n, 3);
                assert!(back.iter().zip(&b).all(|(x, y)| (x - y).norm() < 1e-6));
            }
        }
    }
}
