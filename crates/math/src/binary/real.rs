//! [`Binary`] for the float types.

use half::{bf16, f16};

use super::{Binary, BinaryElement, Side, remainder};
use crate::broadcast::BLOCK;
use crate::num::convert::{HalfOrSingle, half2};
use crate::num::isa::{Isa, Kernel2, Map2, Over2, Swapped, kernel2, kernel2_over, scalar2};
use crate::num::{Real, lanes};
use crate::unary::{SELU_ALPHA, SELU_SCALE, Unary, UnaryElement};

/// Declares lane types and the two tables. Each line: op, arguments, then as in the table of unary ops. A single
/// expression serves both types where it can.
macro_rules! table {
    ($($op:ident |$x:ident, $y:ident| $make32:ident $f32:expr, $make64:ident $f64:expr;)*) => {
        $(
            struct $op;
            impl Map2<f32> for $op {
                #[inline(always)]
                fn eval<I: Isa>($x: f32, $y: f32) -> f32 { $f32 }
            }
            impl Map2<f64> for $op {
                #[inline(always)]
                fn eval<I: Isa>($x: f64, $y: f64) -> f64 { $f64 }
            }
        )*

        fn table_f32(op: Binary) -> Option<Kernel2<f32>> {
            match op {
                $(Binary::$op => Some($make32::<f32, f32, $op>()),)*
                _ => None,
            }
        }

        fn table_f64(op: Binary) -> Option<Kernel2<f64>> {
            match op {
                $(Binary::$op => Some($make64::<f64, f64, $op>()),)*
                _ => None,
            }
        }

        fn has(op: Binary) -> bool {
            matches!(op, $(Binary::$op)|*)
        }
    };
}

table! {
    Add |x, y| kernel2 x + y, kernel2 x + y;
    Atan2 |x, y| kernel2 lanes::atan2::<I>(x, y), scalar2 x.atan2(y);
    Div |x, y| kernel2 x / y, kernel2 x / y;
    DivNoNan |x, y| kernel2 if y == 0.0 { 0.0 } else { x / y }, kernel2 if y == 0.0 { 0.0 } else { x / y };
    EluGrad |dy, y| kernel2 if y < 0.0 { (y + 1.0) * dy } else { dy }, kernel2 if y < 0.0 { (y + 1.0) * dy } else { dy };
    FloorDiv |x, y| kernel2 (x / y).floor(), kernel2 (x / y).floor();
    FloorMod |x, y| scalar2 floor_mod(x % y, y), scalar2 floor_mod(x % y, y);
    Maximum |x, y| kernel2 x.larger(y), kernel2 x.larger(y);
    Minimum |x, y| kernel2 x.smaller(y), kernel2 x.smaller(y);
    Mul |x, y| kernel2 x * y, kernel2 x * y;
    MulNoNan |x, y| kernel2 if y == 0.0 { 0.0 } else { x * y }, kernel2 if y == 0.0 { 0.0 } else { x * y };
    Pow |x, y| kernel2 lanes::pow::<I>(x, y), scalar2 x.powf(y);
    ReciprocalGrad |y, dy| kernel2 -dy * y * y, kernel2 -dy * y * y;
    // A product, not a select: TensorFlow lets a NaN or infinite gradient through as NaN.
    Relu6Grad |dy, x| kernel2 dy * if x > 0.0 && x < 6.0 { 1.0 } else { 0.0 },
        kernel2 dy * if x > 0.0 && x < 6.0 { 1.0 } else { 0.0 };
    ReluGrad |dy, x| kernel2 dy * if x > 0.0 { 1.0 } else { 0.0 }, kernel2 dy * if x > 0.0 { 1.0 } else { 0.0 };
    RsqrtGrad |y, dy| kernel2 -0.5 * dy * (y * y * y), kernel2 -0.5 * dy * (y * y * y);
    SeluGrad |dy, y| kernel2 if y < 0.0 { dy * (y + (SELU_SCALE * SELU_ALPHA) as f32) } else { dy * SELU_SCALE as f32 },
        kernel2 if y < 0.0 { dy * (y + SELU_SCALE * SELU_ALPHA) } else { dy * SELU_SCALE };
    SigmoidGrad |y, dy| kernel2 dy * y * (1.0 - y), kernel2 dy * y * (1.0 - y);
    SoftplusGrad |dy, x| kernel2 dy / (lanes::exp::<I>(-x) + 1.0), scalar2 dy / ((-x).exp() + 1.0);
    SoftsignGrad |dy, x| kernel2 softsign_grad(dy, 1.0 + x.abs()), kernel2 softsign_grad(dy, 1.0 + x.abs());
    SqrtGrad |y, dy| kernel2 0.5 * dy / y, kernel2 0.5 * dy / y;
    SquaredDifference |x, y| kernel2 (x - y) * (x - y), kernel2 (x - y) * (x - y);
    Sub |x, y| kernel2 x - y, kernel2 x - y;
    TanhGrad |y, dy| kernel2 dy * (1.0 - y * y), kernel2 dy * (1.0 - y * y);
    TruncateDiv |x, y| kernel2 (x / y).trunc(), kernel2 (x / y).trunc();
    TruncateMod |x, y| scalar2 x % y, scalar2 x % y;
    Xdivy |x, y| kernel2 if x == 0.0 { 0.0 } else { x / y }, kernel2 if x == 0.0 { 0.0 } else { x / y };
    Xlog1py |x, y| kernel2 zero_or(x, x * lanes::log1p::<I>(y)), scalar2 zero_or(x, x * y.ln_1p());
    Xlogy |x, y| kernel2 zero_or(x, x * lanes::log::<I>(y)), scalar2 zero_or(x, x * y.ln());
}

