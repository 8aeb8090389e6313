//! `TensorArraySizeV3`, `TensorArrayCloseV3`: how many elements, and the end of an array.
//!
//! TensorFlow: TensorArraySizeV3(handle: resource, flow_in: float) -> size: int32; TensorArrayCloseV3(handle: resource).

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

use super::STATEFUL;
use super::array::TensorArray;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "TensorArrayCloseV3",
        inputs: &["handle: resource"],
        gradient: Gradient::Stop("nothing comes out"),
        kernels: &[cpu(&[], build_close)],
        cost: Cost::Cheap,
        scripts: &[CLOSED],
        ..STATEFUL
    },
    OpDef {
        name: "TensorArraySizeV3",
        inputs: &["handle: resource", "flow_in: float"],
        outputs: &["size: int32"],
        infer: infer::scalar,
        gradient: Gradient::Stop("a size is no number to differentiate by"),
        kernels: &[cpu(&[], build_size)],
        cost: Cost::Cheap,
        scripts: &[CLOSED],
        ..STATEFUL
    },
];

const CLOSED: Script = script(
    "size, then the end",
    "three = int32[]{3}
     ta = TensorArrayV3(three) {dtype=DT_FLOAT}
     size = TensorArraySizeV3(ta, ta:1)
     close = TensorArrayCloseV3(ta, ^size)
     after = TensorArraySizeV3(ta, ta:1, ^close)
     again = TensorArrayCloseV3(ta, ^close)",
    &[
        "fetch size => int32[]{3}",
        "run close",
        "fetch after fails INVALID_ARGUMENT has already been closed.",
        "run again",
    ],
);

fn build_close(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        ctx.resource::<TensorArray>(0)?.close();
        Ok(())
    })
}

fn build_size(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let size = ctx.resource::<TensorArray>(0)?.size()?;
        ctx.set(0, Tensor::scalar(size as i32));
        Ok(())
    })
}
