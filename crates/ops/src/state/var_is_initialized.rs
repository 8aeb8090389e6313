//! `VarIsInitializedOp`: whether a resource variable has a value.
//!
//! TensorFlow: VarIsInitializedOp(resource: resource) -> is_initialized: bool.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::Tensor;

use super::variable::find;

pub(crate) static OP: OpDef = OpDef {
    name: "VarIsInitializedOp",
    inputs: &["resource: resource"],
    outputs: &["is_initialized: bool"],
    stateful: true,
    infer: infer::scalar,
    gradient: Gradient::Stop("a bool has no gradient"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[script(
        "before, after, and after it was destroyed",
        "v = VarHandleOp() {dtype=DT_FLOAT, shape=[], shared_name='v'}
         known = VarIsInitializedOp(v)
         one = float[]{1}
         init = AssignVariableOp(v, one)
         gone = DestroyResourceOp(v)",
        &[
            "fetch known => bool[]{false}",
            "run init",
            "fetch known => bool[]{true}",
            "run gone",
            "fetch known => bool[]{false}",
            "run init",
            "fetch known => bool[]{true}",
        ],
    )],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let known = match find(ctx, 0) {
            Ok(variable) => variable.read().is_some(),
            Err(status) if status.code() == Code::NotFound => false,
            Err(status) => return Err(status),
        };
        ctx.set(0, Tensor::scalar(known));
        Ok(())
    })
}
