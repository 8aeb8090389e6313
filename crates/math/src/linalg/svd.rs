//! Singular values: two diagonals by reflections from both sides, one by QR steps.

use super::grid::{Grid, LANES, add_rows, dot};
use super::reflection::{Reflection, gathered};
use super::turn::{Turn, turn, turn_rows};
use super::{Scalar, adjoint, scale};
use crate::num::isa::{Isa, multiversion};
use crate::par::poll_at;

/// Steps for each value; two or three are enough.
const STEPS: usize = 60;

/// A = U·diag(s)·Vᴴ of a `rows` × `cols` matrix: values in descending order, U with `rows` rows and V with `cols`, each with
/// min(rows, cols) columns, or empty if not wanted.
pub struct Svd<T> {
    /// The singular values.
    pub values: Vec<f64>,
    /// U.
    pub left: Vec<T>,
    /// V.
    pub right: Vec<T>,
}

/// Factorises; all is NaN if an element is not finite.
pub fn svd<T: Scalar>(a: &[T], rows: usize, cols: usize, with_vectors: bool) -> Svd<T> {
    if rows < cols {
        let turned = svd(&adjoint(a, rows, cols), cols, rows, with_vectors);
        return Svd {
            values: turned.values,
            left: turned.right,
            right: turned.left,
        };
    }
    if a.iter().any(|x| !x.norm().is_finite()) {
        let nan = |len: usize| vec![T::of(f64::NAN); if with_vectors { len } else { 0 }];
        return Svd {
            values: vec![f64::NAN; cols],
            left: nan(rows * cols),
            right: nan(cols * cols),
        };
    }
    let scale = scale(a.iter());
    let mut grid = Grid::new(a, rows, cols);
    for value in grid.vectors.as_flattened_mut() {
        *value = value.scaled(1.0 / scale);
    }
    let (mut two, mut sides) = two_diagonals(&mut grid, rows, cols, with_vectors);
    diagonalize(&mut two, sides.as_mut());
    let mut order: Vec<usize> = (0..cols).collect();
    order.sort_by(|x, y| two.middle[*y].abs().total_cmp(&two.middle[*x].abs()));
    let values = order.iter().map(|at| two.middle[*at].abs() * scale);
    let mut found = Svd {
        values: values.collect(),
        left: Vec::new(),
        right: Vec::new(),
    };
    if let Some([mut left, mut right]) = sides {
        for at in 0..cols {
            let sign = right.sign(at);
            right.scale(at, sign);
            left.scale(at, if two.middle[at] < 0.0 { -sign } else { sign });
        }
        found.left = left.columns(&order, rows);
        found.right = right.columns(&order, cols);
    }
    found
}

/// A real square matrix with a diagonal and the one above it.
struct Two {
    middle: Vec<f64>,
    above: Vec<f64>,
}

multiversion! {
    /// Two diagonals, and as rows the columns of the U and V between which they are `a`.
    fn two_diagonals<T: Scalar>(a: &mut Grid<T>, rows: usize, cols: usize, with_vectors: bool) -> (Two, Option<[Grid<T>; 2]>)
        = two_diagonals_body with isa;
}

#[inline(always)]
fn two_diagonals_body<T: Scalar, I: Isa>(
    a: &mut Grid<T>,
    rows: usize,
    cols: usize,
    with_vectors: bool,
) -> (Two, Option<[Grid<T>; 2]>) {
    let width = a.width;
    let (mut middle, mut above) = (Vec::new(), Vec::new());
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    for k in 0..cols {
        poll_at(k);
        let column = (k..rows).map(|row| a.at(row, k)).collect();
        let (length, left) = Reflection::new(k, column);
        left.apply::<I>(left.tau, a, k);
        middle.push(length);
        lefts.push(left);
        if k + 1 == cols {
            break;
        }
        let row = (k + 1..cols).map(|col| a.at(k, col).conj()).collect();
        let (length, right) = Reflection::new(k + 1, row);
        above.push(length);
        let mut v = Grid::zeros(2, cols);
        for (at, value) in right.vector.iter().enumerate() {
            *v.at_mut(0, k + 1 + at) = *value;
            *v.at_mut(1, k + 1 + at) = value.conj();
        }
        let from = (k + 1) / LANES;
        for row in a.vectors[(k + 1) * width..].chunks_exact_mut(width) {
            // Σ v·row is the dot product with what is conjugated.
            let along = dot::<T, I>(&v.row(1)[from..], &row[from..]);
            let factor = -(right.tau.conj() * along);
            add_rows::<T, I>(row, from, |_| factor, 1, v.row(1));
        }
        rights.push(right);
    }
    let two = Two { middle, above };
    if !with_vectors {
        return (two, None);
    }
    let left = gathered::<T, I>(&lefts, rows, cols);
    let right = gathered::<T, I>(&rights, cols, cols);
    let sides = [left.transposed(rows, cols), right.transposed(cols, cols)];
    (two, Some(sides))
}

