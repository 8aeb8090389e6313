//! `BroadcastTo`: a tensor repeated along missing dimensions and those of extent one.
//!
//! TensorFlow: BroadcastTo(input: T, shape: Tidx) -> output: T.

use tensorfleet_graph::example::{ex, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::{grads, moves};
use crate::types::{INDEX, MOVABLE};

pub(crate) static OP: OpDef = OpDef {
    name: "BroadcastTo",
    inputs: &["input: T", "shape: Tidx"],
    outputs: &["output: T"],
    attrs: &["T: type", "Tidx: {int32, int64} = DT_INT32"],
    infer: infer::shape_in::<1>,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", MOVABLE), ("Tidx", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "column",
            &[x(&[2, 1], &[1.0, 2.0]), i32s(&[2], &[2, 2])],
            &[x(&[2, 2], &[1.0, 1.0, 2.0, 2.0])],
        ),
        ex(
            "row",
            &[x(&[2], &[1.0, 2.0]), i64s(&[2], &[2, 2])],
            &[x(&[2, 2], &[1.0, 2.0, 1.0, 2.0])],
        ),
        ex(
            "scalar",
            &[strs(&[], &["a"]), i32s(&[1], &[2])],
            &[strs(&[2], &["a", "a"])],
        ),
        ex(
            "to nothing",
            &[f32s(&[1, 2], &[1.0, 2.0]), i32s(&[2], &[0, 2])],
            &[f32s(&[0, 2], &[])],
        ),
        ex_err(
            "extents",
            &[],
            &[f32s(&[2], &[1.0]), i32s(&[1], &[3])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "rank",
            &[],
            &[f32s(&[1, 2], &[1.0]), i32s(&[1], &[2])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, wanted) = (g.grad(0)?, g.input(1));
    let index = g.dtype(wanted);
    let own = grads::shape_as(g, g.input(0), index)?;
    let args = g.builder().op("BroadcastGradientArgs");
    let args = args.input(wanted).input(own).build()?;
    let summed = g.apply("Sum", &[grad, args.output(1)])?;
    let grad = g.apply("Reshape", &[summed, own])?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let output = broadcast(ctx)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn broadcast(ctx: &mut KernelCtx<'_>) -> Result<Tensor> {
    let (input, wanted) = (ctx.input(0)?, ctx.input(1)?);
    if wanted.rank() != 1 {
        return Err(invalid_argument!(
            "shape must be a vector of {{int32,int64}}, got shape {}",
            wanted.shape()
        ));
    }
    let shape = Shape::new(&ctx.ints(1)?)?;
    let from = input.shape();
    if from.rank() > shape.rank() {
        return Err(invalid_argument!(
            "Rank of input ({}) must be no greater than rank of output shape ({}).",
            from.rank(),
            shape.rank()
        ));
    }
    let mut pairs = from.iter().rev().zip(shape.iter().rev());
    if !pairs.all(|(from, to)| from == to || *from == 1) {
        return Err(invalid_argument!("Incompatible shapes: {from} vs. {shape}"));
    }
    if shape.elements() == 0 {
        return Tensor::new(input.dtype(), shape);
    }
    if from.elements() == shape.elements() {
        return ctx.take(0)?.reshaped(shape);
    }
    if from.elements() == 1 {
        return moves::fill(ctx.par(), input, shape);
    }
    let view = View::broadcast(&moves::extents(from), &moves::extents(&shape));
    moves::copy_view(ctx.par(), input, &view, shape)
}
