//! Elementwise functions of two inputs that are broadcast against each other, in tables by kind.

pub(crate) mod arithmetic;
pub(crate) mod bitwise;
pub(crate) mod division;
pub(crate) mod gradients;
pub(crate) mod next_after;
pub(crate) mod power;

use tensorfleet_graph::{OpDef, infer};

/// `op(x: T, y: T) -> z: T`.
pub(crate) const BINARY: OpDef = OpDef {
    inputs: &["x: T", "y: T"],
    outputs: &["z: T"],
    infer: infer::broadcast,
    ..OpDef::BLANK
};

pub(crate) const NUMBER: &[&str] = &[
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}",
];
