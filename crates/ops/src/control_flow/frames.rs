//! `Enter`, `Exit`, `NextIteration`, their ref forms and `LoopCond`: loops as frames of iterations.
//!
//! TensorFlow: Enter(data: T) -> output: T, with frame_name, is_constant, parallel_iterations; the others
//! take and give one T.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, infer};

use super::NATIVE;

// A back edge cannot be written before its source: scripts of whole loops live in the session's tests.
const ONE_ITERATION: &[Script] = &[script(
    "in and out of a frame",
    "x = float[2]{1, 2}
     k = float[]{10}
     e = Enter(x) {frame_name='f'}
     c = Enter(k) {frame_name='f', is_constant=true}
     y = Mul(e, c)
     out = Exit(y)",
    &["fetch out => float[2]{10, 20}"],
)];

const ENTER_ATTRS: &[&str] = &[
    "T: type",
    "frame_name: string",
    "is_constant: bool = false",
    "parallel_iterations: int = 10",
];

const FRAME: OpDef = OpDef {
    gradient: Gradient::None("gradients through loops are built from their contexts"),
    kernels: &NATIVE,
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: ONE_ITERATION,
    ..OpDef::BLANK
};

const BY_VALUE: OpDef = OpDef {
    inputs: &["data: T"],
    outputs: &["output: T"],
    attrs: &["T: type"],
    ..FRAME
};

const BY_REF: OpDef = OpDef {
    inputs: &["data: Ref(T)"],
    outputs: &["output: Ref(T)"],
    attrs: &["T: type"],
    ..FRAME
};

pub(crate) static OPS: [OpDef; 7] = [
    OpDef {
        name: "Enter",
        attrs: ENTER_ATTRS,
        infer: infer::same_as_first,
        ..BY_VALUE
    },
    OpDef {
        name: "RefEnter",
        attrs: ENTER_ATTRS,
        infer: infer::same_as_first,
        ..BY_REF
    },
    OpDef {
        name: "Exit",
        infer: infer::same_as_first,
        ..BY_VALUE
    },
    OpDef {
        name: "RefExit",
        ..BY_REF
    },
    OpDef {
        name: "NextIteration",
        ..BY_VALUE
    },
    OpDef {
        name: "RefNextIteration",
        ..BY_REF
    },
    OpDef {
        name: "LoopCond",
        inputs: &["input: bool"],
        outputs: &["output: bool"],
        infer: infer::scalar,
        scripts: &[script(
            "passes its input",
            "p = bool[]{true}\nl = LoopCond(p)",
            &["fetch l => bool[]{true}"],
        )],
        ..FRAME
    },
];
