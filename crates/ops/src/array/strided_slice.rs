//! `StridedSlice`: Python's `x[a, b:c:d, ..., tf.newaxis]`.
//!
//! TensorFlow: StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> output: T, with the masks
//! that [`slicing`](super::slicing) explains.

use tensorfleet_graph::example::{Lit, ex, ex_attrs, ex_err, f32s, i32s, i64s, of, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{DType, PartialShape};

use super::grads;
use super::slicing::{MASKS, Masks, Slicing, Vectors, strided_slice_attrs};
use crate::types::MOVABLE;

const INDICES: &[DType] = &[DType::I16, DType::I32, DType::I64];
const MATRIX: Lit = x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

pub(crate) static OP: OpDef = OpDef {
    name: "StridedSlice",
    inputs: &["input: T", "begin: Index", "end: Index", "strides: Index"],
    outputs: &["output: T"],
    attrs: strided_slice_attrs!("T: type", "Index: {int16, int32, int64}"),
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", MOVABLE), ("Index", INDICES)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "every second, backwards",
            &[
                MATRIX,
                i32s(&[2], &[0, 2]),
                i32s(&[2], &[2, -4]),
                i32s(&[2], &[1, -2]),
            ],
            &[x(&[2, 2], &[3.0, 1.0, 6.0, 4.0])],
        ),
        ex_attrs(
            "element of a vector",
            &[("shrink_axis_mask", "1")],
            &[
                i32s(&[3], &[7, 8, 9]),
                i32s(&[1], &[-1]),
                i32s(&[1], &[0]),
                i32s(&[1], &[1]),
            ],
            &[i32s(&[], &[9])],
        ),
        ex_attrs(
            "row",
            &[("shrink_axis_mask", "1")],
            &[
                strs(&[2, 1], &["a", "b"]),
                i64s(&[1], &[1]),
                i64s(&[1], &[2]),
                i64s(&[1], &[1]),
            ],
            &[strs(&[1], &["b"])],
        ),
        ex_attrs(
            "ellipsis, new axis and index",
            &[
                ("ellipsis_mask", "1"),
                ("new_axis_mask", "2"),
                ("shrink_axis_mask", "4"),
            ],
            &[
                f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                i32s(&[3], &[0, 0, 1]),
                i32s(&[3], &[0, 0, 2]),
                i32s(&[3], &[1, 1, 1]),
            ],
            &[f32s(&[2, 1], &[2.0, 5.0])],
        ),
        ex_attrs(
            "open ends",
            &[("begin_mask", "1"), ("end_mask", "2")],
            &[
                f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                i32s(&[2], &[1, 1]),
                i32s(&[2], &[1, 0]),
                i32s(&[2], &[1, 1]),
            ],
            &[f32s(&[1, 2], &[2.0, 3.0])],
        ),
        ex(
            "beyond the ends",
            &[
                f32s(&[3], &[1.0, 2.0, 3.0]),
                i32s(&[1], &[-9]),
                i32s(&[1], &[9]),
                i32s(&[1], &[100]),
            ],
            &[f32s(&[1], &[1.0])],
        ),
        ex(
            "nothing",
            &[
                f32s(&[3], &[1.0, 2.0, 3.0]),
                i32s(&[1], &[2]),
                i32s(&[1], &[1]),
                i32s(&[1], &[1]),
            ],
            &[f32s(&[0], &[])],
        ),
        ex(
            "int16",
            &[
                f32s(&[3], &[1.0, 2.0, 3.0]),
                of(DType::I16, &[1], &[1.0]),
                of(DType::I16, &[1], &[3.0]),
                of(DType::I16, &[1], &[1.0]),
            ],
            &[f32s(&[2], &[2.0, 3.0])],
        ),
        ex_attrs(
            "new axis on a scalar",
            &[("new_axis_mask", "1")],
            &[
                f32s(&[], &[1.0]),
                i32s(&[1], &[0]),
                i32s(&[1], &[0]),
                i32s(&[1], &[1]),
            ],
            &[f32s(&[1], &[1.0])],
        ),
        ex_err(
            "stride zero",
            &[],
            &[
                f32s(&[3], &[1.0]),
                i32s(&[1], &[0]),
                i32s(&[1], &[1]),
                i32s(&[1], &[0]),
            ],
            Code::InvalidArgument,
            "strides[0] must be non-zero",
        ),
        ex_err(
            "index out of bounds",
            &[("shrink_axis_mask", "1")],
            &[
                f32s(&[3], &[1.0]),
                i32s(&[1], &[3]),
                i32s(&[1], &[4]),
                i32s(&[1], &[1]),
            ],
            Code::InvalidArgument,
            "slice index 3 of dimension 0 out of bounds",
        ),
        ex_err(
            "too many dimensions",
            &[],
            &[
                f32s(&[3], &[1.0]),
                i32s(&[2], &[0, 0]),
                i32s(&[2], &[1, 1]),
                i32s(&[2], &[1, 1]),
            ],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "two ellipses",
            &[("ellipsis_mask", "3")],
            &[
                f32s(&[3], &[1.0]),
                i32s(&[2], &[0, 0]),
                i32s(&[2], &[1, 1]),
                i32s(&[2], &[1, 1]),
            ],
            Code::InvalidArgument,
            "Multiple ellipses",
        ),
        ex_err(
            "an ellipsis behind the last entry",
            &[("ellipsis_mask", "3")],
            &[
                f32s(&[3], &[1.0]),
                i32s(&[1], &[0]),
                i32s(&[1], &[1]),
                i32s(&[1], &[1]),
            ],
            Code::InvalidArgument,
            "Multiple ellipses",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let masks = Masks::of(ctx.attrs())?;
    let vectors = (
        ctx.constant_ints(1),
        ctx.constant_ints(2),
        ctx.constant_ints(3),
    );
    if let (Some(begin), Some(end), Some(strides)) = vectors
        && let Some(shape) = ctx.input(0).to_shape()
        && begin.len() == end.len()
        && begin.len() == strides.len()
    {
        let vectors = Vectors {
            begin: &begin,
            end: &end,
            strides: &strides,
        };
        let slicing = Slicing::new(&vectors, masks, &shape)?;
        ctx.set(0, PartialShape::from(&slicing.shape));
    }
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let index = g.dtype(g.input(1));
    // There are no int16 indices in the gradient op.
    let index = if index == DType::I16 {
        DType::I32
    } else {
        index
    };
    let shape = grads::shape_as(g, g.input(0), index)?;
    let mut vectors = Vec::with_capacity(3);
    for input in 1..4 {
        vectors.push(g.cast(g.input(input), index)?);
    }
    let masks = MASKS.map(|mask| (mask, g.attr(mask)));
    let mut node = g.builder().op("StridedSliceGrad").input(shape);
    for vector in vectors {
        node = node.input(vector);
    }
    node = node.input(grad);
    for (mask, value) in masks {
        node = node.attr(mask, value?);
    }
    let grad = node.output()?;
    Ok(vec![Some(Grad::Dense(grad)), None, None, None])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let masks = Masks::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let slicing = Slicing::of_inputs(ctx, 1, masks, ctx.input(0)?.shape())?;
        let input = ctx.take(0)?;
        let slice = slicing.take(ctx, input)?;
        ctx.set(0, slice);
        Ok(())
    })
}
