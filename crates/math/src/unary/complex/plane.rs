//! Functions of complex numbers that stay right where the textbook formulas overflow, cancel or miss a branch cut.
//!
//! A zero imaginary part is kept apart: infinity times zero would be NaN. The inverse functions are Kahan's, whose signs of
//! zero say on which side of a cut a number lies.

use num_complex::Complex;

macro_rules! plane {
    ($t:ident) => {
        pub(super) mod $t {
            use super::Complex;

            type C = Complex<$t>;

            pub(crate) fn exp(z: C) -> C {
                let size = z.re.exp();
                if z.im == 0.0 {
                    return C::new(size, z.im);
                }
                C::new(size * z.im.cos(), size * z.im.sin())
            }

            pub(crate) fn expm1(z: C) -> C {
                if z.im == 0.0 {
                    return C::new(z.re.exp_m1(), z.im);
                }
                let half = (0.5 * z.im).sin();
                C::new(
                    z.re.exp_m1() * z.im.cos() - 2.0 * half * half,
                    z.re.exp() * z.im.sin(),
                )
            }

            pub(crate) fn sinh(z: C) -> C {
                if z.im == 0.0 {
                    return C::new(z.re.sinh(), z.im);
                }
                C::new(z.re.sinh() * z.im.cos(), z.re.cosh() * z.im.sin())
            }

            pub(crate) fn cosh(z: C) -> C {
                if z.im == 0.0 {
                    return C::new(z.re.cosh(), z.im * (1.0 as $t).copysign(z.re));
                }
                C::new(z.re.cosh() * z.im.cos(), z.re.sinh() * z.im.sin())
            }

            pub(crate) fn tanh(z: C) -> C {
                if z.im == 0.0 {
                    return C::new(z.re.tanh(), z.im);
                }
                if z.re.abs() > 20.0 {
                    let tail = 4.0 * z.im.sin() * z.im.cos() * (-2.0 * z.re.abs()).exp();
                    return C::new((1.0 as $t).copysign(z.re), tail);
                }
                let (slope, size) = (z.im.tan(), z.re.sinh());
                let stretch = 1.0 + slope * slope;
                let below = 1.0 + stretch * size * size;
                let root = (1.0 + size * size).sqrt();
                C::new(stretch * root * size / below, slope / below)
            }

            pub(crate) fn sin(z: C) -> C {
                if z.im == 0.0 {
                    return C::new(z.re.sin(), z.im);
                }
                turned_back(sinh(turned(z)))
            }

            pub(crate) fn cos(z: C) -> C {
                if z.im == 0.0 {
                    return C::new(z.re.cos(), z.im);
                }
                cosh(turned(z))
            }

            pub(crate) fn tan(z: C) -> C {
                turned_back(tanh(turned(z)))
            }

            pub(crate) fn sigmoid(z: C) -> C {
                if z.re >= 0.0 {
                    return (exp(-z) + 1.0).inv();
                }
                let small = exp(z);
                small / (small + 1.0)
            }

            pub(crate) fn asin(z: C) -> C {
                let (less, more) = roots(z);
                C::new(
                    z.re.atan2((less * more).re),
                    (less.conj() * more).im.asinh(),
                )
            }

            pub(crate) fn acos(z: C) -> C {
                let (less, more) = roots(z);
                C::new(
                    2.0 * less.re.atan2(more.re),
                    (more.conj() * less).im.asinh(),
                )
            }

            pub(crate) fn acosh(z: C) -> C {
                let less = C::new(z.re - 1.0, z.im).sqrt();
                let more = C::new(z.re + 1.0, z.im).sqrt();
                C::new(
                    (less.conj() * more).re.asinh(),
                    2.0 * less.im.atan2(more.re),
                )
            }

            /// The roots of 1 - z and 1 + z, with the imaginary part's sign kept where it is zero.
            fn roots(z: C) -> (C, C) {
                let less = C::new(1.0 - z.re, -z.im).sqrt();
                (less, C::new(1.0 + z.re, z.im).sqrt())
            }

            /// `i z`.
            fn turned(z: C) -> C {
                C::new(-z.im, z.re)
            }

            /// `-i z`.
            fn turned_back(z: C) -> C {
                C::new(z.im, -z.re)
            }
        }
    };
}

plane!(f32);
plane!(f64);

#[cfg(test)]
mod tests {
    use super::Complex;
    use super::f64::{acos, asin, cos, expm1, sigmoid, sin, tanh};

    fn near(got: Complex<f64>, want: (f64, f64)) {
        let want = Complex::new(want.0, want.1);
        assert!((got - want).norm() < 1e-14, "{got} instead of {want}");
    }

    #[test]
    fn branch_cuts_follow_the_sign_of_zero() {
        let side = 0.962_423_650_119_206_9;
        let quarter = std::f64::consts::FRAC_PI_2;
        near(asin(Complex::new(1.5, 0.0)), (quarter, side));
        near(asin(Complex::new(1.5, -0.0)), (quarter, -side));
        near(acos(Complex::new(1.5, 0.0)), (0.0, -side));
    }

    #[test]
    fn large_and_small_arguments_stay_finite_and_exact() {
        near(tanh(Complex::new(800.0, 0.5)), (1.0, 0.0));
        near(sigmoid(Complex::new(-800.0, 0.5)), (0.0, 0.0));
        let tiny = expm1(Complex::new(1e-20, 1e-20));
        assert_eq!((tiny.re, tiny.im), (1e-20, 1e-20));
    }

    #[test]
    fn squares_of_sine_and_cosine_add_up_to_one() {
        for z in [Complex::new(0.25, 0.5), Complex::new(-1.5, -0.25)] {
            near(sin(z) * sin(z) + cos(z) * cos(z), (1.0, 0.0));
        }
    }
}
