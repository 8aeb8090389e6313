//! Powers, angles, and products with logarithms that are zero where their first factor is.
//!
//! TensorFlow: Op(x: T, y: T) -> z: T, broadcasting; Atan2 names its inputs y and x.

use tensorfleet_graph::example::{ex, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, Output, cpu};
use tensorfleet_math::binary::Binary;
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::DType;

use super::BINARY;
use crate::math::calculus::Calculus;
use crate::math::elementwise::binary;
use crate::math::unary::complex;
use crate::types::{FLOATS, FLOATS_AND_COMPLEX, SIGNED_NUMBERS};

const LOG_TYPES: &[&str] = &["T: {half, bfloat16, float, double, complex64, complex128}"];

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "Pow",
        attrs: &[
            "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
        ],
        gradient: Gradient::Rule(pow_grad),
        kernels: &[cpu(&[("T", SIGNED_NUMBERS)], |node| {
            binary(node, Binary::Pow)
        })],
        examples: &[
            ex(
                "numbers",
                &[
                    x(&[4], &[2.0, 3.0, -2.0, 1.0]),
                    x(&[4], &[3.0, 0.0, 3.0, 0.0]),
                ],
                &[x(&[4], &[8.0, 1.0, -8.0, 1.0])],
            ),
            ex_ref(
                "fractional powers",
                &[],
                &[ramp(&[6, 1], 0.5, 0.75), x(&[4], &[-1.5, 0.5, 1.25, 3.0])],
            ),
            ex_ref(
                "special values",
                &[],
                &[
                    f32s(&[4, 1], &[0.0, -1.0, f64::INFINITY, f64::NAN]),
                    f32s(&[4], &[0.0, -1.0, 0.5, f64::INFINITY]),
                ],
            ),
            ex_ref(
                "complex",
                &[],
                &[
                    complex(&[2], &[(1.0, 2.0), (0.5, -1.0)]),
                    complex(&[2], &[(2.0, 0.0), (0.5, 0.25)]),
                ],
            ),
            ex_err(
                "integer to a negative power",
                &[],
                &[i32s(&[1], &[2]), i32s(&[1], &[-1])],
                Code::InvalidArgument,
                "negative integer powers",
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "Atan2",
        inputs: &["y: T", "x: T"],
        attrs: &["T: {bfloat16, half, float, double}"],
        gradient: Gradient::Rule(|g| {
            let (y, x, grad) = (g.input(0), g.input(1), g.grad(0)?);
            let (y2, x2) = (g.f("Square", y)?, g.f("Square", x)?);
            let norm = g.add(y2, x2)?;
            let part = g.div(grad, norm)?;
            let gy = g.mul(x, part)?;
            let minus = g.neg(y)?;
            let gx = g.mul(minus, part)?;
            g.unbroadcast([gy, gx])
        }),
        kernels: &[cpu(&[("T", FLOATS)], |node| binary(node, Binary::Atan2))],
        examples: &[
            ex(
                "zero angle",
                &[f32s(&[2], &[0.0, 0.0]), f32s(&[2], &[1.0, 0.0])],
                &[f32s(&[2], &[0.0, 0.0])],
            ),
            ex_ref(
                "all quadrants",
                &[],
                &[
                    x(&[4, 1], &[1.0, -1.0, 0.25, 2.0]),
                    x(&[3], &[1.0, -1.0, -3.0]),
                ],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "Xdivy",
        attrs: LOG_TYPES,
        gradient: Gradient::Rule(|g| {
            let (x, y) = (g.input(0), g.input(1));
            let minus = g.neg(x)?;
            let two = g.constant(2.0, g.dtype(y))?;
            let square = g.apply("Pow", &[y, two])?;
            let dy = g.apply("Xdivy", &[minus, square])?;
            guarded_grad(g, "Xdivy", dy)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary(node, Binary::Xdivy)
        })],
        examples: &[ex(
            "zero on the left wins",
            &[
                x(&[4], &[0.0, 0.0, 3.0, 1.0]),
                x(&[4], &[0.0, f64::NAN, 2.0, 4.0]),
            ],
            &[x(&[4], &[0.0, 0.0, 1.5, 0.25])],
        )],
        ..BINARY
    },
    OpDef {
        name: "Xlogy",
        attrs: LOG_TYPES,
        gradient: Gradient::Rule(|g| {
            let dy = g.apply("Xdivy", &[g.input(0), g.input(1)])?;
            guarded_grad(g, "Xlogy", dy)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary(node, Binary::Xlogy)
        })],
        examples: &[
            ex(
                "zero on the left wins",
                &[x(&[3], &[0.0, 0.0, 3.0]), x(&[3], &[0.0, f64::NAN, 1.0])],
                &[x(&[3], &[0.0, 0.0, 0.0])],
            ),
            ex_ref(
                "products",
                &[],
                &[x(&[3], &[0.5, -2.0, 3.0]), x(&[3], &[0.25, 3.0, 10.0])],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "Xlog1py",
        attrs: LOG_TYPES,
        gradient: Gradient::Rule(|g| {
            let sum = g.plus(g.input(1), 1.0)?;
            let dy = g.apply("Xdivy", &[g.input(0), sum])?;
            guarded_grad(g, "Xlog1py", dy)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary(node, Binary::Xlog1py)
        })],
        examples: &[
            ex(
                "zero on the left wins",
                &[x(&[3], &[0.0, 0.0, 3.0]), x(&[3], &[-1.0, f64::NAN, 0.0])],
                &[x(&[3], &[0.0, 0.0, 0.0])],
            ),
            ex_ref(
                "products",
                &[],
                &[x(&[3], &[0.5, -2.0, 3.0]), x(&[3], &[0.25, 3.0, 10.0])],
            ),
        ],
        ..BINARY
    },
];

/// The gradient of `op(x, y)`, where d/dx is `op(x != 0, y)`, given d/dy.
fn guarded_grad(g: &mut GradCtx<'_>, op: &str, dy: Output) -> Result<InputGrads> {
    let (x, y, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let dtype = g.dtype(x);
    let zero = g.constant(0.0, dtype)?;
    let present = g.apply("NotEqual", &[x, zero])?;
    let present = g.cast(present, dtype)?;
    let dx = g.apply(op, &[present, y])?;
    let (gx, gy) = (g.mul(dx, grad)?, g.mul(dy, grad)?);
    g.unbroadcast([gx, gy])
}

/// `y x^(y-1)` and `x^y log(x)`, the latter zero where the logarithm is not real.
fn pow_grad(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (x, grad) = (g.input(0), g.grad(0)?);
    let (cx, cy) = (g.conj_input(0)?, g.conj_input(1)?);
    let one = g.constant(1.0, g.dtype(cy))?;
    let less = g.sub(cy, one)?;
    let power = g.apply("Pow", &[cx, less])?;
    let scaled = g.mul(grad, cy)?;
    let gx = g.mul(scaled, power)?;

    let zero = g.constant(0.0, g.dtype(cx))?;
    let is_complex = matches!(g.dtype(cx), DType::C64 | DType::C128);
    let test = if is_complex { "NotEqual" } else { "Greater" };
    let mask = g.apply(test, &[cx, zero])?;
    let (ones, zeros) = (g.f("OnesLike", x)?, g.f("ZerosLike", x)?);
    let safe = g.apply("SelectV2", &[mask, cx, ones])?;
    let log = g.f("Log", safe)?;
    let log = g.apply("SelectV2", &[mask, log, zeros])?;
    let z = g.conj_output()?;
    let scaled = g.mul(grad, z)?;
    let gy = g.mul(scaled, log)?;
    g.unbroadcast([gx, gy])
}
