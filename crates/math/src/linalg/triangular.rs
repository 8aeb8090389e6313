//! Triangular systems.

use super::{Scalar, lu::subtract};

/// Solves T·X = B by substitution; only the lower (or upper) triangle of the `n` × `n` matrix is read.
pub fn solve<T: Scalar>(t: &[T], b: &[T], n: usize, cols: usize, is_lower: bool) -> Vec<T> {
    let mut x = b.to_vec();
    for step in 0..n {
        let row = if is_lower { step } else { n - 1 - step };
        let done = if is_lower { 0..row } else { row + 1..n };
        for k in done {
            subtract(&mut x, row, k, t[row * n + k], cols);
        }
        let pivot = t[row * n + row];
        for value in &mut x[row * cols..(row + 1) * cols] {
            *value = *value / pivot;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_one_triangle() {
        let t = [2.0, 9.0, 1.0, 4.0];
        assert_eq!(solve(&t, &[2.0, 5.0], 2, 1, true), [1.0, 1.0]);
        assert_eq!(solve(&t, &[13.0, 4.0], 2, 1, false), [2.0, 1.0]);
    }
}
