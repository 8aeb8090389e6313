//! Circular functions and their inverses.
//!
//! TensorFlow: Op(x: T) -> y: T, T in {bfloat16, half, float, double, complex64, complex128}.

use tensorfleet_graph::example::{ex, ex_ref, f32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, dense};
use tensorfleet_graph::{Gradient, OpDef, Output, cpu};
use tensorfleet_math::unary::Unary;
use tensorfleet_status::Result;

use super::{FLOAT_OR_COMPLEX, UNARY, complex};
use crate::math::calculus::Calculus;
use crate::math::elementwise::unary;
use crate::types::FLOATS_AND_COMPLEX;

const COMPLEX_PLANE: &[(f64, f64)] = &[(0.25, 0.5), (1.0, -2.0), (-0.5, 1.0), (-1.5, -0.25)];
const BEYOND: &[f64] = &[f64::INFINITY, f64::NAN];

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "Sin",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let cos = g.f("Cos", x)?;
            g.chain(cos)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Sin)
        })],
        examples: &[
            ex("zero", &[x(&[], &[0.0])], &[x(&[], &[0.0])]),
            ex_ref("waves", &[], &[ramp(&[4, 8], -8.0, 0.5)]),
            ex_ref(
                "large arguments",
                &[],
                &[f32s(&[3], &[1000.0, -32768.0, 16777216.0])],
            ),
            ex_ref("no angle", &[], &[f32s(&[2], BEYOND)]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Cos",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let grad = g.grad(0)?;
            let (grad, sin) = (g.neg(grad)?, g.f("Sin", x)?);
            dense(g.mul(grad, sin)?)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Cos)
        })],
        examples: &[
            ex("zero", &[x(&[], &[0.0])], &[x(&[], &[1.0])]),
            ex_ref("waves", &[], &[ramp(&[4, 8], -8.0, 0.5)]),
            ex_ref(
                "large arguments",
                &[],
                &[f32s(&[3], &[1000.0, -32768.0, 16777216.0])],
            ),
            ex_ref("no angle", &[], &[f32s(&[2], BEYOND)]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Tan",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let cos = g.f("Cos", x)?;
            let secant = g.f("Reciprocal", cos)?;
            let square = g.f("Square", secant)?;
            g.chain(square)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Tan)
        })],
        examples: &[
            ex("zero", &[x(&[], &[0.0])], &[x(&[], &[0.0])]),
            ex_ref("curve", &[], &[ramp(&[11], -1.25, 0.25)]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Asin",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let inverse = inverse_chord(g)?;
            g.chain(inverse)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Asin)
        })],
        examples: &[
            ex("zero", &[x(&[], &[0.0])], &[x(&[], &[0.0])]),
            ex_ref("curve", &[], &[ramp(&[9], -1.0, 0.25)]),
            ex_ref("outside", &[], &[x(&[2], &[1.5, -2.0])]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Acos",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let inverse = inverse_chord(g)?;
            let grad = g.grad(0)?;
            let grad = g.neg(grad)?;
            dense(g.mul(grad, inverse)?)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Acos)
        })],
        examples: &[
            ex("one", &[x(&[], &[1.0])], &[x(&[], &[0.0])]),
            ex_ref("curve", &[], &[ramp(&[9], -1.0, 0.25)]),
            ex_ref("outside", &[], &[x(&[2], &[1.5, -2.0])]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Atan",
        attrs: FLOAT_OR_COMPLEX,
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let square = g.f("Square", x)?;
            let sum = g.plus(square, 1.0)?;
            let inverse = g.f("Reciprocal", sum)?;
            g.chain(inverse)
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            unary(node, Unary::Atan)
        })],
        examples: &[
            ex("zero", &[x(&[], &[0.0])], &[x(&[], &[0.0])]),
            ex_ref("curve", &[], &[ramp(&[9], -4.0, 1.0)]),
            ex_ref("complex", &[], &[complex(&[4], COMPLEX_PLANE)]),
        ],
        ..UNARY
    },
];

/// `1 / sqrt(1 - x²)`.
fn inverse_chord(g: &mut GradCtx<'_>) -> Result<Output> {
    let x = g.conj_input(0)?;
    let square = g.f("Square", x)?;
    let one = g.constant(1.0, g.dtype(x))?;
    let rest = g.sub(one, square)?;
    let chord = g.f("Sqrt", rest)?;
    g.f("Reciprocal", chord)
}
