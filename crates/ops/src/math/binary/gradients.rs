//! Derivatives that TensorFlow has as ops: of a function's result `y` and the gradient `dy` that comes in.
//!
//! TensorFlow: Op(y: T, dy: T) -> z: T, T in {bfloat16, half, float, double, complex64, complex128}. Nothing is broadcast: both
//! inputs have the same number of elements, and the result has the shape of `y`.

use tensorfleet_graph::example::{ex, ex_err, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, KernelDef, OpDef, cpu, infer};
use tensorfleet_math::binary::Binary;
use tensorfleet_status::{Code, Result};

use crate::math::calculus::{Calculus, both};
use crate::math::elementwise::{Shapes, binary_with};
use crate::math::unary::{FLOAT_OR_COMPLEX, complex};
use crate::types::FLOATS_AND_COMPLEX;

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "SigmoidGrad",
        gradient: Gradient::Rule(|g| {
            let (a, b, grad) = (g.conj_input(0)?, g.conj_input(1)?, g.grad(0)?);
            let gb = g.mul(grad, b)?;
            let twice = g.scaled(gb, 2.0)?;
            let curved = g.mul(twice, a)?;
            let ga = g.sub(gb, curved)?;
            let gb = g.apply("SigmoidGrad", &[a, grad])?;
            both(ga, gb)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary_with(node, Binary::SigmoidGrad, Shapes::SameSize)
        })],
        examples: &[
            ex(
                "dy y (1 - y)",
                &[x(&[3], &[0.5, 0.25, 1.0]), x(&[3], &[1.0, 4.0, 2.0])],
                &[x(&[3], &[0.25, 0.75, 0.0])],
            ),
            ex(
                "scalar",
                &[x(&[], &[0.5]), x(&[], &[2.0])],
                &[x(&[], &[0.5])],
            ),
        ],
        ..DERIVATIVE
    },
    OpDef {
        name: "TanhGrad",
        gradient: Gradient::Rule(|g| {
            let (a, b, grad) = (g.conj_input(0)?, g.conj_input(1)?, g.grad(0)?);
            let scaled = g.scaled(grad, -2.0)?;
            let ga = g.mul(scaled, b)?;
            let ga = g.mul(ga, a)?;
            let gb = g.apply("TanhGrad", &[a, grad])?;
            both(ga, gb)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary_with(node, Binary::TanhGrad, Shapes::SameSize)
        })],
        examples: &[
            ex(
                "dy (1 - y²)",
                &[x(&[3], &[0.5, 0.0, 1.0]), x(&[3], &[1.0, 4.0, 2.0])],
                &[x(&[3], &[0.75, 4.0, 0.0])],
            ),
            ex_err(
                "another number of elements",
                &[],
                &[x(&[2], &[0.5, 0.0]), x(&[3], &[1.0, 4.0, 2.0])],
                Code::InvalidArgument,
                "same number of elements, got 2 and 3",
            ),
        ],
        ..DERIVATIVE
    },
    OpDef {
        name: "SqrtGrad",
        gradient: Gradient::Rule(|g| {
            let (a, y, grad) = (g.input(0), g.output(0), g.grad(0)?);
            let ga = g.div(grad, a)?;
            let conj = g.conj(ga)?;
            let minus = g.neg(conj)?;
            let first = g.mul(minus, y)?;
            let second = g.scaled(ga, 0.5)?;
            both(first, second)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary_with(node, Binary::SqrtGrad, Shapes::SameSize)
        })],
        examples: &[ex(
            "dy / (2 y)",
            &[x(&[3], &[0.5, 2.0, 1.0]), x(&[3], &[1.0, 4.0, 2.0])],
            &[x(&[3], &[1.0, 1.0, 1.0])],
        )],
        ..DERIVATIVE
    },
    OpDef {
        name: "RsqrtGrad",
        gradient: Gradient::Rule(|g| {
            let (ca, b, grad) = (g.conj_input(0)?, g.input(1), g.grad(0)?);
            let cg = g.conj(grad)?;
            let scaled = g.scaled(cg, -1.5)?;
            let scaled = g.mul(scaled, b)?;
            let square = g.f("Square", ca)?;
            let first = g.mul(scaled, square)?;
            let second = g.apply("RsqrtGrad", &[ca, grad])?;
            both(first, second)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary_with(node, Binary::RsqrtGrad, Shapes::SameSize)
        })],
        examples: &[ex(
            "-dy y³ / 2",
            &[x(&[3], &[0.5, 2.0, 1.0]), x(&[3], &[2.0, 0.25, -4.0])],
            &[x(&[3], &[-0.125, -1.0, 2.0])],
        )],
        ..DERIVATIVE
    },
    OpDef {
        name: "ReciprocalGrad",
        gradient: Gradient::Rule(reciprocal_grad_grad),
        kernels: RECIPROCAL_GRAD,
        examples: &[
            ex(
                "-dy y²",
                &[x(&[3], &[0.5, 2.0, 1.0]), x(&[3], &[4.0, 0.25, -4.0])],
                &[x(&[3], &[-1.0, -1.0, 4.0])],
            ),
            ex(
                "complex takes the conjugate",
                &[complex(&[1], &[(0.0, 1.0)]), complex(&[1], &[(1.0, 1.0)])],
                &[complex(&[1], &[(1.0, 1.0)])],
            ),
        ],
        ..DERIVATIVE
    },
    OpDef {
        name: "InvGrad",
        gradient: Gradient::Rule(reciprocal_grad_grad),
        kernels: RECIPROCAL_GRAD,
        examples: &[ex(
            "-dy y²",
            &[x(&[2], &[0.5, 2.0]), x(&[2], &[4.0, 0.25])],
            &[x(&[2], &[-1.0, -1.0])],
        )],
        ..DERIVATIVE
    },
];

const DERIVATIVE: OpDef = OpDef {
    inputs: &["y: T", "dy: T"],
    outputs: &["z: T"],
    attrs: FLOAT_OR_COMPLEX,
    infer: infer::same_as_first,
    ..OpDef::BLANK
};

const RECIPROCAL_GRAD: &[KernelDef] = &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
    binary_with(node, Binary::ReciprocalGrad, Shapes::SameSize)
})];

fn reciprocal_grad_grad(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (ca, b, grad) = (g.conj_input(0)?, g.input(1), g.grad(0)?);
    let cg = g.conj(grad)?;
    let scaled = g.scaled(cg, -2.0)?;
    let scaled = g.mul(scaled, b)?;
    let first = g.mul(scaled, ca)?;
    let second = g.apply("ReciprocalGrad", &[ca, grad])?;
    both(first, second)
}
