//! Sign, negation, rounding, squares, reciprocals.
//!
//! TensorFlow: Op(x: T) -> y: T. `Round` of integers is the input; TensorFlow 2.21 gives zeros, which nobody can want.

use tensorfleet_graph::example::{ex, ex_ref, f32s, of, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_math::unary::Unary;
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

use super::{FLOAT, INTEGER, SIGNED_NUMBER, UNARY, complex};
use crate::math::calculus::Calculus;
use crate::math::elementwise::unary;
use crate::types::{
    FLOATS, FLOATS_AND_COMPLEX, INDEX, INTEGERS, NUMBERS, SIGNED, SIGNED_NUMBERS,
    SINGLE_AND_DOUBLE, dtypes,
};

const FLAT: Gradient = Gradient::Stop("the derivative is zero almost everywhere");
const SPECIAL: &[f64] = &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0];
const HALVES: &[f64] = &[-2.5, -1.5, -0.5, -0.25, 0.0, 0.5, 1.5, 2.5, 3.75];

pub(crate) static OPS: [OpDef; 11] = [
    OpDef {
        name: "Abs",
        attrs: &["T: {bfloat16, half, float, double, int8, int16, int32, int64}"],
        gradient: Gradient::Rule(abs_grad),
        kernels: &[cpu(&[("T", SIGNED_REALS)], |node| unary(node, Unary::Abs))],
        exactness: Exactness::Bits,
        examples: &[
            ex(
                "signs",
                &[x(&[2, 2], &[-1.0, 0.0, 2.0, -127.0])],
                &[x(&[2, 2], &[1.0, 0.0, 2.0, 127.0])],
            ),
            ex(
                "special values",
                &[f32s(&[3], &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN])],
                &[f32s(&[3], &[f64::INFINITY, f64::INFINITY, f64::NAN])],
            ),
            ex(
                "smallest integer wraps",
                &[of(DType::I8, &[], &[-128.0])],
                &[of(DType::I8, &[], &[-128.0])],
            ),
            ex("scalar", &[x(&[], &[-3.0])], &[x(&[], &[3.0])]),
            ex("empty", &[x(&[0, 3], &[])], &[x(&[0, 3], &[])]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Neg",
        attrs: SIGNED_NUMBER,
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            dense(g.neg(grad)?)
        }),
        kernels: &[cpu(&[("T", SIGNED_NUMBERS)], |node| {
            unary(node, Unary::Neg)
        })],
        examples: &[
            ex(
                "signs",
                &[x(&[3], &[-1.0, 4.0, 2.0])],
                &[x(&[3], &[1.0, -4.0, -2.0])],
            ),
            ex(
                "special values",
                &[f32s(&[4], SPECIAL)],
                &[f32s(
                    &[4],
                    &[f64::NEG_INFINITY, f64::INFINITY, f64::NAN, 0.0],
                )],
            ),
            ex(
                "complex",
                &[complex(&[1], &[(1.0, -2.0)])],
                &[complex(&[1], &[(-1.0, 2.0)])],
            ),
            ex("scalar", &[x(&[], &[-3.0])], &[x(&[], &[3.0])]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Sign",
        attrs: SIGNED_NUMBER,
        gradient: Gradient::Rule(|g| dense(g.f("ZerosLike", g.input(0))?)),
        kernels: &[cpu(&[("T", SIGNED_NUMBERS)], |node| {
            unary(node, Unary::Sign)
        })],
        examples: &[
            ex(
                "signs",
                &[x(&[3], &[-7.0, 0.5, 2.0])],
                &[x(&[3], &[-1.0, 1.0, 1.0])],
            ),
            ex(
                "integers",
                &[of(DType::I32, &[3], &[-7.0, 0.0, 2.0])],
                &[of(DType::I32, &[3], &[-1.0, 0.0, 1.0])],
            ),
            ex(
                "special values",
                &[f32s(
                    &[4],
                    &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0],
                )],
                &[f32s(&[4], &[1.0, -1.0, f64::NAN, 0.0])],
            ),
            ex_ref(
                "complex is on the unit circle",
                &[],
                &[complex(&[3], &[(3.0, 4.0), (0.0, 0.0), (-0.5, 0.0)])],
            ),
        ],
        ..UNARY
    },
    OpDef {
        name: "Floor",
        attrs: FLOAT,
        gradient: FLAT,
        kernels: &[cpu(&[("T", FLOATS)], |node| unary(node, Unary::Floor))],
        exactness: Exactness::Bits,
        examples: &[
            ex(
                "halves",
                &[x(&[9], HALVES)],
                &[x(&[9], &[-3.0, -2.0, -1.0, -1.0, 0.0, 0.0, 1.0, 2.0, 3.0])],
            ),
            ex("special values", &[x(&[4], SPECIAL)], &[x(&[4], SPECIAL)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Ceil",
        attrs: FLOAT,
        gradient: FLAT,
        kernels: &[cpu(&[("T", FLOATS)], |node| unary(node, Unary::Ceil))],
        exactness: Exactness::Bits,
        examples: &[
            ex(
                "halves",
                &[x(&[9], HALVES)],
                &[x(&[9], &[-2.0, -1.0, -0.0, -0.0, 0.0, 1.0, 2.0, 3.0, 4.0])],
            ),
            ex("special values", &[x(&[4], SPECIAL)], &[x(&[4], SPECIAL)]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Round",
        attrs: SIGNED_NUMBER,
        gradient: FLAT,
        kernels: &[cpu(&[("T", dtypes![FLOATS, INDEX])], |node| {
            unary(node, Unary::Round)
        })],
        exactness: Exactness::Bits,
        examples: &[ex(
            "halves go to even",
            &[x(&[9], HALVES)],
            &[x(&[9], &[-2.0, -2.0, -0.0, -0.0, 0.0, 0.0, 2.0, 2.0, 4.0])],
        )],
        ..UNARY
    },
    OpDef {
        name: "Rint",
        attrs: FLOAT,
        gradient: FLAT,
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            unary(node, Unary::Round)
        })],
        exactness: Exactness::Bits,
        examples: &[ex(
            "halves go to even",
            &[x(&[9], HALVES)],
            &[x(&[9], &[-2.0, -2.0, -0.0, -0.0, 0.0, 0.0, 2.0, 2.0, 4.0])],
        )],
        ..UNARY
    },
    OpDef {
        name: "Invert",
        attrs: INTEGER,
        gradient: Gradient::Stop("bits have no derivative"),
        kernels: &[cpu(&[("T", INTEGERS)], |node| unary(node, Unary::Invert))],
        exactness: Exactness::Bits,
        examples: &[
            ex(
                "signed",
                &[of(DType::I16, &[3], &[0.0, -1.0, 5.0])],
                &[of(DType::I16, &[3], &[-1.0, 0.0, -6.0])],
            ),
            ex(
                "unsigned",
                &[of(DType::U8, &[2], &[0.0, 3.0])],
                &[of(DType::U8, &[2], &[255.0, 252.0])],
            ),
            ex_ref("every width", &[], &[x(&[2], &[0.0, 42.0])]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Square",
        attrs: &[
            "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
        ],
        gradient: Gradient::Rule(|g| {
            let x = g.conj_input(0)?;
            let twice = g.scaled(x, 2.0)?;
            g.chain(twice)
        }),
        kernels: &[cpu(&[("T", NUMBERS)], |node| unary(node, Unary::Square))],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], &[0.0, 3.0, 11.0])],
                &[x(&[3], &[0.0, 9.0, 121.0])],
            ),
            ex(
                "integers wrap",
                &[of(DType::U8, &[1], &[17.0])],
                &[of(DType::U8, &[1], &[33.0])],
            ),
            ex(
                "complex",
                &[complex(&[1], &[(1.0, 2.0)])],
                &[complex(&[1], &[(-3.0, 4.0)])],
            ),
            ex("scalar", &[x(&[], &[4.0])], &[x(&[], &[16.0])]),
        ],
        ..UNARY
    },
    OpDef {
        name: "Reciprocal",
        ..RECIPROCAL
    },
    // The old name.
    OpDef {
        name: "Inv",
        ..RECIPROCAL
    },
];

const RECIPROCAL: OpDef = OpDef {
    attrs: SIGNED_NUMBER,
    gradient: Gradient::Rule(|g| {
        let (y, grad) = (g.output(0), g.grad(0)?);
        dense(g.apply("ReciprocalGrad", &[y, grad])?)
    }),
    kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
        unary(node, Unary::Reciprocal)
    })],
    examples: &[
        ex(
            "powers of two",
            &[x(&[4], &[1.0, -2.0, 0.5, 0.25])],
            &[x(&[4], &[1.0, -0.5, 2.0, 4.0])],
        ),
        ex(
            "division by zero",
            &[f32s(&[2], &[0.0, -0.0])],
            &[f32s(&[2], &[f64::INFINITY, f64::NEG_INFINITY])],
        ),
        ex(
            "complex",
            &[complex(&[1], &[(1.0, 1.0)])],
            &[complex(&[1], &[(0.5, -0.5)])],
        ),
        ex_ref("rounded", &[], &[x(&[3], &[3.0, 7.0, -10.0])]),
    ],
    ..UNARY
};

const SIGNED_REALS: &[DType] = dtypes![FLOATS, SIGNED];

fn abs_grad(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let sign = g.f("Sign", g.input(0))?;
    g.chain(sign)
}
