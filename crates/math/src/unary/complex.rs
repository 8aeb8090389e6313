//! [`Unary`] for complex numbers.

mod plane;

use num_complex::Complex;

use super::{Unary, UnaryElement};
use crate::num::isa::{Isa, Kernel1, Map1, kernel1, scalar1};

macro_rules! table {
    ($t:ty, $table:ident: $($op:ident |$x:ident| $make:ident $eval:expr;)*) => {
        const _: () = {
            $(
                struct $op;
                impl Map1<Complex<$t>> for $op {
                    #[inline(always)]
                    fn eval<I: Isa>($x: Complex<$t>) -> Complex<$t> { $eval }
                }
            )*

            fn table(op: Unary) -> Option<Kernel1<Complex<$t>>> {
                match op {
                    $(Unary::$op => Some($make::<_, _, $op>()),)*
                    _ => None,
                }
            }

            impl UnaryElement for Complex<$t> {
                fn supports(op: Unary) -> bool {
                    table(op).is_some()
                }

                fn run(op: Unary, x: &[Self], out: &mut [Self]) {
                    if let Some(kernel) = table(op) {
                        kernel(x, out);
                    }
                }
            }
        };
    };
}

macro_rules! tables {
    ($($t:ident),*) => {$(
        table! { $t, table:
            Acos |x| scalar1 plane::$t::acos(x);
            Acosh |x| scalar1 plane::$t::acosh(x);
            Asin |x| scalar1 plane::$t::asin(x);
            Asinh |x| scalar1 x.asinh();
            Atan |x| scalar1 x.atan();
            Atanh |x| scalar1 x.atanh();
            Conj |x| kernel1 x.conj();
            Cos |x| scalar1 plane::$t::cos(x);
            Cosh |x| scalar1 plane::$t::cosh(x);
            Exp |x| scalar1 plane::$t::exp(x);
            Expm1 |x| scalar1 plane::$t::expm1(x);
            Log |x| scalar1 x.ln();
            Log1p |x| scalar1 (x + 1.0).ln();
            Neg |x| kernel1 -x;
            Reciprocal |x| kernel1 x.conj() / x.norm_sqr();
            Rsqrt |x| scalar1 x.sqrt().inv();
            Sigmoid |x| scalar1 plane::$t::sigmoid(x);
            Sign |x| scalar1 if x.re == 0.0 && x.im == 0.0 { x - x } else { x / x.norm() };
            Sin |x| scalar1 plane::$t::sin(x);
            Sinh |x| scalar1 plane::$t::sinh(x);
            Sqrt |x| scalar1 x.sqrt();
            Square |x| kernel1 x * x;
            Tan |x| scalar1 plane::$t::tan(x);
            Tanh |x| scalar1 plane::$t::tanh(x);
        }
    )*};
}

tables!(f32, f64);
