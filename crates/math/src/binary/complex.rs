//! [`Binary`] for complex numbers.
//!
//! The root and reciprocal gradients take the conjugate of `y`, the others do not: so do TensorFlow's kernels.

use num_complex::Complex;

use super::{Binary, BinaryElement, Side};
use crate::num::isa::{Isa, Kernel2, Map2, Over2, Swapped, kernel2, kernel2_over, scalar2};

macro_rules! tables {
    ($t:ident: $($op:ident |$x:ident, $y:ident| $make:ident $eval:expr;)*) => {
        const _: () = {
            /// x / y, also where the square of y is too small or too large for a number of this kind.
            fn quotient(x: Complex<$t>, y: Complex<$t>) -> Complex<$t> {
                let small = $t::MIN_POSITIVE.sqrt();
                let size = y.re.abs().max(y.im.abs());
                if (small..small.recip()).contains(&y.norm_sqr()) || size == 0.0 || !size.is_finite() {
                    return x / y;
                }
                // Powers of two change no digits. Half of one at a time, as the whole may be too large itself.
                let half = (-0.5 * size.log2()).floor().exp2();
                x * half / (y * half * half) * half
            }

            $(
                struct $op;
                impl Map2<Complex<$t>> for $op {
                    #[inline(always)]
                    fn eval<I: Isa>($x: Complex<$t>, $y: Complex<$t>) -> Complex<$t> { $eval }
                }
            )*

            fn table(op: Binary) -> Option<Kernel2<Complex<$t>>> {
                match op {
                    $(Binary::$op => Some($make::<_, _, $op>()),)*
                    _ => None,
                }
            }

            impl BinaryElement for Complex<$t> {
                fn supports(op: Binary) -> bool {
                    table(op).is_some()
                }

                fn run(op: Binary, x: &[Self], y: &[Self], out: &mut [Self]) {
                    if let Some(kernel) = table(op) {
                        kernel(x, y, out);
                    }
                }

                fn over(op: Binary, side: Side) -> Option<Over2<Self>> {
                    fn of<M: Map2<Complex<$t>>>(side: Side) -> Option<Over2<Complex<$t>>> {
                        Some(match side {
                            Side::Left => kernel2_over::<_, M>(),
                            Side::Right => kernel2_over::<_, Swapped<M>>(),
                        })
                    }
                    // All that take no longer than the copy that others need.
                    match op {
                        Binary::Add => of::<Add>(side),
                        Binary::Mul => of::<Mul>(side),
                        Binary::Sub => of::<Sub>(side),
                        _ => None,
                    }
                }
            }
        };
    };
}

macro_rules! complex {
    ($($t:ident),*) => {$(
        tables! { $t:
            Add |x, y| kernel2 x + y;
            Div |x, y| scalar2 quotient(x, y);
            DivNoNan |x, y| scalar2 if y == Complex::ZERO { Complex::ZERO } else { quotient(x, y) };
            Mul |x, y| kernel2 x * y;
            MulNoNan |x, y| scalar2 if y == Complex::ZERO { Complex::ZERO } else { x * y };
            Pow |x, y| scalar2 if y == Complex::ZERO { Complex::ONE } else { x.powc(y) };
            ReciprocalGrad |y, dy| scalar2 -dy * y.conj() * y.conj();
            RsqrtGrad |y, dy| scalar2 dy * y.conj() * y.conj() * y.conj() * -0.5;
            SigmoidGrad |y, dy| scalar2 dy * y * (<Complex<$t>>::ONE - y);
            SqrtGrad |y, dy| scalar2 dy * 0.5 / y.conj();
            SquaredDifference |x, y| scalar2 (x - y) * (x - y).conj();
            Sub |x, y| kernel2 x - y;
            TanhGrad |y, dy| scalar2 dy * (<Complex<$t>>::ONE - y * y);
            Xdivy |x, y| scalar2 if x == Complex::ZERO { Complex::ZERO } else { quotient(x, y) };
            Xlog1py |x, y| scalar2 if x == Complex::ZERO { Complex::ZERO } else { x * (y + 1.0).ln() };
            Xlogy |x, y| scalar2 if x == Complex::ZERO { Complex::ZERO } else { x * y.ln() };
        }
    )*};
}

complex!(f32, f64);
