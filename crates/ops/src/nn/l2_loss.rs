//! `L2Loss`: half the sum of squares.
//!
//! TensorFlow: L2Loss(t: T) -> output: T.

use tensorfleet_graph::example::{ex, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::reduce::{L2, l2_loss};
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::{Element, Tensor};

use crate::by_float;
use crate::types::FLOATS;

pub(crate) static OP: OpDef = OpDef {
    name: "L2Loss",
    inputs: &["t: T"],
    outputs: &["output: T"],
    attrs: &["T: {half, bfloat16, float, double}"],
    infer: infer::scalar,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", FLOATS)], build)],
    exactness: Exactness::Relative(1e-6),
    examples: &[
        ex(
            "matrix",
            &[x(&[2, 2], &[1.0, -2.0, 3.0, 0.0])],
            &[x(&[], &[7.0])],
        ),
        ex("empty", &[x(&[0], &[])], &[x(&[], &[0.0])]),
    ],
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (value, grad) = (g.input(0), g.grad(0)?);
    dense(g.apply("Mul", &[value, grad])?)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    by_float!(dtype, T => loss::<T>(), else => Err(internal!("no loss of {dtype}")))
}

fn loss<T: Element + L2>() -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let loss = l2_loss(ctx.par(), ctx.input(0)?.slice::<T>()?);
        ctx.set(0, Tensor::scalar(loss));
        Ok(())
    })
}
