//! [`Unary`] for the float types.

use half::{bf16, f16};

use super::{Unary, UnaryElement};
use crate::broadcast::BLOCK;
use crate::num::convert::HalfOrSingle;
use crate::num::isa::{Isa, Kernel1, Map1, kernel1, scalar1};
#[cfg(target_arch = "x86_64")]
use crate::num::isa::{Level, level};
use crate::num::lanes::{self, is_huge};
use crate::num::{Real, special};

/// The constants of the self-normalising activation.
pub(crate) const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
pub(crate) const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;

/// Declares lane types and the two tables. Each line: op, what `f32` uses and the lane, what `f64` uses and the lane;
/// `kernel1` compiles for each instruction set, `scalar1` once. After `if`: the `f32` values that the fast lane is not good
/// for, and the slow lane for them.
macro_rules! table {
    ($($op:ident |$x:ident| $make32:ident $f32:expr, $make64:ident $f64:expr $(, if $hard:expr => $slow:expr)?;)*) => {
        $(
            struct $op;
            impl Map1<f32> for $op {
                #[inline(always)]
                fn eval<I: Isa>($x: f32) -> f32 { $f32 }
                $(
                    const HAS_HARD: bool = true;
                    #[inline(always)]
                    fn is_hard($x: f32) -> bool { $hard }
                    #[inline(always)]
                    fn slow<I: Isa>($x: f32) -> f32 { $slow }
                )?
            }
            impl Map1<f64> for $op {
                #[inline(always)]
                fn eval<I: Isa>($x: f64) -> f64 { $f64 }
            }
        )*

        fn table_f32(op: Unary) -> Option<Kernel1<f32>> {
            match op {
                $(Unary::$op => Some($make32::<f32, f32, $op>()),)*
                _ => None,
            }
        }

        fn table_f64(op: Unary) -> Option<Kernel1<f64>> {
            match op {
                $(Unary::$op => Some($make64::<f64, f64, $op>()),)*
                _ => None,
            }
        }

        fn has(op: Unary) -> bool {
            matches!(op, $(Unary::$op)|*)
        }
    };
}

table! {
    Abs |x| kernel1 x.abs(), kernel1 x.abs();
    Acos |x| kernel1 lanes::acos::<I>(x), scalar1 x.acos();
    Acosh |x| kernel1 lanes::acosh::<I>(x), scalar1 x.acosh();
    Asin |x| kernel1 lanes::asin::<I>(x), scalar1 x.asin();
    Asinh |x| kernel1 lanes::asinh::<I>(x), scalar1 x.asinh();
    Atan |x| kernel1 lanes::atan::<I>(x), scalar1 x.atan();
    Atanh |x| kernel1 lanes::atanh::<I>(x), scalar1 x.atanh();
    Ceil |x| kernel1 x.ceil(), kernel1 x.ceil();
    Cos |x| kernel1 lanes::cos::<I>(x), scalar1 x.cos(),
        if is_huge(x) => x.cos();
    Cosh |x| kernel1 lanes::cosh::<I>(x), scalar1 x.cosh();
    Digamma |x| scalar1 special::digamma_single(x), scalar1 special::digamma(x);
    Elu |x| kernel1 elu::<I>(x), scalar1 if x < 0.0 { x.exp_m1() } else { x };
    Erf |x| kernel1 lanes::erf::<I>(x), scalar1 erf(x);
    Erfc |x| kernel1 lanes::erfc::<I>(x), scalar1 special::erfc(x);
    Erfinv |x| kernel1 lanes::erfinv::<I>(x), scalar1 special::erfinv(x),
        if lanes::is_far((1.0 - x) * (1.0 + x)) => special::erfinv(f64::from(x)) as f32;
    Exp |x| kernel1 lanes::exp::<I>(x), kernel1 lanes::exp64::<I>(x);
    Expm1 |x| kernel1 lanes::expm1::<I>(x), scalar1 x.exp_m1();
    Floor |x| kernel1 x.floor(), kernel1 x.floor();
    Lgamma |x| scalar1 special::lgamma_single(x), scalar1 special::lgamma(x);
    Log |x| kernel1 lanes::log_normal::<I>(x), kernel1 lanes::log64::<I>(x),
        if !lanes::is_normal(x) => lanes::log::<I>(x);
    Log1p |x| kernel1 lanes::log1p::<I>(x), scalar1 x.ln_1p();
    Ndtri |x| kernel1 lanes::ndtri::<I>(x), scalar1 special::ndtri(x),
        if lanes::is_far(4.0 * x * (1.0 - x)) => special::ndtri(f64::from(x)) as f32;
    Neg |x| kernel1 -x, kernel1 -x;
    Reciprocal |x| kernel1 1.0 / x, kernel1 1.0 / x;
    Relu |x| kernel1 if x <= 0.0 { 0.0 } else { x }, kernel1 if x <= 0.0 { 0.0 } else { x };
    Relu6 |x| kernel1 x.clamp(0.0, 6.0),
        kernel1 x.clamp(0.0, 6.0);
    Round |x| kernel1 x.round_ties_even(), kernel1 x.round_ties_even();
    Rsqrt |x| kernel1 1.0 / x.sqrt(), kernel1 1.0 / x.sqrt();
    Selu |x| kernel1 selu::<I>(x), scalar1 SELU_SCALE * if x < 0.0 { SELU_ALPHA * x.exp_m1() } else { x };
    Sigmoid |x| kernel1 lanes::sigmoid::<I>(x), kernel1 lanes::sigmoid64::<I>(x);
    Sign |x| kernel1 if x == 0.0 { 0.0 } else if x.is_nan() { x } else { 1f32.copysign(x) },
        kernel1 if x == 0.0 { 0.0 } else if x.is_nan() { x } else { 1f64.copysign(x) };
    Sin |x| kernel1 lanes::sin::<I>(x), scalar1 x.sin(),
        if is_huge(x) => x.sin();
    Sinh |x| kernel1 lanes::sinh::<I>(x), scalar1 x.sinh();
    Softplus |x| kernel1 lanes::softplus::<I>(x), scalar1 x.larger(0.0) + (-x.abs()).exp().ln_1p();
    Softsign |x| kernel1 x / (1.0 + x.abs()), kernel1 x / (1.0 + x.abs());
    Sqrt |x| kernel1 x.sqrt(), kernel1 x.sqrt();
    Square |x| kernel1 x * x, kernel1 x * x;
    Tan |x| kernel1 lanes::tan::<I>(x), scalar1 x.tan(),
        if is_huge(x) => x.tan();
    Tanh |x| kernel1 lanes::tanh::<I>(x), kernel1 lanes::tanh64::<I>(x);
}

