//! `Switch`, `Merge` and their ref forms: values take one of several ways, the others are dead. `RefIdentity`: a reference.
//!
//! TensorFlow: Switch(data: T, pred: bool) -> (output_false: T, output_true: T);
//! Merge(inputs: N * T) -> (output: T, value_index: int32).

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::infer::{self, InferCtx};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::PartialShape;

use super::NATIVE;

const NO_GRADIENT: Gradient =
    Gradient::None("gradients through conditionals are built from their contexts");

const COND: &[Script] = &[
    script(
        "taken and dead branch",
        "p = bool[]{true}
         x = float[2]{1, 2}
         s = Switch(x, p)
         t = Neg(s:1)
         f = Square(s)
         m = Merge([f, t])",
        &["fetch m, m:1 => float[2]{-1, -2}; int32[]{1}"],
    ),
    script(
        "deadness passes through control edges",
        "p = bool[]{false}
         x = int32[]{5}
         s = Switch(x, p)
         pivot = Identity(s:1)
         late = Identity(x, ^pivot)
         other = Identity(s)
         m = Merge([late, other])",
        &["fetch m, m:1 => int32[]{5}; int32[]{1}"],
    ),
    script(
        "a fetched dead tensor is an error",
        "p = bool[]{false}
         x = int32[]{5}
         s = Switch(x, p)",
        &["fetch s:1 fails INVALID_ARGUMENT s"],
    ),
];

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "RefIdentity",
        inputs: &["input: Ref(T)"],
        outputs: &["output: Ref(T)"],
        attrs: &["T: type"],
        allows_uninitialized_input: true,
        infer: infer::same_as_first,
        kernels: &[cpu(&[], build_identity)],
        scripts: &[script(
            "the same reference",
            "v = VariableV2() {dtype=float, shape=[2]}
             r = RefIdentity(v)
             c = float[2]{1, 2}
             init = Assign(r, c)
             more = AssignAdd(r, c)",
            &["run init", "run more", "fetch v => float[2]{2, 4}"],
        )],
        ..SWITCH
    },
    OpDef {
        name: "Switch",
        inputs: &["data: T", "pred: bool"],
        outputs: &["output_false: T", "output_true: T"],
        attrs: &["T: type"],
        infer: infer::same_as_first,
        scripts: COND,
        ..SWITCH
    },
    OpDef {
        name: "RefSwitch",
        inputs: &["data: Ref(T)", "pred: bool"],
        outputs: &["output_false: Ref(T)", "output_true: Ref(T)"],
        attrs: &["T: type"],
        allows_uninitialized_input: true,
        infer: infer::same_as_first,
        scripts: &[script(
            "reference goes one way",
            "v = VariableV2() {dtype=float, shape=[2]}
             c = float[2]{1, 2}
             init = Assign(v, c)
             p = bool[]{true}
             s = RefSwitch(v, p)
             t = Identity(s:1)
             f = Neg(s)
             m = Merge([f, t])",
            &["run init", "fetch m, m:1 => float[2]{1, 2}; int32[]{1}"],
        )],
        ..SWITCH
    },
    OpDef {
        name: "_SwitchN",
        inputs: &["data: T", "output_index: int32"],
        outputs: &["outputs: num_outs * T"],
        attrs: &["num_outs: int >= 1", "T: type"],
        infer: infer::same_as_first,
        scripts: &[script(
            "index beyond the end takes the last",
            "i = int32[]{7}
             x = float[]{3}
             s = _SwitchN(x, i) {num_outs=3}
             m = Merge([s, s:1, s:2])",
            &["fetch m, m:1 => float[]{3}; int32[]{2}"],
        )],
        ..SWITCH
    },
    OpDef {
        name: "Merge",
        inputs: &["inputs: N * T"],
        outputs: &["output: T", "value_index: int32"],
        attrs: &["T: type", "N: int >= 1"],
        infer: merge_shape,
        scripts: COND,
        ..SWITCH
    },
    OpDef {
        name: "RefMerge",
        inputs: &["inputs: Ref(N * T)"],
        outputs: &["output: Ref(T)", "value_index: int32"],
        attrs: &["T: type", "N: int >= 1"],
        infer: merge_shape,
        scripts: &[script(
            "reference comes through",
            "v = VariableV2() {dtype=float, shape=[2]}
             c = float[2]{1, 2}
             init = Assign(v, c)
             p = bool[]{false}
             s = RefSwitch(v, p)
             m = RefMerge([s, s:1])
             r = Identity(m)",
            &["run init", "fetch r, m:1 => float[2]{1, 2}; int32[]{0}"],
        )],
        ..SWITCH
    },
];

const SWITCH: OpDef = OpDef {
    gradient: NO_GRADIENT,
    kernels: &NATIVE,
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

fn build_identity(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let value = ctx.take_value(0)?;
        ctx.set_value(0, value);
        Ok(())
    })
}

fn merge_shape(ctx: &mut InferCtx<'_>) -> Result<()> {
    // Inputs that come over a back edge are not known yet: only equal knowledge of all is kept.
    let first = ctx.input(0).clone();
    let same = (1..ctx.num_inputs()).all(|index| *ctx.input(index) == first);
    ctx.set(0, if same { first } else { PartialShape::unknown() });
    ctx.set(1, PartialShape::scalar());
    Ok(())
}
