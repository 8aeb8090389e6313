//! Eigenvalues of any square matrix: Hessenberg form, then shifted QR steps to a triangle, all in complex numbers.

use super::{Scalar, identity};
use crate::num::Complex128;
use crate::par::poll_at;

/// Eigenvalues, and eigenvectors of length one as columns. `None` if the iteration does not end.
pub fn eigen(a: &[Complex128], n: usize) -> Option<(Vec<Complex128>, Vec<Complex128>)> {
    let (h, q) = schur_form(a, n)?;
    let values = (0..n).map(|at| h[at * n + at]).collect();
    Some((values, vectors(&h, &q, n)))
}

/// The triangle T and the unitary Q with A = Q·T·Qᴴ. `None` if the iteration does not end.
pub fn schur_form(a: &[Complex128], n: usize) -> Option<(Vec<Complex128>, Vec<Complex128>)> {
    let mut h = a.to_vec();
    let mut q = identity::<Complex128>(n);
    hessenberg(&mut h, &mut q, n);
    schur(&mut h, &mut q, n)?;
    Some((h, q))
}

/// Zeros below the subdiagonal by Householder reflections, which are gathered in `q`.
fn hessenberg(h: &mut [Complex128], q: &mut [Complex128], n: usize) {
    for k in 0..n.saturating_sub(2) {
        poll_at(k);
        let mut w: Vec<Complex128> = (k + 1..n).map(|row| h[row * n + k]).collect();
        let length = w.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
        if length == 0.0 {
            continue;
        }
        let first = w[0];
        let phase = match first.norm() {
            0.0 => Complex128::ONE,
            size => first / size,
        };
        w[0] += phase * length;
        let square = w.iter().map(|x| x.norm_sqr()).sum::<f64>();
        for col in 0..n {
            let dot: Complex128 = (0..w.len())
                .map(|i| w[i].conj() * h[(k + 1 + i) * n + col])
                .sum();
            let factor = dot * (2.0 / square);
            for i in 0..w.len() {
                h[(k + 1 + i) * n + col] -= w[i] * factor;
            }
        }
        for matrix in [&mut *h, &mut *q] {
            for row in 0..n {
                let dot: Complex128 = (0..w.len())
                    .map(|i| matrix[row * n + k + 1 + i] * w[i])
                    .sum();
                let factor = dot * (2.0 / square);
                for i in 0..w.len() {
                    matrix[row * n + k + 1 + i] -= factor * w[i].conj();
                }
            }
        }
        for row in k + 2..n {
            h[row * n + k] = Complex128::ZERO;
        }
    }
}

/// The triangle that a Hessenberg matrix is similar to.
fn schur(h: &mut [Complex128], q: &mut [Complex128], n: usize) -> Option<()> {
    let mut end = n;
    let mut tries = 0;
    while end > 1 {
        let start = active(h, n, end);
        if start + 1 == end {
            end -= 1;
            tries = 0;
            continue;
        }
        poll_at(tries + end);
        tries += 1;
        if tries > 300 {
            return None;
        }
        let shift = if tries % 11 == 10 {
            // An odd shift now and then breaks cycles.
            h[(end - 1) * n + end - 1] + Complex128::new(h[(end - 1) * n + end - 2].norm(), 0.0)
        } else {
            wilkinson(h, n, end)
        };
        qr_step(h, q, n, start, end, shift);
    }
    Some(())
}

/// Where the block that ends at `end` begins: after the last subdiagonal element that is as good as zero.
fn active(h: &mut [Complex128], n: usize, end: usize) -> usize {
    for row in (1..end).rev() {
        let scale = h[row * n + row].norm() + h[(row - 1) * n + row - 1].norm();
        let scale = if scale == 0.0 { 1.0 } else { scale };
        if h[row * n + row - 1].norm() <= f64::EPSILON * scale {
            h[row * n + row - 1] = Complex128::ZERO;
            return row;
        }
    }
    0
}

