//! LU factorisation with partial pivoting.

use super::Scalar;

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
        let mut factors = a.to_vec();
        let mut rows: Vec<usize> = (0..n).collect();
        let mut is_odd = false;
        for k in 0..n {
            let mut best = k;
            for row in k + 1..n {
                if factors[row * n + k].norm() > factors[best * n + k].norm() {
                    best = row;
                }
            }
            if best != k {
                for col in 0..n {
                    factors.swap(k * n + col, best * n + col);
                }
                rows.swap(k, best);
                is_odd = !is_odd;
            }
            let pivot = factors[k * n + k];
            if pivot == T::ZERO {
                continue;
            }
            for row in k + 1..n {
                let factor = factors[row * n + k] / pivot;
                factors[row * n + k] = factor;
                for col in k + 1..n {
                    factors[row * n + col] = factors[row * n + col] - factor * factors[k * n + col];
                }
            }
        }
        Lu {
            factors,
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
        for row in 0..n {
            for k in 0..row {
                subtract(&mut x, row, k, self.factors[row * n + k], cols);
            }
        }
        for row in (0..n).rev() {
            for k in row + 1..n {
                subtract(&mut x, row, k, self.factors[row * n + k], cols);
            }
            let pivot = self.factors[row * n + row];
            for value in &mut x[row * cols..(row + 1) * cols] {
                *value = *value / pivot;
            }
        }
        x
    }
}

/// Subtracts `factor` times row `from` from row `row`.
pub(super) fn subtract<T: Scalar>(x: &mut [T], row: usize, from: usize, factor: T, cols: usize) {
    for col in 0..cols {
        x[row * cols + col] = x[row * cols + col] - factor * x[from * cols + col];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_what_needs_a_swap() {
        let lu = Lu::new(&[0.0, 2.0, 1.0, 1.0], 2);
        assert!(lu.is_invertible() && lu.is_odd);
        assert_eq!(lu.solve(&[2.0, 3.0], 1), [2.0, 1.0]);
        assert!(!Lu::new(&[1.0, 2.0, 2.0, 4.0], 2).is_invertible());
    }
}
