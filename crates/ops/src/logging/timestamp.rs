//! `Timestamp`: seconds since 1970.
//!
//! TensorFlow: Timestamp() -> ts: double.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

pub(crate) static OP: OpDef = OpDef {
    name: "Timestamp",
    outputs: &["ts: double"],
    stateful: true,
    infer: infer::scalar,
    gradient: Gradient::Stop("time depends on nothing"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Shape,
    scripts: &[script("now", "t = Timestamp()", &["fetch t => ?"])],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let now = ctx.env().clock.wall().as_secs_f64();
        ctx.set(0, Tensor::scalar(now));
        Ok(())
    })
}
