//! Triangular systems.

use super::Scalar;
use super::grid::{Grid, LANES, add_rows, total};
use crate::num::isa::{Isa, multiversion};
use crate::par::poll_at;

/// Solves T·X = B by substitution; only the lower (or upper) triangle of the `n` × `n` matrix is read.
pub fn solve<T: Scalar>(t: &[T], b: &[T], n: usize, cols: usize, is_lower: bool) -> Vec<T> {
    let triangle = Triangle {
        is_lower,
        is_unit: false,
    };
    solve_all(t, b, n, cols, &[triangle])
}

/// Which elements of a matrix are meant.
#[derive(Clone, Copy)]
pub(super) struct Triangle {
    pub(super) is_lower: bool,
    /// Whether ones stand on the diagonal, whatever the matrix has there.
    pub(super) is_unit: bool,
}

/// Solves with one triangle of the matrix after the other.
pub(super) fn solve_all<T: Scalar>(
    t: &[T],
    b: &[T],
    n: usize,
    cols: usize,
    triangles: &[Triangle],
) -> Vec<T> {
    if cols == 1 {
        let mut b = b.to_vec();
        for triangle in triangles {
            substitute_column(t, &mut b, n, *triangle);
        }
        return b;
    }
    let mut x = Grid::new(b, n, cols);
    for triangle in triangles {
        substitute(t, &mut x, n, *triangle);
    }
    x.to_vec(n, cols)
}

multiversion! {
    fn substitute<T: Scalar>(t: &[T], x: &mut Grid<T>, n: usize, triangle: Triangle) = substitute_body with isa;
}

#[inline(always)]
fn substitute_body<T: Scalar, I: Isa>(t: &[T], x: &mut Grid<T>, n: usize, triangle: Triangle) {
    for step in 0..n {
        poll_at(step);
        let row = if triangle.is_lower {
            step
        } else {
            n - 1 - step
        };
        let factors = &t[row * n..(row + 1) * n];
        let [before, own, after] = x.around(row);
        let (factors, rows) = match triangle.is_lower {
            true => (&factors[..row], before),
            false => (&factors[row + 1..], after),
        };
        add_rows::<T, I>(own, 0, |k| -factors[k], factors.len(), rows);
        if !triangle.is_unit {
            let pivot = t[row * n + row];
            for value in own {
                *value = value.map(|value| value / pivot);
            }
        }
    }
}

multiversion! {
    fn substitute_column<T: Scalar>(t: &[T], x: &mut [T], n: usize, triangle: Triangle) = column_body with isa;
}

#[inline(always)]
fn column_body<T: Scalar, I: Isa>(t: &[T], x: &mut [T], n: usize, triangle: Triangle) {
    for step in 0..n {
        poll_at(step);
        let row = if triangle.is_lower {
            step
        } else {
            n - 1 - step
        };
        let done = if triangle.is_lower {
            0..row
        } else {
            row + 1..n
        };
        let (factors, rest) = t[row * n..(row + 1) * n][done.clone()].as_chunks::<LANES>();
        let (values, values_rest) = x[done].as_chunks::<LANES>();
        let mut sums = [T::ZERO; LANES];
        for (factor, value) in factors.iter().zip(values) {
            for lane in 0..LANES {
                sums[lane] = sums[lane].plus_product::<I>(factor[lane], value[lane]);
            }
        }
        let mut sum = total(sums);
        for (factor, value) in rest.iter().zip(values_rest) {
            sum = sum + *factor * *value;
        }
        x[row] = x[row] - sum;
        if !triangle.is_unit {
            x[row] = x[row] / t[row * n + row];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::product;
    use super::*;

    #[test]
    fn reads_one_triangle() {
        let t = [2.0, 9.0, 1.0, 4.0];
        assert_eq!(solve(&t, &[2.0, 5.0], 2, 1, true), [1.0, 1.0]);
        assert_eq!(solve(&t, &[13.0, 4.0], 2, 1, false), [2.0, 1.0]);
        assert_eq!(
            solve(&t, &[2.0, 4.0, 5.0, 10.0], 2, 2, true),
            [1.0, 2.0, 1.0, 2.0]
        );
    }

    #[test]
    fn the_product_with_what_is_found_is_the_right_side() {
        for (n, cols) in [(0, 3), (1, 1), (7, 2), (19, 1), (21, 9), (33, 33), (4, 0)] {
            for is_lower in [true, false] {
                let value = |at: usize| match (at / n).cmp(&(at % n)) {
                    std::cmp::Ordering::Equal => 9.0,
                    std::cmp::Ordering::Greater => (at % 5) as f64 - 2.0,
                    std::cmp::Ordering::Less => (at % 3) as f64 - 1.0,
                };
                let full: Vec<f64> = (0..n * n).map(value).collect();
                let b: Vec<f64> = (0..n * cols).map(|at| (at % 13) as f64).collect();
                let x = solve(&full, &b, n, cols, is_lower);
                let kept = |(at, value): (usize, &f64)| match is_lower {
                    true if at % n > at / n => 0.0,
                    false if at % n < at / n => 0.0,
                    _ => *value,
                };
                let t: Vec<f64> = full.iter().enumerate().map(kept).collect();
                let back = product(&t, &x, n, n, cols);
                assert!(back.iter().zip(&b).all(|(x, y)| (x - y).abs() < 1e-9));
            }
        }
    }
}
