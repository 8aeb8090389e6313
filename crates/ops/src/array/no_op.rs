//! `NoOp`: does nothing; holds control edges together.
//!
//! TensorFlow: NoOp().

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

pub(crate) static OP: OpDef = OpDef {
    name: "NoOp",
    gradient: Gradient::Stop("there is nothing to differentiate"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[script(
        "group",
        "a = float[]{1}
         first = NoOp(^a)
         second = NoOp(^first)",
        &["run second, first", "fetch a => float[]{1}"],
    )],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|_: &mut KernelCtx<'_>| Ok(()))
}
