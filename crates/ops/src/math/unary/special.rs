//! The error function, the gamma function and their kin.
//!
//! TensorFlow: Op(x: T) -> y: T, T in {bfloat16, half, float, double}. `Erf` of an infinite double is NaN, as it is in
//! TensorFlow 2.21; of other infinite floats it is one.

use std::f64::consts::PI;

use tensorfleet_graph::example::{ex, ex_ref, f32s, f64s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_math::unary::Unary;
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

use super::{FLOAT, UNARY};
use crate::math::calculus::Calculus;
use crate::math::elementwise::unary;
use crate::types::{FLOATS, SINGLE_AND_DOUBLE};

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "Erf",
        attrs: FLOAT,
        gradient: Gradient::Rule(|g| bell(g, 2.0 / PI.sqrt())),
        kernels: &[cpu(&[("T", FLOATS)], |node| unary(node, Unary::Erf))],
        examples: &[
            ex(
                "special values",
                &[f32s(&[3], &[0.0, f64::INFINITY, f64::NEG_INFINITY])],
                &[f32s(&[3], &[0.0, 1.0, -1.0])],
            ),
            ex_ref("curve", &[], &[ramp(&[17], -4.0, 0.5)]),
            ex_ref(
                "ends in double",
                &[],
                &[f64s(&[3], &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN])],
            ),
        ],
        ..UNARY
    },
    OpDef {
        name: "Erfc",
        attrs: FLOAT,
        gradient: Gradient::Rule(|g| bell(g, -2.0 / PI.sqrt())),
        kernels: &[cpu(&[("T", FLOATS)], |node| unary(node, Unary::Erfc))],
        examples: &[
            ex(
                "special values",
                &[f32s(&[3], &[0.0, f64::INFINITY, f64::NEG_INFINITY])],
                &[f32s(&[3], &[1.0, 0.0, 2.0])],
            ),
            ex_ref("curve", &[], &[ramp(&[13], -3.0, 0.5)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Erfinv",
        attrs: FLOAT,
        gradient: Gradient::Rule(|g| {
            let square = g.f("Square", g.output(0))?;
            let growth = g.f("Exp", square)?;
            let slope = g.scaled(growth, PI.sqrt() / 2.0)?;
            g.chain(slope)
        }),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            unary(node, Unary::Erfinv)
        })],
        exactness: Exactness::Relative(1e-6),
        examples: &[
            ex(
                "special values",
                &[f32s(&[3], &[0.0, 1.0, -1.0])],
                &[f32s(&[3], &[0.0, f64::INFINITY, f64::NEG_INFINITY])],
            ),
            ex_ref("curve", &[], &[ramp(&[15], -0.875, 0.125)]),
            ex_ref("outside", &[], &[x(&[2], &[-1.5, 2.0])]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Ndtri",
        attrs: FLOAT,
        gradient: Gradient::Rule(|g| {
            let square = g.f("Square", g.output(0))?;
            let half = g.scaled(square, 0.5)?;
            let growth = g.f("Exp", half)?;
            let slope = g.scaled(growth, (2.0 * PI).sqrt())?;
            g.chain(slope)
        }),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            unary(node, Unary::Ndtri)
        })],
        exactness: Exactness::Relative(1e-6),
        examples: &[
            ex(
                "special values",
                &[f32s(&[3], &[0.5, 0.0, 1.0])],
                &[f32s(&[3], &[0.0, f64::NEG_INFINITY, f64::INFINITY])],
            ),
            ex_ref("curve", &[], &[ramp(&[15], 0.0625, 0.0625)]),
            ex_ref("outside", &[], &[x(&[2], &[-0.5, 2.0])]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Lgamma",
        attrs: FLOAT,
        gradient: Gradient::Rule(|g| {
            let slope = g.f("Digamma", g.input(0))?;
            g.chain(slope)
        }),
        kernels: &[cpu(
            &[("T", &[DType::F16, DType::F32, DType::F64])],
            |node| unary(node, Unary::Lgamma),
        )],
        examples: &[
            ex(
                "roots and poles",
                &[x(&[4], &[1.0, 2.0, 0.0, -3.0])],
                &[x(&[4], &[0.0, 0.0, f64::INFINITY, f64::INFINITY])],
            ),
            ex_ref("curve", &[], &[ramp(&[12], 0.25, 0.75)]),
            ex_ref("negative numbers", &[], &[x(&[3], &[-0.5, -1.5, -2.25])]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Digamma",
        attrs: FLOAT,
        gradient: Gradient::Rule(|g| {
            let one = g.constant(1.0, g.dtype(g.input(0)))?;
            let slope = g.apply("Polygamma", &[one, g.input(0)])?;
            g.chain(slope)
        }),
        kernels: &[cpu(
            &[("T", &[DType::F16, DType::F32, DType::F64])],
            |node| unary(node, Unary::Digamma),
        )],
        exactness: Exactness::Relative(1e-6),
        examples: &[
            ex_ref("curve", &[], &[ramp(&[12], 0.25, 0.75)]),
            ex_ref("poles", &[], &[x(&[2], &[0.0, -2.0])]),
            ex_ref("negative numbers", &[], &[x(&[3], &[-0.5, -1.25, -2.75])]),
        ],
        ..UNARY
    },
];

/// `factor * exp(-x²)`, the derivative of the error functions.
fn bell(g: &mut GradCtx<'_>, factor: f64) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let grad = g.scaled(grad, factor)?;
    let square = g.f("Square", g.input(0))?;
    let minus = g.neg(square)?;
    let decay = g.f("Exp", minus)?;
    dense(g.mul(grad, decay)?)
}