/// The loop of a function: in vectors also where the table's is none.
fn loop_f32(op: Binary) -> Option<Kernel2<f32>> {
    match op {
        Binary::FloorMod => Some(remainder::of_floats(true)),
        Binary::TruncateMod => Some(remainder::of_floats(false)),
        _ => table_f32(op),
    }
}

/// `value`, but 0 where `x` is.
#[inline(always)]
fn zero_or<T: Real>(x: T, value: T) -> T {
    if x == T::ZERO { T::ZERO } else { value }
}

/// Gives the truncated remainder the divisor's sign.
#[inline(always)]
fn floor_mod<T: Real>(rest: T, y: T) -> T {
    if rest != T::ZERO && (rest < T::ZERO) != (y < T::ZERO) {
        rest.add(y)
    } else {
        rest
    }
}

#[inline(always)]
fn softsign_grad<T: Real>(dy: T, scale: T) -> T {
    dy.div(scale.mul(scale))
}

impl BinaryElement for f32 {
    fn supports(op: Binary) -> bool {
        has(op)
    }

    fn run(op: Binary, x: &[Self], y: &[Self], out: &mut [Self]) {
        if let Some(kernel) = loop_f32(op) {
            kernel(x, y, out);
        }
    }

    fn over(op: Binary, side: Side) -> Option<Over2<f32>> {
        table_over(op, side)
    }
}

impl BinaryElement for f64 {
    fn supports(op: Binary) -> bool {
        has(op)
    }

    fn run(op: Binary, x: &[Self], y: &[Self], out: &mut [Self]) {
        if let Some(kernel) = table_f64(op) {
            kernel(x, y, out);
        }
    }
}

/// Loops that write over an input, for the functions that take no longer than the copy that others need. Not for those that may
/// keep the old value: the compiler then stores only where it changes, one element at a time.
fn table_over(op: Binary, side: Side) -> Option<Over2<f32>> {
    fn over<M: Map2<f32>>(side: Side) -> Option<Over2<f32>> {
        Some(match side {
            Side::Left => kernel2_over::<f32, M>(),
            Side::Right => kernel2_over::<f32, Swapped<M>>(),
        })
    }
    match op {
        Binary::Add => over::<Add>(side),
        Binary::Div => over::<Div>(side),
        Binary::Mul => over::<Mul>(side),
        Binary::ReluGrad => over::<ReluGrad>(side),
        Binary::SquaredDifference => over::<SquaredDifference>(side),
        Binary::Sub => over::<Sub>(side),
        _ => None,
    }
}

macro_rules! half {
    ($($t:ident $table:ident),*) => {$(
        impl BinaryElement for $t {
            fn supports(op: Binary) -> bool {
                has(op)
            }

            fn run(op: Binary, x: &[Self], y: &[Self], out: &mut [Self]) {
                if let Some(log) = log_of(op) {
                    times_log(log, x, y, out);
                } else if let Some(kernel) = $table(op) {
                    kernel(x, y, out);
                } else if let Some(kernel) = loop_f32(op) {
                    through_f32(x, y, out, kernel);
                }
            }
        }
    )*};
}

half!(f16 table_f16, bf16 none);

fn none<T>(_: Binary) -> Option<Kernel2<T>> {
    None
}

/// The logarithm that halves are multiplied by.
fn log_of(op: Binary) -> Option<Unary> {
    match op {
        Binary::Xlogy => Some(Unary::Log),
        Binary::Xlog1py => Some(Unary::Log1p),
        _ => None,
    }
}

/// `x · log(y)` with the logarithm rounded to a half before it is multiplied: TensorFlow's value, and that of the two ops.
fn times_log<T: UnaryElement + BinaryElement>(log: Unary, x: &[T], y: &[T], out: &mut [T]) {
    let mut logs = [T::default(); BLOCK];
    for ((x, y), out) in x
        .chunks(BLOCK)
        .zip(y.chunks(BLOCK))
        .zip(out.chunks_mut(BLOCK))
    {
        let logs = &mut logs[..y.len()];
        UnaryElement::run(log, y, logs);
        BinaryElement::run(Binary::MulNoNan, logs, x, out);
    }
}

/// Loops that widen and round within registers, for the functions that take no longer than that.
fn table_f16(op: Binary) -> Option<Kernel2<f16>> {
    match op {
        Binary::Add => half2::<Add>(),
        Binary::Div => half2::<Div>(),
        Binary::Maximum => half2::<Maximum>(),
        Binary::Minimum => half2::<Minimum>(),
        Binary::Mul => half2::<Mul>(),
        Binary::ReluGrad => half2::<ReluGrad>(),
        Binary::SquaredDifference => half2::<SquaredDifference>(),
        Binary::Sub => half2::<Sub>(),
        _ => None,
    }
}

/// Runs an `f32` loop on halves, block by block.
fn through_f32<T: HalfOrSingle>(x: &[T], y: &[T], out: &mut [T], kernel: Kernel2<f32>) {
    let (mut wide_x, mut wide_y, mut result) = ([0f32; BLOCK], [0f32; BLOCK], [0f32; BLOCK]);
    for ((x, y), out) in x
        .chunks(BLOCK)
        .zip(y.chunks(BLOCK))
        .zip(out.chunks_mut(BLOCK))
    {
        let n = x.len();
        T::widen(x, &mut wide_x[..n]);
        T::widen(y, &mut wide_y[..n]);
        kernel(&wide_x[..n], &wide_y[..n], &mut result[..n]);
        T::narrow(&result[..n], out);
    }
}
