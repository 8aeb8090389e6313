//! Small dense linear algebra on row-major matrices: factorisations, solves, eigenvalues.
//!
//! Everything is carried in double precision, real or complex, whatever the tensors hold: these routines are for
//! matrices that fit the cache, where accuracy is worth more than width.
//!
//! | function | gives |
//! |---|---|
//! | [`lu::Lu::new`] | P·A = L·U with partial pivoting; solves, determinants |
//! | [`cholesky::cholesky`] | A = L·Lᴴ |
//! | [`triangular::solve`] | T·X = B |
//! | [`tridiagonal::solve`] | the same for three diagonals |
//! | [`hermitian::eigen`] | eigenvalues and vectors of A = Aᴴ |
//! | [`general::eigen`] | eigenvalues and vectors of any square matrix |
//! | [`qr::qr`] | A = Q·R |
//! | [`functions::square_root`], [`functions::logarithm`] | functions of a whole matrix |
//! | [`svd::svd`] | singular values and vectors |

pub mod cholesky;
pub mod functions;
pub mod general;
pub mod hermitian;
pub mod lu;
pub mod qr;
pub mod svd;
pub mod triangular;
pub mod tridiagonal;

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::num::Complex128;

/// `f64` or [`Complex128`].
pub trait Scalar:
    Copy
    + Send
    + Sync
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The conjugate.
    fn conj(self) -> Self;
    /// The magnitude.
    fn norm(self) -> f64;
    /// The real part.
    fn real(self) -> f64;
    /// A real number.
    fn of(value: f64) -> Self;
}

impl Scalar for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    fn conj(self) -> f64 {
        self
    }

    fn norm(self) -> f64 {
        self.abs()
    }

    fn real(self) -> f64 {
        self
    }

    fn of(value: f64) -> f64 {
        value
    }
}

impl Scalar for Complex128 {
    const ZERO: Complex128 = Complex128::new(0.0, 0.0);
    const ONE: Complex128 = Complex128::new(1.0, 0.0);

    fn conj(self) -> Complex128 {
        num_complex::Complex::conj(&self)
    }

    fn norm(self) -> f64 {
        num_complex::Complex::norm(self)
    }

    fn real(self) -> f64 {
        self.re
    }

    fn of(value: f64) -> Complex128 {
        Complex128::new(value, 0.0)
    }
}

/// The conjugate transpose of a `rows` × `cols` matrix.
pub fn adjoint<T: Scalar>(a: &[T], rows: usize, cols: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(a.len());
    for col in 0..cols {
        out.extend((0..rows).map(|row| a[row * cols + col].conj()));
    }
    out
}

/// The product of a `rows` × `inner` and an `inner` × `cols` matrix.
pub fn product<T: Scalar>(a: &[T], b: &[T], rows: usize, inner: usize, cols: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; rows * cols];
    for row in 0..rows {
        for k in 0..inner {
            let factor = a[row * inner + k];
            for col in 0..cols {
                let sum = out[row * cols + col] + factor * b[k * cols + col];
                out[row * cols + col] = sum;
            }
        }
    }
    out
}

/// The identity.
pub fn identity<T: Scalar>(n: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; n * n];
    for at in 0..n {
        out[at * n + at] = T::ONE;
    }
    out
}
