//! Cholesky factorisation.

use super::Scalar;

/// The lower triangle L of A = L·Lᴴ, from the lower triangle of A; `None` if A is not positive definite.
pub fn cholesky<T: Scalar>(a: &[T], n: usize) -> Option<Vec<T>> {
    let mut l = vec![T::ZERO; n * n];
    for row in 0..n {
        for col in 0..=row {
            let mut sum = a[row * n + col];
            for k in 0..col {
                sum = sum - l[row * n + k] * l[col * n + k].conj();
            }
            if row == col {
                let square = sum.real();
                if square.is_nan() || square <= 0.0 {
                    return None;
                }
                l[row * n + row] = T::of(square.sqrt());
            } else {
                l[row * n + col] = sum / l[col * n + col];
            }
        }
    }
    Some(l)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factorises_only_what_is_positive_definite() {
        assert_eq!(
            cholesky(&[4.0, 9.0, 2.0, 5.0], 2),
            Some(vec![2.0, 0.0, 1.0, 2.0])
        );
        assert_eq!(cholesky(&[1.0, 0.0, 2.0, 1.0], 2), None);
    }
}
