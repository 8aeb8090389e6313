//! Functions of square matrices: square roots and logarithms, by the triangle that a matrix is similar to.

use super::general::schur_form;
use super::{adjoint, identity, product, triangular};
use crate::num::Complex128;

/// The principal square root; `None` if the iteration for the triangle does not end.
pub fn square_root(a: &[Complex128], n: usize) -> Option<Vec<Complex128>> {
    of_triangle(a, n, triangle_root)
}

/// The principal logarithm; `None` if the iteration for the triangle does not end.
pub fn logarithm(a: &[Complex128], n: usize) -> Option<Vec<Complex128>> {
    of_triangle(a, n, triangle_logarithm)
}

/// Whether an eigenvalue of a real matrix is negative, so that its root and logarithm are not real.
pub fn has_negative_eigenvalue(a: &[Complex128], n: usize) -> bool {
    let Some((t, _)) = schur_form(a, n) else {
        return false;
    };
    let size = t.iter().map(|x| x.norm()).fold(0.0, f64::max);
    let tiny = size * 1e-10;
    (0..n).any(|k| t[k * n + k].re < -tiny && t[k * n + k].im.abs() <= tiny)
}

fn of_triangle(
    a: &[Complex128],
    n: usize,
    function: impl Fn(&[Complex128], usize) -> Vec<Complex128>,
) -> Option<Vec<Complex128>> {
    let (t, q) = schur_form(a, n)?;
    let turned = product(&q, &function(&t, n), n, n, n);
    Some(product(&turned, &adjoint(&q, n, n), n, n, n))
}

/// Column by column from the diagonal up: R·R = T has one unknown in each element.
fn triangle_root(t: &[Complex128], n: usize) -> Vec<Complex128> {
    let mut r = vec![Complex128::ZERO; n * n];
    for col in 0..n {
        r[col * n + col] = t[col * n + col].sqrt();
        for row in (0..col).rev() {
            let known: Complex128 = (row + 1..col)
                .map(|k| r[row * n + k] * r[k * n + col])
                .sum();
            let left = t[row * n + col] - known;
            r[row * n + col] = left / (r[row * n + row] + r[col * n + col]);
        }
    }
    r
}

/// Roots until the triangle is near one, then a sum of fractions that is exact to the last digits there.
fn triangle_logarithm(t: &[Complex128], n: usize) -> Vec<Complex128> {
    // Below this distance the eight fractions are exact.
    const NEAR: f64 = 0.25;
    let mut root = t.to_vec();
    let mut halvings = 0;
    let beyond = |root: &[Complex128]| -> Vec<Complex128> {
        let one = identity::<Complex128>(n);
        root.iter().zip(&one).map(|(x, y)| x - y).collect()
    };
    let size = |x: &[Complex128]| x.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
    let mut x = beyond(&root);
    while size(&x) > NEAR && halvings < 100 {
        root = triangle_root(&root, n);
        x = beyond(&root);
        halvings += 1;
    }
    let mut out = vec![Complex128::ZERO; n * n];
    let factor = 2f64.powi(halvings);
    for (node, weight) in gauss_legendre() {
        let one = identity::<Complex128>(n);
        let below: Vec<_> = x.iter().zip(&one).map(|(x, y)| x * node + y).collect();
        let fraction = triangular::solve(&below, &x, n, n, false);
        for (out, fraction) in out.iter_mut().zip(fraction) {
            *out += fraction * (weight * factor);
        }
    }
    for k in 0..n {
        out[k * n + k] = t[k * n + k].ln();
    }
    out
}

/// The eight places and weights of Gauss' rule for integrals from zero to one.
fn gauss_legendre() -> [(f64, f64); 8] {
    const COUNT: usize = 8;
    std::array::from_fn(|k| {
        let mut x = (std::f64::consts::PI * (k as f64 + 0.75) / (COUNT as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..10 {
            // Legendre's polynomials by their recurrence, and the derivative of the last one.
            let (mut before, mut value) = (1.0, x);
            for j in 2..=COUNT {
                let j = j as f64;
                (before, value) = (
                    value,
                    ((2.0 * j - 1.0) * x * value - (j - 1.0) * before) / j,
                );
            }
            slope = COUNT as f64 * (x * value - before) / (x * x - 1.0);
            x -= value / slope;
        }
        (0.5 * (1.0 + x), 1.0 / ((1.0 - x * x) * slope * slope))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize) -> Vec<Complex128> {
        let value =
            |i: usize| Complex128::new(((i * 7) % 11) as f64 / 5.0, ((i * 3) % 5) as f64 - 2.0);
        let mut out: Vec<_> = (0..n * n).map(value).collect();
        for k in 0..n {
            out[k * n + k] += 6.0;
        }
        out
    }

    #[test]
    fn the_square_of_the_root_is_the_matrix() {
        let (a, n) = (matrix(4), 4);
        let root = square_root(&a, n).unwrap();
        let back = product(&root, &root, n, n, n);
        assert!(back.iter().zip(&a).all(|(x, y)| (x - y).norm() < 1e-12));
    }

    #[test]
    fn the_logarithm_of_a_square_is_twice_that_of_the_matrix() {
        let n = 4;
        let root = square_root(&matrix(n), n).unwrap();
        let (whole, half) = (
            logarithm(&matrix(n), n).unwrap(),
            logarithm(&root, n).unwrap(),
        );
        assert!(
            whole
                .iter()
                .zip(&half)
                .all(|(x, y)| (x - 2.0 * y).norm() < 1e-12)
        );
        let one = logarithm(&[Complex128::new(1f64.exp(), 0.0)], 1).unwrap();
        assert!((one[0] - 1.0).norm() < 1e-15);
    }

    #[test]
    fn fractions_integrate_polynomials() {
        let sum = |power: i32| -> f64 {
            gauss_legendre()
                .iter()
                .map(|(x, w)| w * x.powi(power))
                .sum()
        };
        for power in 0..15 {
            assert!((sum(power) - 1.0 / f64::from(power + 1)).abs() < 1e-14);
        }
    }
}
