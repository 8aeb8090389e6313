//! Bessel functions of orders zero and one, plain and scaled by an exponential.
//!
//! TensorFlow: Op(x: T) -> y: T, T in {bfloat16, half, float, double}, kernels for all but bfloat16. Computed in double precision,
//! which shows far out, where TensorFlow's own waves in single precision have few right digits; as there, `BesselY1` of zero
//! has no value in single precision.

use tensorfleet_graph::example::{Example, ex_ref, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, KernelDef, OpDef, cpu};
use tensorfleet_math::special::{self, single};
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

use super::{FLOAT, UNARY};
use crate::math::calculus::Calculus;
use crate::math::special::by_loop;

const TYPES: &[DType] = &[DType::F16, DType::F32, DType::F64];

/// Functions of all numbers.
const FIRST: &[Example] = &[
    ex_ref("curve", &[], &[ramp(&[14], -3.25, 0.5)]),
    ex_ref("far", &[], &[x(&[3], &[9.0, -30.0, 8.5])]),
    ex_ref("none", &[], &[x(&[0], &[])]),
    ENDS,
];

const ENDS: Example = ex_ref(
    "ends",
    &[],
    &[x(&[3], &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN])],
);

/// Functions of positive numbers.
const CURVE: Example = ex_ref("curve", &[], &[ramp(&[12], 0.25, 0.75)]);
const SECOND: &[Example] = &[
    CURVE,
    ex_ref("at and below zero", &[], &[x(&[2], &[0.0, -1.0])]),
    ENDS,
];

const BESSEL: OpDef = OpDef {
    attrs: FLOAT,
    exactness: Exactness::Relative(1e-5),
    ..UNARY
};

macro_rules! kernels {
    ($function:ident) => {
        &[cpu(&[("T", TYPES)], |node| {
            by_loop(node, special::$function, single::$function)
        })] as &[KernelDef]
    };
}

pub(crate) static OPS: [OpDef; 12] = [
    OpDef {
        name: "BesselI0",
        gradient: Gradient::Rule(|g| other(g, "BesselI1", 1.0)),
        kernels: kernels!(i0),
        examples: FIRST,
        ..BESSEL
    },
    OpDef {
        name: "BesselI0e",
        gradient: Gradient::Rule(|g| {
            let (x, y) = (g.input(0), g.output(0));
            let sign = g.f("Sign", x)?;
            let decay = g.mul(sign, y)?;
            let first = g.f("BesselI1e", x)?;
            let slope = g.sub(first, decay)?;
            g.chain(slope)
        }),
        kernels: kernels!(i0e),
        examples: FIRST,
        ..BESSEL
    },
    OpDef {
        name: "BesselI1",
        gradient: Gradient::Rule(|g| less_quotient(g, "BesselI0", false)),
        kernels: kernels!(i1),
        examples: FIRST,
        ..BESSEL
    },
    OpDef {
        name: "BesselI1e",
        gradient: Gradient::Rule(|g| less_quotient(g, "BesselI0e", true)),
        kernels: kernels!(i1e),
        examples: FIRST,
        ..BESSEL
    },
    OpDef {
        name: "BesselJ0",
        gradient: Gradient::Rule(|g| other(g, "BesselJ1", -1.0)),
        kernels: kernels!(j0),
        examples: FIRST,
        ..BESSEL
    },
    OpDef {
        name: "BesselJ1",
        gradient: Gradient::Rule(|g| less_quotient(g, "BesselJ0", false)),
        kernels: kernels!(j1),
        examples: FIRST,
        ..BESSEL
    },
    OpDef {
        name: "BesselK0",
        gradient: Gradient::Rule(|g| other(g, "BesselK1", -1.0)),
        kernels: kernels!(k0),
        examples: SECOND,
        ..BESSEL
    },
    OpDef {
        name: "BesselK0e",
        gradient: Gradient::Rule(|g| {
            let (x, y) = (g.input(0), g.output(0));
            let first = g.f("BesselK1e", x)?;
            let slope = g.sub(y, first)?;
            g.chain(slope)
        }),
        kernels: kernels!(k0e),
        examples: SECOND,
        ..BESSEL
    },
    OpDef {
        name: "BesselK1",
        gradient: Gradient::Rule(|g| {
            let (x, y) = (g.input(0), g.output(0));
            let zeroth = g.f("BesselK0", x)?;
            let quotient = g.div(y, x)?;
            let sum = g.add(zeroth, quotient)?;
            let slope = g.neg(sum)?;
            g.chain(slope)
        }),
        kernels: kernels!(k1),
        examples: SECOND,
        ..BESSEL
    },
    OpDef {
        name: "BesselK1e",
        gradient: Gradient::Rule(|g| {
            let (x, y) = (g.input(0), g.output(0));
            let zeroth = g.f("BesselK0e", x)?;
            let inverse = g.f("Reciprocal", x)?;
            let one = g.constant(1.0, g.dtype(x))?;
            let factor = g.sub(one, inverse)?;
            let rest = g.mul(y, factor)?;
            let slope = g.sub(rest, zeroth)?;
            g.chain(slope)
        }),
        kernels: kernels!(k1e),
        examples: SECOND,
        ..BESSEL
    },
    OpDef {
        name: "BesselY0",
        gradient: Gradient::Rule(|g| other(g, "BesselY1", -1.0)),
        kernels: kernels!(y0),
        examples: SECOND,
        ..BESSEL
    },
    OpDef {
        name: "BesselY1",
        gradient: Gradient::Rule(|g| {
            let (x, y) = (g.input(0), g.output(0));
            let zeroth = g.f("BesselY0", x)?;
            let quotient = g.div(y, x)?;
            let slope = g.sub(zeroth, quotient)?;
            g.chain(slope)
        }),
        kernels: kernels!(y1),
        examples: SECOND,
        ..BESSEL
    },
];

/// The derivative is another function of the same place.
fn other(g: &mut GradCtx<'_>, op: &str, sign: f64) -> Result<InputGrads> {
    let slope = g.f(op, g.input(0))?;
    let slope = if sign < 0.0 { g.neg(slope)? } else { slope };
    g.chain(slope)
}

/// The function of order zero less y / x, one half at zero; a scaled function also loses sign(x) · y.
fn less_quotient(g: &mut GradCtx<'_>, op: &str, is_scaled: bool) -> Result<InputGrads> {
    let (x, y) = (g.input(0), g.output(0));
    let (zero, half) = (g.constant(0.0, g.dtype(x))?, g.constant(0.5, g.dtype(x))?);
    let one = g.constant(1.0, g.dtype(x))?;
    let is_zero = g.apply("Equal", &[x, zero])?;
    let divisor = g.apply("SelectV2", &[is_zero, one, x])?;
    let quotient = g.div(y, divisor)?;
    let zeroth = g.f(op, x)?;
    let mut slope = g.sub(zeroth, quotient)?;
    if is_scaled {
        let sign = g.f("Sign", x)?;
        let decay = g.mul(sign, y)?;
        slope = g.sub(slope, decay)?;
    }
    let slope = g.apply("SelectV2", &[is_zero, half, slope])?;
    g.chain(slope)
}
