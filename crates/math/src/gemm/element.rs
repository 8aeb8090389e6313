//! The types products are made of.

use half::{bf16, f16};
use num_complex::Complex;

use super::{Job, bfloat, complex, driver, integer, widened};
use crate::par::Par;

/// A number that can be multiplied in matrices.
pub trait Element: Copy + PartialEq + Send + Sync + 'static {
    /// The neutral element of addition.
    const ZERO: Self;
    /// The neutral element of multiplication.
    const ONE: Self;

    /// The sum; integers wrap.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// The product; integers wrap.
    #[must_use]
    fn times(self, other: Self) -> Self;

    /// The maximum with zero, NaN kept; complex numbers, which have no order, are returned as they are.
    #[must_use]
    fn relu(self) -> Self;

    /// Runs one product whose sizes have been checked.
    #[doc(hidden)]
    fn run(par: &dyn Par, job: Job<'_, Self>);
}

macro_rules! element {
    ($($t:ty: $zero:expr, $one:expr, $plus:expr, $times:expr, $relu:expr, $run:path;)*) => {$(
        impl Element for $t {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            #[inline]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                $times(self, other)
            }

            #[inline]
            fn relu(self) -> Self {
                $relu(self)
            }

            fn run(par: &dyn Par, job: Job<'_, Self>) {
                $run(par, job);
            }
        }
    )*};
}

macro_rules! integers {
    ($($t:ty),*) => {element! {$(
        $t: 0, 1, <$t>::wrapping_add, <$t>::wrapping_mul, |x: $t| x.max(0), integer::run;
    )*}};
}

element! {
    f32: 0.0, 1.0, |x, y| x + y, |x, y| x * y, |x| if x < 0.0 { 0.0 } else { x }, driver::run;
    f64: 0.0, 1.0, |x, y| x + y, |x, y| x * y, |x| if x < 0.0 { 0.0 } else { x }, driver::run;
    f16: f16::ZERO, f16::ONE, |x, y| x + y, |x, y| x * y, |x| if x < f16::ZERO { f16::ZERO } else { x }, widened::run;
    bf16: bf16::ZERO, bf16::ONE, |x, y| x + y, |x, y| x * y, |x| if x < bf16::ZERO { bf16::ZERO } else { x }, bfloat::run;
    Complex<f32>: Complex::new(0.0, 0.0), Complex::new(1.0, 0.0), |x, y| x + y, |x, y| x * y, |x| x, complex::run;
    Complex<f64>: Complex::new(0.0, 0.0), Complex::new(1.0, 0.0), |x, y| x + y, |x, y| x * y, |x| x, complex::run;
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);
