//! Eigenvalues of matrices that equal their conjugate transpose: three diagonals by reflections, one by QR steps.

use super::grid::{Grid, LANES, add_rows, dot};
use super::reflection::{Reflection, gathered};
use super::turn::{Turn, turn, turn_rows};
use super::{Scalar, scale};
use crate::num::isa::{Isa, multiversion};
use crate::par::poll_at;

/// Steps for each eigenvalue; two or three are enough for numbers that are finite.
const STEPS: usize = 60;

/// Eigenvalues in ascending order and, if wanted, the eigenvectors as columns. Only the lower triangle is read, and of its
/// diagonal only what is real. `None` if the iteration does not end, as for numbers that are not finite.
pub fn eigen<T: Scalar>(a: &[T], n: usize, with_vectors: bool) -> Option<(Vec<f64>, Vec<T>)> {
    let lower = || (0..n).flat_map(|row| &a[row * n..row * n + row + 1]);
    if n > 1 && lower().any(|x| !x.norm().is_finite()) {
        return None;
    }
    let scale = scale(lower());
    let mut whole = Grid::zeros(n, n);
    for row in 0..n {
        for col in 0..=row {
            let value = a[row * n + col].scaled(1.0 / scale);
            *whole.at_mut(row, col) = value;
            *whole.at_mut(col, row) = value.conj();
        }
        // Numbers on the diagonal equal their conjugates: what is imaginary there is not part of the matrix.
        let real = whole.at(row, row).real();
        *whole.at_mut(row, row) = T::of(real);
    }
    let (mut three, mut vectors) = three_diagonals(&mut whole, n, with_vectors);
    if !diagonalize(&mut three, vectors.as_mut()) {
        return None;
    }
    let values = three.middle;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| values[*x].total_cmp(&values[*y]));
    let columns = vectors.map(|mut rows| {
        for at in 0..n {
            let sign = rows.sign(at);
            rows.scale(at, sign);
        }
        rows.columns(&order, n)
    });
    let values = order.iter().map(|at| values[*at] * scale).collect();
    Some((values, columns.unwrap_or_default()))
}

/// A real matrix of which only three diagonals are not zero, two of them the same.
struct Three {
    middle: Vec<f64>,
    aside: Vec<f64>,
}

multiversion! {
    /// The three diagonals that `a` is similar to, and the transpose of what turns them into it.
    fn three_diagonals<T: Scalar>(a: &mut Grid<T>, n: usize, with_vectors: bool) -> (Three, Option<Grid<T>>)
        = three_diagonals_body with isa;
}

#[inline(always)]
fn three_diagonals_body<T: Scalar, I: Isa>(
    a: &mut Grid<T>,
    n: usize,
    with_vectors: bool,
) -> (Three, Option<Grid<T>>) {
    let width = a.width;
    let (mut middle, mut aside, mut reflections) = (Vec::new(), Vec::new(), Vec::new());
    let mut pair = Grid::zeros(2, n);
    for k in 0..n {
        poll_at(k);
        middle.push(a.at(k, k).real());
        if k + 1 == n {
            break;
        }
        let column = (k + 1..n).map(|col| a.at(k, col).conj()).collect();
        let (length, reflection) = Reflection::new(k + 1, column);
        aside.push(length);
        let (v, tau) = (&reflection.vector, reflection.tau);
        if tau != T::ZERO {
            // With p = A·v and w = conj(tau)·p - |tau|²/2·(vᴴ·p)·v, the reflected matrix is A - v·wᴴ - w·vᴴ. The pair is w and v,
            // conjugated, as rows of A are added up instead of columns.
            let from = (k + 1) / LANES;
            let below = &mut a.vectors[(k + 1) * width..];
            pair.vectors.fill([T::ZERO; LANES]);
            let (w, conj) = pair.vectors.split_at_mut(width);
            for (to, v) in conj.as_flattened_mut()[k + 1..].iter_mut().zip(v) {
                *to = v.conj();
            }
            add_rows::<T, I>(w, from, |i| v[i].conj(), v.len(), below);
            let along = dot::<T, I>(&w[from..], &conj[from..]).real();
            let half = T::of(-0.5 * tau.square() * along);
            for (w, conj) in w.as_flattened_mut().iter_mut().zip(conj.as_flattened()) {
                *w = tau * *w + half * *conj;
            }
            for (i, row) in below.chunks_exact_mut(width).enumerate() {
                let factors = [-v[i], -pair.at(0, k + 1 + i).conj()];
                add_rows::<T, I>(row, from, |k| factors[k], 2, &pair.vectors);
            }
        }
        reflections.push(reflection);
    }
    let three = Three { middle, aside };
    if !with_vectors {
        return (three, None);
    }
    // Not in a closure, which would be compiled for the plainest instructions.
    let vectors = gathered::<T, I>(&reflections, n, n).transposed(n, n);
    (three, Some(vectors))
}