/// The eigenvalue of the last two by two block that is nearer to its last element.
fn wilkinson(h: &[Complex128], n: usize, end: usize) -> Complex128 {
    let (p, q) = (end - 2, end - 1);
    let (a, b, c, d) = (h[p * n + p], h[p * n + q], h[q * n + p], h[q * n + q]);
    let half = (a - d) * 0.5;
    let root = (half * half + b * c).sqrt();
    let (x, y) = (d + half + root, d + half - root);
    if (x - d).norm() < (y - d).norm() {
        x
    } else {
        y
    }
}

/// One QR step of the block `start..end` by Givens rotations.
fn qr_step(
    h: &mut [Complex128],
    q: &mut [Complex128],
    n: usize,
    start: usize,
    end: usize,
    shift: Complex128,
) {
    for at in start..end {
        h[at * n + at] -= shift;
    }
    let mut rotations = Vec::with_capacity(end - start);
    for k in start..end - 1 {
        let (x, y) = (h[k * n + k], h[(k + 1) * n + k]);
        let length = (x.norm_sqr() + y.norm_sqr()).sqrt();
        let (c, s) = if length == 0.0 {
            (Complex128::ONE, Complex128::ZERO)
        } else {
            (x / length, y / length)
        };
        rotations.push((c, s));
        for col in k..n {
            let (x, y) = (h[k * n + col], h[(k + 1) * n + col]);
            h[k * n + col] = c.conj() * x + s.conj() * y;
            h[(k + 1) * n + col] = c * y - s * x;
        }
    }
    for (index, (c, s)) in rotations.into_iter().enumerate() {
        let k = start + index;
        for row in 0..(k + 2).min(end) {
            let (x, y) = (h[row * n + k], h[row * n + k + 1]);
            h[row * n + k] = x * c + y * s;
            h[row * n + k + 1] = y * c.conj() - x * s.conj();
        }
        for row in 0..n {
            let (x, y) = (q[row * n + k], q[row * n + k + 1]);
            q[row * n + k] = x * c + y * s;
            q[row * n + k + 1] = y * c.conj() - x * s.conj();
        }
    }
    for at in start..end {
        h[at * n + at] += shift;
    }
}

/// The eigenvectors of the triangle, turned back by `q`.
fn vectors(t: &[Complex128], q: &[Complex128], n: usize) -> Vec<Complex128> {
    let largest = t.iter().map(|x| x.norm()).fold(0.0, f64::max);
    let tiny = (largest * f64::EPSILON).max(f64::MIN_POSITIVE);
    let mut out = vec![Complex128::ZERO; n * n];
    for k in 0..n {
        poll_at(k);
        let mut x = vec![Complex128::ZERO; n];
        x[k] = Complex128::ONE;
        for row in (0..k).rev() {
            let sum: Complex128 = (row + 1..=k).map(|col| t[row * n + col] * x[col]).sum();
            let mut gap = t[k * n + k] - t[row * n + row];
            if gap.norm() < tiny {
                gap = Complex128::new(tiny, 0.0);
            }
            x[row] = sum / gap;
        }
        let full: Vec<Complex128> = (0..n)
            .map(|row| (0..=k).map(|col| q[row * n + col] * x[col]).sum())
            .collect();
        let length = full.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
        for row in 0..n {
            out[row * n + k] = full[row] / length;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::product;
    use super::*;

    #[test]
    fn vectors_are_only_scaled() {
        let n = 4;
        let a: Vec<Complex128> = (0..n * n)
            .map(|i| Complex128::new(((i * 7) % 11) as f64, ((i * 3) % 5) as f64 - 2.0))
            .collect();
        let (values, v) = eigen(&a, n).unwrap();
        let av = product(&a, &v, n, n, n);
        for row in 0..n {
            for col in 0..n {
                let wanted = v[row * n + col] * values[col];
                assert!((av[row * n + col] - wanted).norm() < 1e-10);
            }
        }
    }
}
