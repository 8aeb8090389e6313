//! Exponentials, logarithms, roots, and the functions made of them.
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

const COMPLEX_PLANE: &[(f64, f64)] = &[(0.0, 0.5), (1.0, -2.0), (-0.5, 1.0), (-1.5, -0.25)];

pub(crate) static OPS: [OpDef; 7] = [
    OpDef {
        name: "Exp",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let y = g.conj_output()?;
            g.chain(y)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Exp)
        })],
        examples: &[
            ex(
                "special values",
                &[f32s(
                    &[4],
                    &[0.0, f64::NEG_INFINITY, f64::INFINITY, f64::NAN],
                )],
                &[f32s(&[4], &[1.0, 0.0, f64::INFINITY, f64::NAN])],
            ),
            ex_ref("curve", &[], &[ramp(&[3, 5], -3.5, 0.5)]),
            ex_ref(
                "over- and underflow",
                &[],
                &[f32s(&[4], &[88.0, 89.5, -87.5, -104.0])],
            ),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
            ex("scalar", &[x(&[], &[0.0])], &[x(&[], &[1.0])]),
            ex("empty", &[x(&[0], &[])], &[x(&[0], &[])]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Expm1",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let y = g.f("Exp", x)?;
            g.chain(y)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Expm1)
        })],
        examples: &[
            ex(
                "special values",
                &[f32s(&[3], &[0.0, f64::NEG_INFINITY, f64::INFINITY])],
                &[f32s(&[3], &[0.0, -1.0, f64::INFINITY])],
            ),
            ex_ref("curve", &[], &[ramp(&[13], -3.0, 0.5)]),
            ex_ref(
                "near zero",
                &[],
                &[x(&[3], &[0.0009765625, -0.0009765625, 0.00390625])],
            ),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Log",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let inverse = g.f("Reciprocal", x)?;
            g.chain(inverse)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Log)
        })],
        examples: &[
            ex(
                "special values",
                &[f32s(&[4], &[1.0, 0.0, f64::INFINITY, f64::NAN])],
                &[f32s(
                    &[4],
                    &[0.0, f64::NEG_INFINITY, f64::INFINITY, f64::NAN],
                )],
            ),
            ex_ref("curve", &[], &[ramp(&[12], 0.25, 0.75)]),
            ex_ref("negative numbers", &[], &[x(&[2], &[-1.0, -0.5])]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Log1p",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let sum = g.plus(x, 1.0)?;
            let inverse = g.f("Reciprocal", sum)?;
            g.chain(inverse)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Log1p)
        })],
        examples: &[
            ex(
                "special values",
                &[f32s(&[3], &[0.0, -1.0, f64::INFINITY])],
                &[f32s(&[3], &[0.0, f64::NEG_INFINITY, f64::INFINITY])],
            ),
            ex_ref("curve", &[], &[ramp(&[10], -0.875, 0.5)]),
            ex_ref(
                "near zero",
                &[],
                &[f32s(&[2], &[0.0009765625, -0.00390625])],
            ),
        ],
        ..UNARY
    },
    OpDef {
        name: "Sqrt",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let (y, grad) = (g.output(0), g.grad(0)?);
            dense(g.apply("SqrtGrad", &[y, grad])?)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Sqrt)
        })],
        examples: &[
            ex(
                "squares",
                &[x(&[5], &[0.0, 1.0, 4.0, 0.25, 144.0])],
                &[x(&[5], &[0.0, 1.0, 2.0, 0.5, 12.0])],
            ),
            ex_ref("curve", &[], &[ramp(&[12], 0.5, 0.75)]),
            ex_ref("negative numbers", &[], &[x(&[2], &[-1.0, -0.0])]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Rsqrt",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let (y, grad) = (g.output(0), g.grad(0)?);
            dense(g.apply("RsqrtGrad", &[y, grad])?)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Rsqrt)
        })],
        examples: &[
            ex(
                "squares",
                &[x(&[4], &[1.0, 4.0, 0.25, 16.0])],
                &[x(&[4], &[1.0, 0.5, 2.0, 0.25])],
            ),
            ex_ref("curve", &[], &[ramp(&[12], 0.5, 0.75)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Sigmoid",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let (y, grad) = (g.conj_output()?, g.grad(0)?);
            dense(g.apply("SigmoidGrad", &[y, grad])?)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Sigmoid)
        })],
        examples: &[
            ex(
                "special values",
                &[f32s(&[3], &[0.0, f64::NEG_INFINITY, f64::INFINITY])],
                &[f32s(&[3], &[0.5, 0.0, 1.0])],
            ),
            ex_ref("curve", &[], &[ramp(&[17], -8.0, 1.0)]),
            ex_ref("saturated", &[], &[x(&[2], &[-100.0, 100.0])]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
];
