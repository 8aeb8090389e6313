//! `StridedSliceGrad`: a tensor put back into zeros of the shape it was sliced from.
//!
//! TensorFlow: StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index, dy: T) -> output: T.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::slicing::{MASKS, Masks, Slicing, strided_slice_attrs};
use crate::types::{INDEX, MOVABLE};

pub(crate) static OP: OpDef = OpDef {
    name: "StridedSliceGrad",
    inputs: &[
        "shape: Index",
        "begin: Index",
        "end: Index",
        "strides: Index",
        "dy: T",
    ],
    outputs: &["output: T"],
    attrs: strided_slice_attrs!("T: type", "Index: {int32, int64}"),
    infer: infer::shape_in::<0>,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", MOVABLE), ("Index", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "every second, backwards",
            &[
                i32s(&[2], &[2, 3]),
                i32s(&[2], &[0, 2]),
                i32s(&[2], &[2, -4]),
                i32s(&[2], &[1, -2]),
                x(&[2, 2], &[3.0, 1.0, 6.0, 4.0]),
            ],
            &[x(&[2, 3], &[1.0, 0.0, 3.0, 4.0, 0.0, 6.0])],
        ),
        ex_attrs(
            "element",
            &[("shrink_axis_mask", "1")],
            &[
                i64s(&[1], &[3]),
                i64s(&[1], &[1]),
                i64s(&[1], &[2]),
                i64s(&[1], &[1]),
                f32s(&[], &[5.0]),
            ],
            &[f32s(&[3], &[0.0, 5.0, 0.0])],
        ),
        ex(
            "nothing",
            &[
                i32s(&[1], &[2]),
                i32s(&[1], &[1]),
                i32s(&[1], &[1]),
                i32s(&[1], &[1]),
                f32s(&[0], &[]),
            ],
            &[f32s(&[2], &[0.0, 0.0])],
        ),
        ex_err(
            "wrong shape",
            &[],
            &[
                i32s(&[1], &[2]),
                i32s(&[1], &[0]),
                i32s(&[1], &[1]),
                i32s(&[1], &[1]),
                f32s(&[2], &[1.0]),
            ],
            Code::InvalidArgument,
            "shape of dy was [2] instead of [1]",
        ),
    ],
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let vectors = [g.input(1), g.input(2), g.input(3)];
    let masks = MASKS.map(|mask| (mask, g.attr(mask)));
    let mut node = g.builder().op("StridedSlice").input(grad);
    for vector in vectors {
        node = node.input(vector);
    }
    for (mask, value) in masks {
        node = node.attr(mask, value?);
    }
    let grad = node.output()?;
    Ok(vec![None, None, None, None, Some(Grad::Dense(grad))])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let masks = Masks::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let shape = ctx.input(0)?;
        if shape.rank() != 1 {
            return Err(invalid_argument!(
                "shape must be 1-D, got shape.shape = {} instead",
                shape.shape()
            ));
        }
        let shape = Shape::new(&ctx.ints(0)?)?;
        let slicing = Slicing::of_inputs(ctx, 1, masks, &shape)?;
        let dy = ctx.input(4)?;
        if *dy.shape() != slicing.shape {
            return Err(invalid_argument!(
                "shape of dy was {} instead of {}",
                dy.shape(),
                slicing.shape
            ));
        }
        let mut output = Tensor::zeros(dy.dtype(), shape)?;
        slicing.put(ctx, dy, &mut output)?;
        ctx.set(0, output);
        Ok(())
    })
}
