//! `Const`: a tensor that is part of the graph.
//!
//! TensorFlow: Const() -> output: dtype, with attrs value: tensor, dtype: type.

use tensorfleet_graph::example::script;
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::PartialShape;

pub(crate) static OP: OpDef = OpDef {
    name: "Const",
    outputs: &["output: dtype"],
    attrs: &["value: tensor", "dtype: type"],
    infer,
    gradient: Gradient::Stop("a constant has no inputs"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[script(
        "value",
        "c = float[2]{1, -2}",
        &["fetch c => float[2]{1, -2}"],
    )],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = PartialShape::from(ctx.attrs().tensor("value")?.shape());
    ctx.set(0, shape);
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let value = node.attrs.tensor("value")?.clone();
    let dtype = node.attrs.dtype("dtype")?;
    if value.dtype() != dtype {
        return Err(invalid_argument!(
            "constant of {} where the attr says {dtype}",
            value.dtype()
        ));
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        ctx.set(0, value.clone());
        Ok(())
    })
}