/// QR steps until the diagonal above is zero; the rows of both sides are turned along.
fn diagonalize<T: Scalar>(two: &mut Two, mut sides: Option<&mut [Grid<T>; 2]>) {
    let Two { middle, above } = two;
    let size = middle
        .iter()
        .chain(&*above)
        .fold(0f64, |x, y| x.max(y.abs()));
    let tiny = size * f64::EPSILON;
    let mut turns: [Vec<Turn>; 2] = [Vec::new(), Vec::new()];
    let mut end = above.len();
    for turn in 0..STEPS * middle.len() {
        poll_at(turn);
        for (at, value) in above[..end].iter_mut().enumerate() {
            let near = middle[at].abs() + middle[at + 1].abs();
            if value.abs() <= f64::EPSILON * near || value.abs() < tiny * f64::EPSILON {
                *value = 0.0;
            }
        }
        while end > 0 && above[end - 1] == 0.0 {
            end -= 1;
        }
        if end == 0 {
            break;
        }
        let start = (0..end).rev().find(|at| above[*at] == 0.0);
        let start = start.map_or(0, |at| at + 1);
        let (own, above) = (&mut middle[start..=end], &mut above[start..end]);
        for list in &mut turns {
            list.clear();
        }
        // A shift would not let a zero be found.
        if own.iter().any(|value| value.abs() <= tiny) {
            step_to_zero(own, above, &mut turns);
        } else {
            step(own, above, &mut turns);
        }
        if let Some(sides) = &mut sides {
            for (side, turns) in sides.iter_mut().zip(&turns) {
                turn_rows(side, start, turns);
            }
        }
    }
}

/// One QR step with Wilkinson's shift: turns from the right and the left chase the element that the shift brings in down and out.
fn step(middle: &mut [f64], above: &mut [f64], [left, right]: &mut [Vec<Turn>; 2]) {
    let last = above.len();
    let before = if last > 1 { above[last - 2] } else { 0.0 };
    let (x, y, z) = (middle[last - 1], middle[last], above[last - 1]);
    // The lower corner of the square, whose eigenvalue next to its last element is the shift.
    let (upper, lower, outer) = (x * x + before * before, y * y + z * z, x * z);
    let half = 0.5 * (upper - lower);
    let root = (half * half + outer * outer).sqrt();
    let shift = lower - outer * (outer / (half + if half < 0.0 { -root } else { root }));
    let shift = if shift.is_finite() { shift } else { lower };
    let (mut x, mut z) = (middle[0] - shift / middle[0], above[0]);
    for k in 0..last {
        let (c, s, length) = turn(x, z);
        if k > 0 {
            above[k - 1] = length;
        }
        // Columns k and the next.
        let (a, b, d) = (middle[k], above[k], middle[k + 1]);
        (x, above[k]) = (c * a + s * b, c * b - s * a);
        z = s * d;
        middle[k + 1] = c * d;
        right.push((c, s));
        // Rows k and the next.
        let (c, s, length) = turn(x, z);
        middle[k] = length;
        let (b, d) = (above[k], middle[k + 1]);
        (above[k], middle[k + 1]) = (c * b + s * d, c * d - s * b);
        left.push((c, s));
        if k + 1 < last {
            x = above[k];
            z = s * above[k + 1];
            above[k + 1] *= c;
        }
    }
}

/// One QR step without a shift, which brings a zero of the diagonal to the end, and another above it.
fn step_to_zero(middle: &mut [f64], above: &mut [f64], [left, right]: &mut [Vec<Turn>; 2]) {
    let last = above.len();
    let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
    for k in 0..last {
        let (cos, s, length) = turn(middle[k] * c, above[k]);
        c = cos;
        if k > 0 {
            above[k - 1] = old_s * length;
        }
        right.push((c, s));
        let found = turn(old_c * length, middle[k + 1] * s);
        (old_c, old_s, middle[k]) = found;
        left.push((old_c, old_s));
    }
    let rest = middle[last] * c;
    above[last - 1] = rest * old_s;
    middle[last] = rest * old_c;
}

/// A column of length one that is orthogonal to the first `col` columns.
pub fn complement<T: Scalar>(matrix: &[T], rows: usize, cols: usize, col: usize) -> Vec<T> {
    let mut best = vec![T::ZERO; rows];
    let mut longest = 0.0;
    for start in 0..rows {
        poll_at(start);
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
            let found = svd(&a, rows, cols, true);
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
    fn nothing_is_found_where_a_number_is_not_finite() {
        let found = svd(&[1.0, f64::NAN], 1, 2, true);
        assert!(found.values[0].is_nan() && found.right[1].is_nan());
        assert_eq!((found.left.len(), found.right.len()), (1, 2));
    }

    #[test]
    fn a_missing_direction_is_found() {
        let found = svd(&[1.0, 1.0, 1.0, 1.0], 2, 2, true);
        assert!(found.values[1] < 1e-12);
        let dot = found.left[0] * found.left[1] + found.left[2] * found.left[3];
        assert!(dot.abs() < 1e-12);
    }

    #[test]
    fn matrices_of_all_sizes_are_rebuilt() {
        for (rows, cols) in [(0, 3), (1, 1), (9, 9), (20, 7), (13, 30), (40, 40)] {
            let value = |i: usize| (i * i % 17) as f64 - 6.0;
            let a: Vec<f64> = (0..rows * cols).map(value).collect();
            let found = svd(&a, rows, cols, true);
            let n = rows.min(cols);
            let mut scaled = found.left.clone();
            for (at, value) in scaled.iter_mut().enumerate() {
                *value *= found.values[at % n];
            }
            let back = product(&scaled, &adjoint(&found.right, cols, n), rows, n, cols);
            assert!(back.iter().zip(&a).all(|(x, y)| (x - y).abs() < 1e-11));
            let only = svd(&a, rows, cols, false).values;
            assert!(
                only.iter()
                    .zip(&found.values)
                    .all(|(x, y)| (x - y).abs() < 1e-11)
            );
            assert!(found.values.is_sorted_by(|x, y| x >= y));
            for (matrix, rows) in [(&found.left, rows), (&found.right, cols)] {
                let square = product(&adjoint(matrix, rows, n), matrix, n, rows, n);
                let one = super::super::identity::<f64>(n);
                assert!(square.iter().zip(&one).all(|(x, y)| (x - y).abs() < 1e-12));
            }
        }
    }
}
