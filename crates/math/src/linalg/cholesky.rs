//! Cholesky factorisation.

use super::Scalar;
use super::grid::{Grid, LANES, add_rows};
use crate::num::isa::{Isa, multiversion};
use crate::par::poll_at;

multiversion! {
    /// The lower triangle L of A = L·Lᴴ, from the lower triangle of A; `None` if A is not positive definite.
    pub fn cholesky<T: Scalar>(a: &[T], n: usize) -> Option<Vec<T>> = cholesky_body with isa;
}

/// Row by row of U = Lᴴ: a row of it is a row of A without multiples of the rows before, whose factors stand in a row of L.
#[inline(always)]
fn cholesky_body<T: Scalar, I: Isa>(a: &[T], n: usize) -> Option<Vec<T>> {
    let mut l = vec![T::ZERO; n * n];
    let mut u = Grid::zeros(n, n);
    for row in 0..n {
        poll_at(row);
        let [before, own, _] = u.around(row);
        for (col, value) in own.as_flattened_mut()[..n].iter_mut().enumerate().skip(row) {
            *value = a[col * n + row].conj();
        }
        let factors = &l[row * n..row * n + row];
        add_rows::<T, I>(own, row / LANES, |k| -factors[k], row, before);
        let own = &own.as_flattened()[..n];
        let square = own[row].real();
        if square.is_nan() || square <= 0.0 {
            return None;
        }
        let root = square.sqrt();
        l[row * n + row] = T::of(root);
        for col in row + 1..n {
            l[col * n + row] = own[col].conj() / T::of(root);
        }
        for value in &mut u.row_mut(row)[row / LANES..] {
            *value = value.map(|value| value / T::of(root));
        }
    }
    Some(l)
}

#[cfg(test)]
mod tests {
    use super::super::{adjoint, product};
    use super::*;
    use crate::num::Complex128;

    #[test]
    fn factorises_only_what_is_positive_definite() {
        assert_eq!(
            cholesky(&[4.0, 9.0, 2.0, 5.0], 2),
            Some(vec![2.0, 0.0, 1.0, 2.0])
        );
        assert_eq!(cholesky(&[1.0, 0.0, 2.0, 1.0], 2), None);
    }

    #[test]
    fn the_square_of_the_triangle_is_the_matrix() {
        for n in [0, 1, 5, 8, 19, 33] {
            let value = |i: usize| Complex128::new((i * 7 % 11) as f64 - 4.0, (i * 3 % 5) as f64);
            let some: Vec<Complex128> = (0..n * n).map(value).collect();
            let mut a = product(&some, &adjoint(&some, n, n), n, n, n);
            for k in 0..n {
                a[k * n + k] += 1.0;
            }
            let l = cholesky(&a, n).unwrap();
            let back = product(&l, &adjoint(&l, n, n), n, n, n);
            assert!(back.iter().zip(&a).all(|(x, y)| (x - y).norm() < 1e-9));
            assert!((0..n * n).all(|at| at % n <= at / n || l[at] == Complex128::ZERO));
        }
    }
}
