//! `Dawsn`, `Expint`, `FresnelCos`, `FresnelSin`, `Spence`: integrals without elementary form.
//!
//! TensorFlow: Op(x: T) -> y: T, T in {bfloat16, half, float, double}, kernels for float and double. Computed in double precision.

use std::f64::consts::FRAC_PI_2;

use tensorfleet_graph::example::{Example, ex_ref, ramp, script, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_math::special::{self, single};
use tensorfleet_status::Result;

use super::{FLOAT, UNARY};
use crate::math::calculus::Calculus;
use crate::math::special::by_loop;
use crate::types::SINGLE_AND_DOUBLE;

const INTEGRAL: OpDef = OpDef {
    attrs: FLOAT,
    exactness: Exactness::Relative(1e-5),
    ..UNARY
};

/// Where waves and logarithms have no value, or none of use.
const ENDS: Example = ex_ref(
    "ends",
    &[],
    &[x(&[3], &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN])],
);

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "Dawsn",
        scripts: &[script(
            "farther",
            "x = double[2]{-1e10, 1e10}\ny = Dawsn(x)",
            &["fetch y => ?"],
        )],
        gradient: Gradient::Rule(|g| {
            let product = g.mul(g.input(0), g.output(0))?;
            let twice = g.scaled(product, -2.0)?;
            let slope = g.plus(twice, 1.0)?;
            g.chain(slope)
        }),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            by_loop(node, special::dawsn, single::dawsn)
        })],
        examples: &[
            ex_ref("curve", &[], &[ramp(&[17], -4.0, 0.5)]),
            ex_ref("far", &[], &[x(&[3], &[7.0, -30.0, 0.0])]),
            ENDS,
        ],
        ..INTEGRAL
    },
    OpDef {
        name: "Expint",
        gradient: Gradient::Rule(|g| {
            let x = g.input(0);
            let growth = g.f("Exp", x)?;
            let slope = g.div(growth, x)?;
            g.chain(slope)
        }),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            by_loop(node, special::expint, single::expint)
        })],
        examples: &[
            ex_ref("curve", &[], &[ramp(&[12], 0.25, 0.5)]),
            ex_ref("far", &[], &[x(&[2], &[20.0, 50.0])]),
            ex_ref("at and below zero", &[], &[x(&[2], &[0.0, -1.0])]),
            ENDS,
        ],
        ..INTEGRAL
    },
    OpDef {
        name: "FresnelCos",
        gradient: Gradient::Rule(|g| wave(g, "Cos")),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            by_loop(node, special::fresnel_cos, single::fresnel_cos)
        })],
        examples: &[
            ex_ref("curve", &[], &[ramp(&[17], -4.0, 0.5)]),
            ex_ref("far", &[], &[x(&[2], &[7.0, -30.0])]),
            ENDS,
        ],
        ..INTEGRAL
    },
    OpDef {
        name: "FresnelSin",
        gradient: Gradient::Rule(|g| wave(g, "Sin")),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            by_loop(node, special::fresnel_sin, single::fresnel_sin)
        })],
        examples: &[
            ex_ref("curve", &[], &[ramp(&[17], -4.0, 0.5)]),
            ex_ref("far", &[], &[x(&[2], &[7.0, -30.0])]),
            ENDS,
        ],
        ..INTEGRAL
    },
    OpDef {
        name: "Spence",
        gradient: Gradient::Rule(|g| {
            let x = g.input(0);
            let one = g.constant(1.0, g.dtype(x))?;
            let log = g.f("Log", x)?;
            let rest = g.sub(one, x)?;
            let slope = g.div(log, rest)?;
            let is_one = g.apply("Equal", &[x, one])?;
            let minus = g.neg(one)?;
            let slope = g.apply("SelectV2", &[is_one, minus, slope])?;
            g.chain(slope)
        }),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            by_loop(node, special::spence, single::spence)
        })],
        examples: &[
            ex_ref("curve", &[], &[ramp(&[12], 0.125, 0.5)]),
            ex_ref("at and below zero", &[], &[x(&[3], &[0.0, -1.0, 1.0])]),
            ENDS,
        ],
        ..INTEGRAL
    },
];

/// The cosine or sine of πx²/2.
fn wave(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let square = g.f("Square", g.input(0))?;
    let angle = g.scaled(square, FRAC_PI_2)?;
    let slope = g.f(op, angle)?;
    g.chain(slope)
}
