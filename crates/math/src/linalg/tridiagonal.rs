//! Systems with three diagonals.

use super::Scalar;

/// Solves with superdiagonal, diagonal and subdiagonal of length `n` each: the last of the first and the first of the last are
/// not read. A pivot of zero becomes `least`; `None` if that is zero too.
pub fn solve<T: Scalar>(
    diagonals: [&[T]; 3],
    b: &[T],
    cols: usize,
    is_pivoting: bool,
    least: f64,
) -> Option<Vec<T>> {
    let [upper, middle, lower] = diagonals;
    let n = middle.len();
    let mut x = b.to_vec();
    // Row i of U: diagonal, next, and (where rows were swapped) the one after.
    let mut rows = vec![[T::ZERO; 3]; n];
    if n == 0 {
        return Some(x);
    }
    rows[0] = [middle[0], if n > 1 { upper[0] } else { T::ZERO }, T::ZERO];
    let instead = |pivot: T| {
        if pivot == T::ZERO {
            T::of(least)
        } else {
            pivot
        }
    };
    for at in 0..n - 1 {
        let next_upper = if at + 2 < n { upper[at + 1] } else { T::ZERO };
        let mut below = [lower[at + 1], middle[at + 1], next_upper];
        if is_pivoting && below[0].norm() > rows[at][0].norm() {
            std::mem::swap(&mut rows[at], &mut below);
            for col in 0..cols {
                x.swap(at * cols + col, (at + 1) * cols + col);
            }
        }
        let pivot = instead(rows[at][0]);
        rows[at][0] = pivot;
        if pivot == T::ZERO {
            return None;
        }
        let factor = below[0] / pivot;
        rows[at + 1] = [
            below[1] - factor * rows[at][1],
            below[2] - factor * rows[at][2],
            T::ZERO,
        ];
        for col in 0..cols {
            x[(at + 1) * cols + col] = x[(at + 1) * cols + col] - factor * x[at * cols + col];
        }
    }
    for at in (0..n).rev() {
        let [pivot, next, after] = rows[at];
        let pivot = instead(pivot);
        if pivot == T::ZERO {
            return None;
        }
        for col in 0..cols {
            let mut value = x[at * cols + col];
            if at + 1 < n {
                value = value - next * x[(at + 1) * cols + col];
            }
            if at + 2 < n {
                value = value - after * x[(at + 2) * cols + col];
            }
            x[at * cols + col] = value / pivot;
        }
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps_rows_only_if_told() {
        // [[0, 1], [1, 0]]
        let diagonals = [&[1.0, 0.0][..], &[0.0, 0.0], &[0.0, 1.0]];
        let solved = solve(diagonals, &[3.0, 4.0], 1, true, 0.0);
        assert_eq!(solved, Some(vec![4.0, 3.0]));
        assert_eq!(solve(diagonals, &[3.0, 4.0], 1, false, 0.0), None);
    }
}
