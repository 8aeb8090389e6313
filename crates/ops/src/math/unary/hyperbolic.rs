//! Hyperbolic functions and their inverses.
//!
//! TensorFlow: Op(x: T) -> y: T, T in {bfloat16, half, float, double, complex64, complex128}.

use tensorfleet_graph::example::{ex, ex_ref, f32s, ramp, x};
use tensorfleet_graph::gradient::dense;
use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_math::unary::Unary;

use super::{FLOAT_OR_COMPLEX, UNARY, complex};
use crate::math::calculus::Calculus;
use crate::math::elementwise::unary;
use crate::types::FLOATS_AND_COMPLEX;

const COMPLEX_PLANE: &[(f64, f64)] = &[(0.25, 0.5), (1.0, -2.0), (-0.5, 1.0), (-1.5, -0.25)];

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "Sinh",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let cosh = g.f("Cosh", x)?;
            g.chain(cosh)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Sinh)
        })],
        examples: &[
            ex(
                "special values",
                &[f32s(&[2], &[0.0, f64::INFINITY])],
                &[f32s(&[2], &[0.0, f64::INFINITY])],
            ),
            ex_ref("curve", &[], &[ramp(&[13], -3.0, 0.5)]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Cosh",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let sinh = g.f("Sinh", x)?;
            g.chain(sinh)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Cosh)
        })],
        examples: &[
            ex(
                "special values",
                &[f32s(&[2], &[0.0, f64::NEG_INFINITY])],
                &[f32s(&[2], &[1.0, f64::INFINITY])],
            ),
            ex_ref("curve", &[], &[ramp(&[13], -3.0, 0.5)]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Tanh",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let (y, grad) = (g.conj_output()?, g.grad(0)?);
            dense(g.apply("TanhGrad", &[y, grad])?)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Tanh)
        })],
        examples: &[
            ex(
                "special values",
                &[f32s(
                    &[4],
                    &[0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN],
                )],
                &[f32s(&[4], &[0.0, 1.0, -1.0, f64::NAN])],
            ),
            ex_ref("curve", &[], &[ramp(&[17], -4.0, 0.5)]),
            ex_ref("saturated", &[], &[x(&[2], &[-50.0, 50.0])]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Asinh",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let (y, grad) = (g.conj_output()?, g.grad(0)?);
            let cosh = g.f("Cosh", y)?;
            dense(g.div(grad, cosh)?)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Asinh)
        })],
        examples: &[
            ex("zero", &[x(&[], &[0.0])], &[x(&[], &[0.0])]),
            ex_ref("curve", &[], &[ramp(&[9], -4.0, 1.0)]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Acosh",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let (y, grad) = (g.conj_output()?, g.grad(0)?);
            let sinh = g.f("Sinh", y)?;
            dense(g.div(grad, sinh)?)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Acosh)
        })],
        examples: &[
            ex("one", &[x(&[], &[1.0])], &[x(&[], &[0.0])]),
            ex_ref("curve", &[], &[ramp(&[8], 1.25, 0.5)]),
            ex_ref("below one", &[], &[x(&[2], &[0.5, -1.0])]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Atanh",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let square = g.f("Square", x)?;
            let one = g.constant(1.0, g.dtype(x))?;
            let rest = g.sub(one, square)?;
            let inverse = g.f("Reciprocal", rest)?;
            g.chain(inverse)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Atanh)
        })],
        examples: &[
            ex(
                "special values",
                &[f32s(&[3], &[0.0, 1.0, -1.0])],
                &[f32s(&[3], &[0.0, f64::INFINITY, f64::NEG_INFINITY])],
            ),
            ex_ref("curve", &[], &[ramp(&[7], -0.75, 0.25)]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
];
