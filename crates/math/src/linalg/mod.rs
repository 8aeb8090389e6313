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
mod grid;
pub mod hermitian;
pub mod lu;
pub mod qr;
mod reflection;
pub mod svd;
pub mod triangular;
pub mod tridiagonal;
mod turn;

use std::ops::{Add, Div, Mul, Neg, Sub};

use grid::LANES;

use crate::num::Complex128;
use crate::num::isa::{Isa, fma64};
use crate::par::poll_at;

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
    /// The square of the magnitude.
    fn square(self) -> f64;
    /// This and `a`·`b`, fused where that is cheap.
    fn plus_product<I: Isa>(self, a: Self, b: Self) -> Self;
    /// Adds `factor` · `row` to `sums`.
    fn add_scaled<I: Isa>(sums: &mut [Self; LANES], factor: Self, row: &[Self; LANES]);
    /// This times a real number.
    fn scaled(self, factor: f64) -> Self;
}

impl Scalar for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    #[inline(always)]
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

    #[inline(always)]
    fn square(self) -> f64 {
        self * self
    }

    #[inline(always)]
    fn plus_product<I: Isa>(self, a: f64, b: f64) -> f64 {
        fma64::<I>(a, b, self)
    }

    #[inline(always)]
    fn add_scaled<I: Isa>(sums: &mut [f64; LANES], factor: f64, row: &[f64; LANES]) {
        for lane in 0..LANES {
            sums[lane] = fma64::<I>(factor, row[lane], sums[lane]);
        }
    }

    #[inline(always)]
    fn scaled(self, factor: f64) -> f64 {
        self * factor
    }
}

impl Scalar for Complex128 {
    const ZERO: Complex128 = Complex128::new(0.0, 0.0);
    const ONE: Complex128 = Complex128::new(1.0, 0.0);

    #[inline(always)]
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

    #[inline(always)]
    fn square(self) -> f64 {
        self.norm_sqr()
    }

    #[inline(always)]
    fn plus_product<I: Isa>(self, a: Complex128, b: Complex128) -> Complex128 {
        let re = fma64::<I>(a.re, b.re, fma64::<I>(-a.im, b.im, self.re));
        let im = fma64::<I>(a.re, b.im, fma64::<I>(a.im, b.re, self.im));
        Complex128::new(re, im)
    }

    #[inline(always)]
    fn add_scaled<I: Isa>(
        sums: &mut [Complex128; LANES],
        factor: Complex128,
        row: &[Complex128; LANES],
    ) {
        // Parts as they lie: these loops become operations on whole vectors, those over pairs do not.
        const PARTS: usize = 2 * LANES;
        let (mut parts, mut others, mut found) = ([0.0; PARTS], [0.0; PARTS], [0.0; PARTS]);
        for lane in 0..LANES {
            (parts[2 * lane], parts[2 * lane + 1]) = (row[lane].re, row[lane].im);
            (others[2 * lane], others[2 * lane + 1]) = (row[lane].im, row[lane].re);
            (found[2 * lane], found[2 * lane + 1]) = (sums[lane].re, sums[lane].im);
        }
        for at in 0..PARTS {
            let turned = if at % 2 == 0 { -factor.im } else { factor.im };
            found[at] = fma64::<I>(turned, others[at], found[at]);
            found[at] = fma64::<I>(factor.re, parts[at], found[at]);
        }
        for lane in 0..LANES {
            sums[lane] = Complex128::new(found[2 * lane], found[2 * lane + 1]);
        }
    }

    #[inline(always)]
    fn scaled(self, factor: f64) -> Complex128 {
        self * factor
    }
}

/// The conjugate transpose of a `rows` × `cols` matrix.
pub fn adjoint<T: Scalar>(a: &[T], rows: usize, cols: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(a.len());
    for col in 0..cols {
        poll_at(col);
        out.extend((0..rows).map(|row| a[row * cols + col].conj()));
    }
    out
}

/// The product of a `rows` × `inner` and an `inner` × `cols` matrix.
pub fn product<T: Scalar>(a: &[T], b: &[T], rows: usize, inner: usize, cols: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; rows * cols];
    for row in 0..rows {
        poll_at(row);
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

/// The largest magnitude; one if there is none but zero, or it is not finite. Divided by it, squares neither overflow nor vanish.
fn scale<'a, T: Scalar>(values: impl Iterator<Item = &'a T>) -> f64 {
    let size = values.map(|x| x.norm()).fold(0.0, f64::max);
    match size > 0.0 && size.is_finite() {
        true => size,
        false => 1.0,
    }
}

/// The identity.
pub fn identity<T: Scalar>(n: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; n * n];
    for at in 0..n {
        out[at * n + at] = T::ONE;
    }
    out
}
