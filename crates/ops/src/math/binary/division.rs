//! Quotients and remainders.
//!
//! TensorFlow: Op(x: T, y: T) -> z: T, broadcasting. An integer divided by zero is InvalidArgument, but Internal for the
//! truncating ops, as in TensorFlow; the smallest integer divided by -1 is itself.

use tensorfleet_graph::example::{ex, ex_err, f32s, i32s, of, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_math::binary::Binary;
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::DType;

use super::{BINARY, NUMBER};
use crate::math::calculus::Calculus;
use crate::math::elementwise::binary;
use crate::math::unary::complex;
use crate::types::{FLOATS_AND_COMPLEX, NUMBERS, REAL_NUMBERS};

const STEPS: Gradient = Gradient::Stop("the derivative is zero almost everywhere");
const MOD_TYPES: &[DType] = &[DType::I32, DType::I64, DType::F32, DType::F64];
const DIVIDENDS: &[f64] = &[7.0, -7.0, 7.0, -7.0];
const DIVISORS: &[f64] = &[2.0, 2.0, -2.0, -2.0];

pub(crate) static OPS: [OpDef; 8] = [
    OpDef {
        name: "Div",
        attrs: NUMBER,
        gradient: Gradient::Rule(|g| quotient_grad(g, "RealDiv")),
        kernels: &[cpu(&[("T", NUMBERS)], |node| binary(node, Binary::Div))],
        examples: &[
            ex(
                "exact",
                &[x(&[2], &[8.0, 6.0]), x(&[2], &[2.0, 3.0])],
                &[x(&[2], &[4.0, 2.0])],
            ),
            ex(
                "integers truncate",
                &[i32s(&[4], &[7, -7, 7, -7]), i32s(&[4], &[2, 2, -2, -2])],
                &[i32s(&[4], &[3, -3, -3, 3])],
            ),
            ex_err(
                "integer by zero",
                &[],
                &[i32s(&[1], &[1]), i32s(&[1], &[0])],
                Code::InvalidArgument,
                "division by zero",
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "RealDiv",
        attrs: NUMBER,
        gradient: Gradient::Rule(|g| quotient_grad(g, "RealDiv")),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary(node, Binary::Div)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[2], &[1.0, -6.0]), x(&[], &[4.0])],
                &[x(&[2], &[0.25, -1.5])],
            ),
            ex(
                "by zero",
                &[f32s(&[3], &[1.0, -1.0, 0.0]), f32s(&[3], &[0.0, 0.0, 0.0])],
                &[f32s(&[3], &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN])],
            ),
            ex(
                "complex",
                &[complex(&[1], &[(5.0, 5.0)]), complex(&[1], &[(3.0, -1.0)])],
                &[complex(&[1], &[(1.0, 2.0)])],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "DivNoNan",
        attrs: &["T: {half, float, bfloat16, double, complex64, complex128}"],
        gradient: Gradient::Rule(|g| quotient_grad(g, "DivNoNan")),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary(node, Binary::DivNoNan)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[2], &[1.0, -6.0]), x(&[], &[4.0])],
                &[x(&[2], &[0.25, -1.5])],
            ),
            ex(
                "by zero is zero",
                &[f32s(&[3], &[1.0, 0.0, 6.0]), f32s(&[3], &[0.0, 0.0, 4.0])],
                &[f32s(&[3], &[0.0, 0.0, 1.5])],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "FloorDiv",
        attrs: NUMBER,
        gradient: STEPS,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            binary(node, Binary::FloorDiv)
        })],
        examples: &[
            ex(
                "rounds down",
                &[x(&[4], DIVIDENDS), x(&[4], DIVISORS)],
                &[x(&[4], &[3.0, -4.0, -4.0, 3.0])],
            ),
            ex(
                "unsigned",
                &[x(&[2], &[7.0, 200.0]), x(&[2], &[2.0, 3.0])],
                &[x(&[2], &[3.0, 66.0])],
            ),
            ex(
                "smallest by minus one",
                &[of(DType::I8, &[], &[-128.0]), of(DType::I8, &[], &[-1.0])],
                &[of(DType::I8, &[], &[-128.0])],
            ),
            ex_err(
                "integer by zero",
                &[],
                &[i32s(&[2], &[1, 2]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "division by zero",
            ),
            ex(
                "nothing by zero",
                &[i32s(&[0], &[]), i32s(&[], &[0])],
                &[i32s(&[0], &[])],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "FloorMod",
        attrs: &[
            "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}",
        ],
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let quotient = g.apply("FloorDiv", &[g.input(0), g.input(1)])?;
            let minus = g.neg(quotient)?;
            let gy = g.mul(grad, minus)?;
            g.unbroadcast([grad, gy])
        }),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            binary(node, Binary::FloorMod)
        })],
        examples: &[
            ex(
                "sign of the divisor",
                &[x(&[4], DIVIDENDS), x(&[4], DIVISORS)],
                &[x(&[4], &[1.0, 1.0, -1.0, -1.0])],
            ),
            ex(
                "fractions",
                &[x(&[2], &[5.5, -0.25]), x(&[], &[2.0])],
                &[x(&[2], &[1.5, 1.75])],
            ),
            ex_err(
                "integer by zero",
                &[],
                &[i32s(&[], &[1]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "division by zero",
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "TruncateDiv",
        attrs: NUMBER,
        gradient: STEPS,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            binary(node, Binary::TruncateDiv)
        })],
        examples: &[
            ex(
                "rounds to zero",
                &[x(&[4], DIVIDENDS), x(&[4], DIVISORS)],
                &[x(&[4], &[3.0, -3.0, -3.0, 3.0])],
            ),
            ex_err(
                "integer by zero",
                &[],
                &[i32s(&[1], &[1]), i32s(&[1], &[0])],
                Code::Internal,
                "division by zero",
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "TruncateMod",
        attrs: &["T: {int32, int64, bfloat16, half, float, double}"],
        kernels: &[cpu(&[("T", MOD_TYPES)], |node| {
            binary(node, Binary::TruncateMod)
        })],
        examples: &[
            ex(
                "sign of the dividend",
                &[x(&[4], DIVIDENDS), x(&[4], DIVISORS)],
                &[x(&[4], &[1.0, -1.0, 1.0, -1.0])],
            ),
            ex_err(
                "integer by zero",
                &[],
                &[i32s(&[1], &[1]), i32s(&[1], &[0])],
                Code::Internal,
                "division by zero",
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "Mod",
        attrs: &["T: {int32, int64, half, half, bfloat16, float, double}"],
        kernels: &[cpu(&[("T", MOD_TYPES)], |node| {
            binary(node, Binary::TruncateMod)
        })],
        examples: &[
            ex(
                "sign of the dividend",
                &[x(&[4], DIVIDENDS), x(&[4], DIVISORS)],
                &[x(&[4], &[1.0, -1.0, 1.0, -1.0])],
            ),
            ex_err(
                "by zero",
                &[],
                &[i32s(&[2], &[1, 2]), i32s(&[2], &[3, 0])],
                Code::InvalidArgument,
                "Integer division by zero",
            ),
            ex_err(
                "scalar by zero",
                &[],
                &[i32s(&[], &[1]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "Integer division by zero",
            ),
        ],
        ..BINARY
    },
];

/// `dy / y` and `dy * ((-x / y) / y)`, with this division.
fn quotient_grad(g: &mut GradCtx<'_>, divide: &str) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let (cx, cy) = (g.conj_input(0)?, g.conj_input(1)?);
    let gx = g.apply(divide, &[grad, cy])?;
    let minus = g.neg(cx)?;
    let once = g.apply(divide, &[minus, cy])?;
    let twice = g.apply(divide, &[once, cy])?;
    let gy = g.mul(grad, twice)?;
    g.unbroadcast([gx, gy])
}
