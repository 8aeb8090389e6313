//! `IsVariableInitialized`: whether a variable has a value.
//!
//! TensorFlow: IsVariableInitialized(ref: Ref(dtype)) -> is_initialized: bool.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

pub(crate) static OP: OpDef = OpDef {
    name: "IsVariableInitialized",
    inputs: &["ref: Ref(dtype)"],
    outputs: &["is_initialized: bool"],
    attrs: &["dtype: type"],
    allows_uninitialized_input: true,
    infer: infer::scalar,
    gradient: Gradient::Stop("a bool has no gradient"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[script(
        "before and after",
        "v = VariableV2() {dtype=DT_STRING, shape=[]}
         known = IsVariableInitialized(v)
         word = string[]{word}
         init = Assign(v, word)",
        &[
            "fetch known => bool[]{false}",
            "run init",
            "fetch known => bool[]{true}",
        ],
    )],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let known = ctx.input_ref(0)?.is_initialized();
        ctx.set(0, Tensor::scalar(known));
        Ok(())
    })
}
