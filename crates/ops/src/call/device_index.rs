//! `DeviceIndex`: which of some kinds of device the node runs on.
//!
//! TensorFlow: DeviceIndex() -> index: int32, with attr device_names: list(string); their number if it is none of them.
//! Functions with an implementation for each kind of device choose by it.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

pub(crate) static OP: OpDef = OpDef {
    name: "DeviceIndex",
    outputs: &["index: int32"],
    attrs: &["device_names: list(string)"],
    stateful: true,
    infer: infer::scalar,
    gradient: Gradient::Stop("it has no inputs"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[script(
        "the CPU among others",
        "a = DeviceIndex() {device_names=['CPU', 'TPU']}
         b = DeviceIndex() {device_names=['TPU', 'GPU', 'CPU']}
         c = DeviceIndex() {device_names=['TPU', 'cpu']}",
        &["fetch a, b, c => int32[]{0}; int32[]{2}; int32[]{2}"],
    )],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let names = node.attrs.bytes_list("device_names")?.to_vec();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let own = ctx.env().device.device_type.name();
        let found = names.iter().position(|name| **name == *own.as_bytes());
        let index = found.unwrap_or(names.len());
        ctx.set(0, Tensor::scalar(i32::try_from(index).unwrap_or(i32::MAX)));
        Ok(())
    })
}