/// QR steps with Wilkinson's shift until the diagonals aside are zero; the rows of `vectors` are turned along. Whether that
/// came to an end.
fn diagonalize<T: Scalar>(three: &mut Three, mut vectors: Option<&mut Grid<T>>) -> bool {
    let Three { middle, aside } = three;
    let mut turns: Vec<Turn> = Vec::new();
    let mut end = aside.len();
    for turn in 0..STEPS * middle.len() {
        poll_at(turn);
        for (at, value) in aside[..end].iter_mut().enumerate() {
            let near = middle[at].abs() + middle[at + 1].abs();
            if value.abs() <= f64::EPSILON * near || value.abs() < f64::MIN_POSITIVE {
                *value = 0.0;
            }
        }
        while end > 0 && aside[end - 1] == 0.0 {
            end -= 1;
        }
        if end == 0 {
            return true;
        }
        let start = (0..end).rev().find(|at| aside[*at] == 0.0);
        let start = start.map_or(0, |at| at + 1);
        turns.clear();
        step(&mut middle[start..=end], &mut aside[start..end], &mut turns);
        if let Some(vectors) = &mut vectors {
            turn_rows(vectors, start, &turns);
        }
    }
    end == 0
}

/// One QR step: turns of neighbours chase the element that the shift brings in down and out.
fn step(middle: &mut [f64], aside: &mut [f64], turns: &mut Vec<Turn>) {
    let last = aside.len();
    let (half, outer) = (0.5 * (middle[last - 1] - middle[last]), aside[last - 1]);
    let root = (half * half + outer * outer).sqrt();
    let shift = middle[last] - outer * (outer / (half + if half < 0.0 { -root } else { root }));
    let (mut x, mut z) = (middle[0] - shift, aside[0]);
    for k in 0..last {
        let (c, s, length) = turn(x, z);
        if k > 0 {
            aside[k - 1] = length;
        }
        let (a, b, d) = (middle[k], aside[k], middle[k + 1]);
        let (up, down) = (c * a + s * b, c * b + s * d);
        let (up_next, down_next) = (c * b - s * a, c * d - s * b);
        middle[k] = c * up + s * down;
        middle[k + 1] = c * down_next - s * up_next;
        aside[k] = c * up_next + s * down_next;
        turns.push((c, s));
        if k + 1 < last {
            x = aside[k];
            z = s * aside[k + 1];
            aside[k + 1] *= c;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{adjoint, identity, product};
    use super::*;
    use crate::num::Complex128;

    #[test]
    fn vectors_rebuild_the_matrix() {
        let c = |re: f64, im: f64| Complex128::new(re, im);
        let a = [c(2.0, 0.0), c(1.0, -1.0), c(1.0, 1.0), c(3.0, 0.0)];
        let (values, v) = eigen(&a, 2, true).unwrap();
        assert!((values[0] - 1.0).abs() < 1e-12 && (values[1] - 4.0).abs() < 1e-12);
        let back = rebuilt(&values, &v);
        assert!(back.iter().zip(&a).all(|(x, y)| (x - y).norm() < 1e-12));
    }

    #[test]
    fn only_the_real_part_of_the_diagonal_is_read() {
        let c = |re: f64, im: f64| Complex128::new(re, im);
        let a = [c(2.0, 0.5), c(9.0, 9.0), c(1.0, 1.0), c(3.0, -2.0)];
        for with_vectors in [true, false] {
            let (values, _) = eigen(&a, 2, with_vectors).unwrap();
            assert!((values[0] - 1.0).abs() < 1e-12 && (values[1] - 4.0).abs() < 1e-12);
        }
    }

    fn rebuilt(values: &[f64], v: &[Complex128]) -> Vec<Complex128> {
        let n = values.len();
        let mut scaled = v.to_vec();
        for (at, value) in scaled.iter_mut().enumerate() {
            *value *= values[at % n];
        }
        product(&scaled, &adjoint(v, n, n), n, n, n)
    }

    #[test]
    fn matrices_of_all_sizes_are_rebuilt() {
        for n in [0, 1, 3, 7, 8, 9, 20, 41] {
            for size in [1e-200, 1.0, 1e200] {
                let value = |i: usize| {
                    Complex128::new((i * 7 % 11) as f64 - 4.0, (i * i % 13) as f64 - 5.0)
                };
                let mut a: Vec<Complex128> = (0..n * n).map(|i| value(i) * size).collect();
                for row in 0..n {
                    a[row * n + row].im = 0.0;
                    for col in row + 1..n {
                        a[row * n + col] = a[col * n + row].conj();
                    }
                }
                let (values, v) = eigen(&a, n, true).unwrap();
                assert!(values.is_sorted());
                let back = rebuilt(&values, &v);
                let near = |(x, y): (&Complex128, &Complex128)| (x - y).norm() < 1e-11 * size;
                assert!(back.iter().zip(&a).all(near));
                let square = product(&adjoint(&v, n, n), &v, n, n, n);
                let one = identity::<Complex128>(n);
                assert!(square.iter().zip(&one).all(|(x, y)| (x - y).norm() < 1e-12));
                let (only, none) = eigen(&a, n, false).unwrap();
                let near = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-12 * size;
                assert!(only.iter().zip(&values).all(near) && none.is_empty());
            }
        }
    }

    #[test]
    fn what_is_not_finite_has_none() {
        for odd in [f64::NAN, f64::INFINITY] {
            assert!(eigen(&[1.0, 0.0, odd, 2.0], 2, true).is_none());
        }
        assert_eq!(eigen(&[0.0; 9], 3, false).unwrap().0, [0.0; 3]);
    }
}
