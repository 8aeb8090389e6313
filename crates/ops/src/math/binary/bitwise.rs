//! Bits of two integers combined, and shifts.
//!
//! TensorFlow: Op(x: T, y: T) -> z: T for every integer type, broadcasting. A shift by less than nothing or by the width and
//! more, undefined in TensorFlow, is clamped to the width less one, as its CPU kernels do.

use tensorfleet_graph::example::{ex, of, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_math::binary::Binary;
use tensorfleet_tensor::DType;

use super::BINARY;
use crate::math::elementwise::binary;
use crate::math::unary::INTEGER;
use crate::types::INTEGERS;

const LEFT: &[f64] = &[12.0, 0.0, 127.0];
const RIGHT: &[f64] = &[10.0, 5.0, 64.0];

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "BitwiseAnd",
        commutative: true,
        kernels: &[cpu(&[("T", INTEGERS)], |node| {
            binary(node, Binary::BitwiseAnd)
        })],
        examples: &[ex(
            "bits",
            &[x(&[3], LEFT), x(&[3], RIGHT)],
            &[x(&[3], &[8.0, 0.0, 64.0])],
        )],
        ..BITWISE
    },
    OpDef {
        name: "BitwiseOr",
        commutative: true,
        kernels: &[cpu(&[("T", INTEGERS)], |node| {
            binary(node, Binary::BitwiseOr)
        })],
        examples: &[ex(
            "bits",
            &[x(&[3], LEFT), x(&[3], RIGHT)],
            &[x(&[3], &[14.0, 5.0, 127.0])],
        )],
        ..BITWISE
    },
    OpDef {
        name: "BitwiseXor",
        commutative: true,
        kernels: &[cpu(&[("T", INTEGERS)], |node| {
            binary(node, Binary::BitwiseXor)
        })],
        examples: &[
            ex(
                "bits",
                &[x(&[3], LEFT), x(&[3], RIGHT)],
                &[x(&[3], &[6.0, 5.0, 63.0])],
            ),
            ex(
                "scalar",
                &[
                    of(DType::I32, &[2], &[5.0, -1.0]),
                    of(DType::I32, &[], &[-1.0]),
                ],
                &[of(DType::I32, &[2], &[-6.0, 0.0])],
            ),
        ],
        ..BITWISE
    },
    OpDef {
        name: "LeftShift",
        kernels: &[cpu(&[("T", INTEGERS)], |node| {
            binary(node, Binary::LeftShift)
        })],
        examples: &[
            ex(
                "bits",
                &[x(&[3], &[1.0, 3.0, 5.0]), x(&[3], &[0.0, 4.0, 2.0])],
                &[x(&[3], &[1.0, 48.0, 20.0])],
            ),
            ex(
                "out at the top",
                &[of(DType::I8, &[], &[-64.0]), of(DType::I8, &[], &[1.0])],
                &[of(DType::I8, &[], &[-128.0])],
            ),
        ],
        ..BITWISE
    },
    OpDef {
        name: "RightShift",
        kernels: &[cpu(&[("T", INTEGERS)], |node| {
            binary(node, Binary::RightShift)
        })],
        examples: &[
            ex(
                "bits",
                &[x(&[3], &[1.0, 48.0, 5.0]), x(&[3], &[0.0, 4.0, 1.0])],
                &[x(&[3], &[1.0, 3.0, 2.0])],
            ),
            ex(
                "keeps the sign",
                &[of(DType::I64, &[], &[-5.0]), of(DType::I64, &[], &[1.0])],
                &[of(DType::I64, &[], &[-3.0])],
            ),
            ex(
                "far beyond the width",
                &[of(DType::U8, &[], &[255.0]), of(DType::U8, &[], &[100.0])],
                &[of(DType::U8, &[], &[1.0])],
            ),
        ],
        ..BITWISE
    },
];

const BITWISE: OpDef = OpDef {
    attrs: INTEGER,
    gradient: Gradient::Stop("bits have no derivative"),
    exactness: Exactness::Bits,
    ..BINARY
};