/// Of infinities TensorFlow's is NaN, in double precision only.
fn erf(x: f64) -> f64 {
    if x.is_infinite() {
        return f64::NAN;
    }
    special::erf(x)
}

#[inline(always)]
fn elu<I: Isa>(x: f32) -> f32 {
    let negative = lanes::expm1::<I>(x);
    if x < 0.0 { negative } else { x }
}

#[inline(always)]
fn selu<I: Isa>(x: f32) -> f32 {
    let negative = (SELU_SCALE * SELU_ALPHA) as f32 * lanes::expm1::<I>(x);
    if x < 0.0 {
        negative
    } else {
        SELU_SCALE as f32 * x
    }
}

impl UnaryElement for f32 {
    fn supports(op: Unary) -> bool {
        has(op)
    }

    fn run(op: Unary, x: &[Self], out: &mut [Self]) {
        if let Some(kernel) = kernel_f32(op) {
            kernel(x, out);
        }
    }
}

/// The loop for `op`: one written for the machine if there is, else that of the table.
fn kernel_f32(op: Unary) -> Option<Kernel1<f32>> {
    #[cfg(target_arch = "x86_64")]
    if op == Unary::Rsqrt && level() >= Level::Avx2 {
        // SAFETY: the level says that this machine has the features.
        return Some(|x, out| unsafe { super::rsqrt::avx2(x, out) });
    }
    table_f32(op)
}

impl UnaryElement for f64 {
    fn supports(op: Unary) -> bool {
        has(op)
    }

    fn run(op: Unary, x: &[Self], out: &mut [Self]) {
        if let Some(kernel) = table_f64(op) {
            kernel(x, out);
        }
    }
}

macro_rules! half {
    ($($t:ty),*) => {$(
        impl UnaryElement for $t {
            fn supports(op: Unary) -> bool {
                has(op)
            }

            fn run(op: Unary, x: &[Self], out: &mut [Self]) {
                if let Some(kernel) = kernel_f32(op) {
                    through_f32(x, out, kernel);
                }
            }
        }
    )*};
}

half!(f16, bf16);

/// Runs an `f32` loop on halves, block by block.
pub(crate) fn through_f32<T: HalfOrSingle>(x: &[T], out: &mut [T], kernel: Kernel1<f32>) {
    let (mut wide, mut result) = ([0f32; BLOCK], [0f32; BLOCK]);
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let n = x.len();
        T::widen(x, &mut wide[..n]);
        kernel(&wide[..n], &mut result[..n]);
        T::narrow(&result[..n], out);
    }
}
