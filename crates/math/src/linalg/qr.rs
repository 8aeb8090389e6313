//! A = Q·R by Householder reflections.

use super::{Scalar, identity};

/// Q with orthonormal columns and the upper triangle R of a `rows` × `cols` matrix: `min(rows, cols)` columns and rows of
/// them, or as many as A has rows if `is_full`. The diagonal of R is real and its signs are those of LAPACK.
pub fn qr<T: Scalar>(a: &[T], rows: usize, cols: usize, is_full: bool) -> (Vec<T>, Vec<T>) {
    let (least, mut r) = (rows.min(cols), a.to_vec());
    let width = if is_full { rows } else { least };
    let reflections: Vec<_> = (0..least)
        .map(|k| {
            let found = Reflection::new(&r, rows, cols, k);
            found.apply(&mut r, cols, k, found.tau);
            found
        })
        .collect();
    let mut q = vec![T::ZERO; rows * width];
    for (row, one) in identity::<T>(rows).chunks(rows.max(1)).enumerate() {
        q[row * width..(row + 1) * width].copy_from_slice(&one[..width]);
    }
    for (k, reflection) in reflections.iter().enumerate().rev() {
        reflection.apply(&mut q, width, k, reflection.tau.conj());
    }
    r.truncate(width * cols);
    for row in 0..width {
        for value in &mut r[row * cols..row * cols + row.min(cols)] {
            *value = T::ZERO;
        }
    }
    (q, r)
}

/// 1 - tau·v·vᴴ, with one for the first element of v.
struct Reflection<T> {
    vector: Vec<T>,
    tau: T,
}

impl<T: Scalar> Reflection<T> {
    /// What turns column `k` from row `k` on into a real multiple of the first unit vector.
    fn new(a: &[T], rows: usize, cols: usize, k: usize) -> Reflection<T> {
        let mut vector: Vec<T> = (k..rows).map(|row| a[row * cols + k]).collect();
        let first = vector[0];
        let tail: f64 = vector[1..].iter().map(|x| x.norm() * x.norm()).sum();
        let aside = (first - T::of(first.real())).norm();
        let mut tau = T::ZERO;
        vector[0] = T::ONE;
        if tail <= f64::MIN_POSITIVE && aside * aside <= f64::MIN_POSITIVE {
            vector[1..].fill(T::ZERO);
        } else {
            let length = (first.norm() * first.norm() + tail).sqrt();
            let length = T::of(if first.real() >= 0.0 { -length } else { length });
            for value in &mut vector[1..] {
                *value = *value / (first - length);
            }
            tau = ((length - first) / length).conj();
        }
        Reflection { vector, tau }
    }

    /// Reflects the rows from `k` on.
    fn apply(&self, matrix: &mut [T], cols: usize, k: usize, tau: T) {
        if tau == T::ZERO {
            return;
        }
        let mut dots = vec![T::ZERO; cols];
        for (at, v) in self.vector.iter().enumerate() {
            let row = &matrix[(k + at) * cols..(k + at + 1) * cols];
            for (dot, value) in dots.iter_mut().zip(row) {
                *dot = *dot + v.conj() * *value;
            }
        }
        for (at, v) in self.vector.iter().enumerate() {
            let factor = tau * *v;
            let row = &mut matrix[(k + at) * cols..(k + at + 1) * cols];
            for (dot, value) in dots.iter().zip(row) {
                *value = *value - factor * *dot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{adjoint, product};
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
