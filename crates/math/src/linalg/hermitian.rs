//! Eigenvalues of matrices that equal their conjugate transpose, by Jacobi rotations.

use super::{Scalar, identity};

/// Eigenvalues in ascending order and the eigenvectors as columns. Only the lower triangle is read.
pub fn eigen<T: Scalar>(a: &[T], n: usize) -> (Vec<f64>, Vec<T>) {
    let mut a = a.to_vec();
    for row in 0..n {
        a[row * n + row] = T::of(a[row * n + row].real());
        for col in row + 1..n {
            a[row * n + col] = a[col * n + row].conj();
        }
    }
    let mut v = identity::<T>(n);
    let total: f64 = a.iter().map(|x| x.norm() * x.norm()).sum();
    for _ in 0..60 {
        let mut off = 0.0;
        for row in 0..n {
            for col in 0..row {
                off += a[row * n + col].norm().powi(2);
            }
        }
        if off.is_nan() || off <= total * 1e-32 {
            break;
        }
        for q in 1..n {
            for p in 0..q {
                rotate(&mut a, &mut v, n, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    let value = |at: usize| a[at * n + at].real();
    order.sort_by(|x, y| value(*x).total_cmp(&value(*y)));
    let values = order.iter().map(|at| value(*at)).collect();
    let mut vectors = Vec::with_capacity(n * n);
    for row in 0..n {
        vectors.extend(order.iter().map(|col| v[row * n + col]));
    }
    (values, vectors)
}

/// Makes element (p, q) zero.
fn rotate<T: Scalar>(a: &mut [T], v: &mut [T], n: usize, p: usize, q: usize) {
    let apq = a[p * n + q];
    let size = apq.norm();
    if size == 0.0 || !size.is_finite() {
        return;
    }
    let phase = apq / T::of(size);
    let theta = (a[q * n + q].real() - a[p * n + p].real()) / (2.0 * size);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    // Columns: p' = c p - s conj(phase) q, q' = s phase p + c q.
    let (c, down, up) = (T::of(c), T::of(s) * phase.conj(), T::of(s) * phase);
    for row in 0..n {
        let (x, y) = (a[row * n + p], a[row * n + q]);
        a[row * n + p] = c * x - down * y;
        a[row * n + q] = up * x + c * y;
        let (x, y) = (v[row * n + p], v[row * n + q]);
        v[row * n + p] = c * x - down * y;
        v[row * n + q] = up * x + c * y;
    }
    for col in 0..n {
        let (x, y) = (a[p * n + col], a[q * n + col]);
        a[p * n + col] = c * x - down.conj() * y;
        a[q * n + col] = up.conj() * x + c * y;
    }
    a[p * n + q] = T::ZERO;
    a[q * n + p] = T::ZERO;
}

#[cfg(test)]
mod tests {
    use super::super::{adjoint, product};
    use super::*;
    use crate::num::Complex128;

    #[test]
    fn vectors_rebuild_the_matrix() {
        let c = |re: f64, im: f64| Complex128::new(re, im);
        let a = [c(2.0, 0.0), c(1.0, -1.0), c(1.0, 1.0), c(3.0, 0.0)];
        let (values, v) = eigen(&a, 2);
        assert!((values[0] - 1.0).abs() < 1e-12 && (values[1] - 4.0).abs() < 1e-12);
        let mut scaled = v.clone();
        for row in 0..2 {
            for col in 0..2 {
                scaled[row * 2 + col] *= values[col];
            }
        }
        let back = product(&scaled, &adjoint(&v, 2, 2), 2, 2, 2);
        assert!(back.iter().zip(&a).all(|(x, y)| (x - y).norm() < 1e-12));
    }
}
