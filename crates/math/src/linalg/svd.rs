//! Singular values by one-sided Jacobi rotations.

use super::{Scalar, adjoint, identity};

/// A = U·diag(s)·Vᴴ of a `rows` × `cols` matrix: values in descending order, U with `rows` rows and V with `cols`, each with
/// min(rows, cols) columns.
pub struct Svd<T> {
    /// The singular values.
    pub values: Vec<f64>,
    /// U.
    pub left: Vec<T>,
    /// V.
    pub right: Vec<T>,
}

/// Factorises.
pub fn svd<T: Scalar>(a: &[T], rows: usize, cols: usize) -> Svd<T> {
    if rows < cols {
        let turned = svd(&adjoint(a, rows, cols), cols, rows);
        return Svd {
            values: turned.values,
            left: turned.right,
            right: turned.left,
        };
    }
    let (mut u, mut v) = (a.to_vec(), identity::<T>(cols));
    for _ in 0..60 {
        let mut is_done = true;
        for q in 1..cols {
            for p in 0..q {
                is_done &= !orthogonalize(&mut u, &mut v, rows, cols, p, q);
            }
        }
        if is_done {
            break;
        }
    }
    let length = |col: usize| {
        let squares = (0..rows).map(|row| u[row * cols + col].norm().powi(2));
        squares.sum::<f64>().sqrt()
    };
    let lengths: Vec<f64> = (0..cols).map(length).collect();
    let mut order: Vec<usize> = (0..cols).collect();
    order.sort_by(|x, y| lengths[*y].total_cmp(&lengths[*x]));
    let pick = |matrix: &[T], rows: usize| {
        let mut out = Vec::with_capacity(rows * cols);
        for row in 0..rows {
            out.extend(order.iter().map(|col| matrix[row * cols + col]));
        }
        out
    };
    let (mut left, right) = (pick(&u, rows), pick(&v, cols));
    let values: Vec<f64> = order.iter().map(|col| lengths[*col]).collect();
    let tiny = values.first().copied().unwrap_or(0.0) * f64::EPSILON * rows as f64;
    for (col, value) in values.iter().enumerate() {
        if *value > tiny {
            for row in 0..rows {
                left[row * cols + col] = left[row * cols + col] / T::of(*value);
            }
        } else {
            let found = complement(&left, rows, cols, col);
            for row in 0..rows {
                left[row * cols + col] = found[row];
            }
        }
    }
    Svd {
        values,
        left,
        right,
    }
}

/// Turns columns p and q so that they are orthogonal; whether that was needed.
fn orthogonalize<T: Scalar>(
    u: &mut [T],
    v: &mut [T],
    rows: usize,
    cols: usize,
    p: usize,
    q: usize,
) -> bool {
    let (mut alpha, mut beta, mut gamma) = (0.0, 0.0, T::ZERO);
    for row in 0..rows {
        let (x, y) = (u[row * cols + p], u[row * cols + q]);
        alpha += x.norm().powi(2);
        beta += y.norm().powi(2);
        gamma = gamma + x.conj() * y;
    }
    let size = gamma.norm();
    if size.is_nan() || size <= 1e-15 * (alpha * beta).sqrt() {
        return false;
    }
    let phase = gamma / T::of(size);
    let zeta = (beta - alpha) / (2.0 * size);
    let t = if zeta >= 0.0 { 1.0 } else { -1.0 } / (zeta.abs() + (zeta * zeta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let (c, down, up) = (T::of(c), T::of(c * t) * phase.conj(), T::of(c * t) * phase);
    for (matrix, count) in [(u, rows), (v, cols)] {
        for row in 0..count {
            let (x, y) = (matrix[row * cols + p], matrix[row * cols + q]);
            matrix[row * cols + p] = c * x - down * y;
            matrix[row * cols + q] = up * x + c * y;
        }
    }
    true
}

/// A column of length one that is orthogonal to the first `col` columns.
pub fn complement<T: Scalar>(matrix: &[T], rows: usize, cols: usize, col: usize) -> Vec<T> {
    let mut best = vec![T::ZERO; rows];
    let mut longest = 0.0;
    for start in 0..rows {
        let mut x = vec![T::ZERO; rows];
        x[start] = T::ONE;
        for _ in 0..2 {
            for done in 0..col {
                let mut dot = T::ZERO;
                for row in 0..rows {
                    dot = dot + matrix[row * cols + done].conj() * x[row];
                }
                for row in 0..rows {
                    x[row] = x[row] - dot * matrix[row * cols + done];
                }
            }
        }
        let length = x.iter().map(|x| x.norm().powi(2)).sum::<f64>().sqrt();
        if length > longest {
            longest = length;
            best = x.iter().map(|x| *x / T::of(length)).collect();
        }
        if longest > 0.5 {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::product;
    use super::*;

    #[test]
    fn factors_rebuild_the_matrix() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0];
        for (rows, cols) in [(3, 2), (2, 3)] {
            let found = svd(&a, rows, cols);
            let n = 2;
            let mut scaled = found.left.clone();
            for row in 0..rows {
                for col in 0..n {
                    scaled[row * n + col] *= found.values[col];
                }
            }
            let back = product(&scaled, &adjoint(&found.right, cols, n), rows, n, cols);
            assert!(back.iter().zip(&a).all(|(x, y)| (x - y).abs() < 1e-12));
            assert!(found.values[0] >= found.values[1]);
        }
    }

    #[test]
    fn a_missing_direction_is_found() {
        let found = svd(&[1.0, 1.0, 1.0, 1.0], 2, 2);
        assert!(found.values[1] < 1e-12);
        let dot = found.left[0] * found.left[1] + found.left[2] * found.left[3];
        assert!(dot.abs() < 1e-12);
    }
}
