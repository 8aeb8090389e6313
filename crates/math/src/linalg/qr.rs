//! A = Q·R by Householder reflections.

use super::Scalar;
use super::grid::Grid;
use super::reflection::{Reflection, gathered};
use crate::num::isa::{Isa, multiversion};
use crate::par::poll_at;

multiversion! {
    /// Q with orthonormal columns and the upper triangle R of a `rows` × `cols` matrix: `min(rows, cols)` columns and rows of
    /// them, or as many as A has rows if `is_full`. The diagonal of R is real and its signs are those of LAPACK.
    pub fn qr<T: Scalar>(a: &[T], rows: usize, cols: usize, is_full: bool) -> (Vec<T>, Vec<T>) = qr_body with isa;
}

#[inline(always)]
fn qr_body<T: Scalar, I: Isa>(
    a: &[T],
    rows: usize,
    cols: usize,
    is_full: bool,
) -> (Vec<T>, Vec<T>) {
    let (least, mut r) = (rows.min(cols), Grid::new(a, rows, cols));
    let width = if is_full { rows } else { least };
    let mut reflections = Vec::with_capacity(least);
    for k in 0..least {
        poll_at(k);
        let column = (k..rows).map(|row| r.at(row, k)).collect();
        let (_, reflection) = Reflection::new(k, column);
        reflection.apply::<I>(reflection.tau, &mut r, k);
        reflections.push(reflection);
    }
    let q = gathered::<T, I>(&reflections, rows, width);
    let mut r = r.to_vec(width, cols);
    for row in 0..width {
        for value in &mut r[row * cols..row * cols + row.min(cols)] {
            *value = T::ZERO;
        }
    }
    (q.to_vec(rows, width), r)
}

#[cfg(test)]
mod tests {
    use super::super::{adjoint, identity, product};
    use super::*;
    use crate::num::Complex128;

    #[test]
    fn the_product_is_the_matrix_and_columns_are_orthonormal() {
        for (rows, cols, is_full) in [
            (3, 3, false),
            (4, 2, false),
            (4, 2, true),
            (2, 5, false),
            (1, 1, true),
            (21, 13, true),
            (19, 19, false),
            (0, 2, true),
            (3, 0, true),
        ] {
            let value =
                |i: usize| Complex128::new(((i * 7) % 11) as f64 - 4.0, ((i * 3) % 5) as f64);
            let a: Vec<Complex128> = (0..rows * cols).map(value).collect();
            let (q, r) = qr(&a, rows, cols, is_full);
            let width = if is_full { rows } else { rows.min(cols) };
            let back = product(&q, &r, rows, width, cols);
            assert!(back.iter().zip(&a).all(|(x, y)| (x - y).norm() < 1e-12));
            let square = product(&adjoint(&q, rows, width), &q, width, rows, width);
            let one = identity::<Complex128>(width);
            assert!(square.iter().zip(&one).all(|(x, y)| (x - y).norm() < 1e-12));
        }
    }
}
