//! `LogicalAnd`, `LogicalOr`, `LogicalNot`.
//!
//! TensorFlow: LogicalAnd(x: bool, y: bool) -> z: bool, broadcasting; LogicalNot(x: bool) -> y: bool.

use tensorfleet_graph::example::{bools, ex, ex_err};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_math::binary::Binary;
use tensorfleet_math::unary::Unary;
use tensorfleet_status::Code;

use super::elementwise::{binary, unary};

const LEFT: &[bool] = &[false, false, true, true];
const RIGHT: &[bool] = &[false, true, false, true];

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "LogicalAnd",
        inputs: &["x: bool", "y: bool"],
        outputs: &["z: bool"],
        commutative: true,
        infer: infer::broadcast,
        kernels: &[cpu(&[], |node| binary(node, Binary::LogicalAnd))],
        examples: &[
            ex(
                "truth table",
                &[bools(&[4], LEFT), bools(&[4], RIGHT)],
                &[bools(&[4], &[false, false, false, true])],
            ),
            ex(
                "scalars",
                &[bools(&[], &[true]), bools(&[], &[true])],
                &[bools(&[], &[true])],
            ),
            ex_err(
                "shapes that do not fit",
                &[],
                &[bools(&[2], &[true]), bools(&[3], &[true])],
                Code::InvalidArgument,
                "Incompatible shapes: [2] vs. [3]",
            ),
        ],
        ..LOGICAL
    },
    OpDef {
        name: "LogicalOr",
        inputs: &["x: bool", "y: bool"],
        outputs: &["z: bool"],
        commutative: true,
        infer: infer::broadcast,
        kernels: &[cpu(&[], |node| binary(node, Binary::LogicalOr))],
        examples: &[
            ex(
                "truth table",
                &[bools(&[4], LEFT), bools(&[4], RIGHT)],
                &[bools(&[4], &[false, true, true, true])],
            ),
            ex(
                "column and row",
                &[bools(&[2, 1], &[true, false]), bools(&[2], &[false, true])],
                &[bools(&[2, 2], &[true, true, false, true])],
            ),
        ],
        ..LOGICAL
    },
    OpDef {
        name: "LogicalNot",
        inputs: &["x: bool"],
        outputs: &["y: bool"],
        infer: infer::same_as_first,
        kernels: &[cpu(&[], |node| unary(node, Unary::LogicalNot))],
        examples: &[
            ex(
                "truth table",
                &[bools(&[2], &[false, true])],
                &[bools(&[2], &[true, false])],
            ),
            ex("scalar", &[bools(&[], &[true])], &[bools(&[], &[false])]),
            ex("empty", &[bools(&[0], &[])], &[bools(&[0], &[])]),
        ],
        ..LOGICAL
    },
];

const LOGICAL: OpDef = OpDef {
    gradient: Gradient::Stop("truth has no derivative"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};
