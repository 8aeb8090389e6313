//! `IdentityN`: a list of tensors, each as it is.
//!
//! TensorFlow: IdentityN(input: T) -> output: T, with attr T: list(type).

use tensorfleet_graph::example::{bools, ex, f32s, strs};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

pub(crate) static OP: OpDef = OpDef {
    name: "IdentityN",
    inputs: &["input: T"],
    outputs: &["output: T"],
    attrs: &["T: list(type) >= 1"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    examples: &[ex(
        "three types",
        &[
            f32s(&[2], &[1.0, 2.0]),
            bools(&[], &[true]),
            strs(&[1], &["a"]),
        ],
        &[
            f32s(&[2], &[1.0, 2.0]),
            bools(&[], &[true]),
            strs(&[1], &["a"]),
        ],
    )],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    for index in 0..ctx.num_inputs() {
        ctx.set(index, ctx.input(index).clone());
    }
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    // Nothing flows back where nothing came: integers among the outputs never have a gradient.
    let grads = (0..g.num_outputs()).map(|index| g.grad_or_none(index).map(Grad::Dense));
    Ok(grads.collect())
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        for index in 0..ctx.num_inputs() {
            let tensor = ctx.take(index)?;
            ctx.set(index, tensor);
        }
        Ok(())
    })
}
