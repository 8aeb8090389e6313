//! `EnsureShape`: the input itself, provided that its shape fits.
//!
//! TensorFlow: EnsureShape(input: T) -> output: T, with attr shape: shape.

use tensorfleet_graph::example::{ex_attrs, ex_err, f32s, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};

pub(crate) static OP: OpDef = OpDef {
    name: "EnsureShape",
    inputs: &["input: T"],
    outputs: &["output: T"],
    attrs: &["shape: shape", "T: type"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "fits",
            &[("shape", "[?,2]")],
            &[x(&[1, 2], &[1.0, 2.0])],
            &[x(&[1, 2], &[1.0, 2.0])],
        ),
        ex_attrs(
            "anything",
            &[("shape", "?")],
            &[x(&[], &[1.0])],
            &[x(&[], &[1.0])],
        ),
        ex_err(
            "does not fit",
            &[("shape", "[?,3]")],
            &[f32s(&[1, 2], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = ctx.attrs().shape("shape")?.merge(ctx.input(0))?;
    ctx.set(0, shape);
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    dense(g.grad(0)?)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let expected = node.attrs.shape("shape")?.clone();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.take(0)?;
        if !expected.admits(input.shape()) {
            return Err(invalid_argument!(
                "Shape of tensor {} {} is not compatible with expected shape {expected}.",
                ctx.node().name,
                input.shape()
            ));
        }
        ctx.set(0, input);
        Ok(())
    })
}
