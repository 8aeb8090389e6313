//! `Assign`: gives a variable a value; its reference is the output.
//!
//! TensorFlow: Assign(ref: Ref(T), value: T) -> output_ref: Ref(T), with attrs validate_shape: bool = true,
//! use_locking: bool = true. The value is shared, not copied; the first update in place copies it if someone
//! else still has it. The lock is taken whatever `use_locking` says.

use tensorfleet_graph::example::script;
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, Value};
use tensorfleet_status::{Result, ensure};

use super::NO_GRADIENT;

pub(crate) static OP: OpDef = OpDef {
    name: "Assign",
    inputs: &["ref: Ref(T)", "value: T"],
    outputs: &["output_ref: Ref(T)"],
    attrs: &[
        "T: type",
        "validate_shape: bool = true",
        "use_locking: bool = true",
    ],
    allows_uninitialized_input: true,
    infer,
    gradient: NO_GRADIENT,
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[
        script(
            "values of several types",
            "s = VariableV2() {dtype=DT_STRING, shape=[2]}
             words = string[2]{one, two}
             set_s = Assign(s, words)
             b = VariableV2() {dtype=DT_BOOL, shape=[]}
             yes = bool[]{true}
             set_b = Assign(b, yes) {use_locking=false}
             e = VariableV2() {dtype=DT_FLOAT, shape=[0,3]}
             none = float[0,3]{}
             set_e = Assign(e, none)",
            &[
                "fetch set_s, set_b, set_e => string[2]{one, two}; bool[]{true}; float[0,3]{}",
                "fetch s => string[2]{one, two}",
            ],
        ),
        script(
            "shapes that differ",
            "v = VariableV2() {dtype=DT_FLOAT, shape=[2]}
             two = float[2]{1, 2}
             three = float[3]{1, 2, 3}
             set_two = Assign(v, two)
             set_three = Assign(v, three)
             force_three = Assign(v, three) {validate_shape=false}",
            &[
                "run set_three fails INVALID_ARGUMENT Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]",
                "run set_two",
                "run set_three fails INVALID_ARGUMENT lhs shape= [2] rhs shape= [3]",
                "fetch force_three => float[3]{1, 2, 3}",
                "run set_two fails INVALID_ARGUMENT lhs shape= [3] rhs shape= [2]",
                "fetch v => float[3]{1, 2, 3}",
            ],
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = if ctx.attrs().bool("validate_shape")? {
        ctx.input(0).merge(ctx.input(1))?
    } else {
        ctx.input(1).clone()
    };
    ctx.set(0, shape);
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let validate_shape = node.attrs.bool("validate_shape")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let var = ctx.input_ref(0)?.clone();
        let value = ctx.take(1)?;
        let mut slot = var.write();
        if validate_shape {
            let shape = slot
                .as_ref()
                .map_or(var.declared_shape(), |old| old.shape());
            ensure!(
                shape == value.shape(),
                invalid_argument,
                "Assign requires shapes of both tensors to match. lhs shape= {shape} rhs shape= {}",
                value.shape()
            );
        }
        let old = slot.replace(value);
        drop(slot);
        // Freed after the lock is released.
        drop(old);
        ctx.set_value(0, Value::Ref(var));
        Ok(())
    })
}
