//! `Pack`: tensors of one shape side by side along a new axis.
//!
//! TensorFlow: Pack(values: N * T) -> output: T, with attr axis: int.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Dims, PartialShape, Shape, Tensor};

use super::moves;
use crate::types::MOVABLE;

pub(crate) static OP: OpDef = OpDef {
    name: "Pack",
    inputs: &["values: N * T"],
    outputs: &["output: T"],
    attrs: &["N: int >= 1", "T: type", "axis: int = 0"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", MOVABLE)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "rows",
            &[x(&[2], &[1.0, 2.0]), x(&[2], &[3.0, 4.0])],
            &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
        ),
        ex_attrs(
            "columns",
            &[("axis", "-1")],
            &[x(&[2], &[1.0, 2.0]), x(&[2], &[3.0, 4.0])],
            &[x(&[2, 2], &[1.0, 3.0, 2.0, 4.0])],
        ),
        ex(
            "scalars",
            &[strs(&[], &["a"]), strs(&[], &["b"])],
            &[strs(&[2], &["a", "b"])],
        ),
        ex("one", &[x(&[2], &[1.0, 2.0])], &[x(&[1, 2], &[1.0, 2.0])]),
        ex_attrs(
            "empty",
            &[("axis", "1")],
            &[f32s(&[0], &[]), f32s(&[0], &[])],
            &[f32s(&[0, 2], &[])],
        ),
        ex_err(
            "shapes",
            &[],
            &[f32s(&[2], &[1.0]), f32s(&[1], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "axis",
            &[("axis", "2")],
            &[f32s(&[2], &[1.0]), f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let mut shape = PartialShape::unknown();
    for index in 0..ctx.num_inputs() {
        shape = shape.merge(ctx.input(index))?;
    }
    if let Some(dims) = shape.dims() {
        let (axis, count) = (ctx.attrs().int("axis")?, ctx.num_inputs());
        ctx.set(0, PartialShape::new(&packed(dims, axis, count)?.0));
    }
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, axis, count) = (g.grad(0)?, g.attr("axis")?, g.num_inputs());
    let parts = g
        .builder()
        .op("Unpack")
        .input(grad)
        .attr("num", count as i64)
        .attr("axis", axis)
        .build()?;
    let parts = (0..count).map(|index| Some(Grad::Dense(parts.output(index))));
    Ok(parts.collect())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (axis, dtype) = (node.attrs.int("axis")?, node.attrs.dtype("T")?);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let packed = pack(ctx, dtype, axis)?;
        ctx.set(0, packed);
        Ok(())
    })
}

fn pack(ctx: &mut KernelCtx<'_>, dtype: DType, axis: i64) -> Result<Tensor> {
    let first = ctx.input(0)?.shape();
    for index in 1..ctx.num_inputs() {
        let shape = ctx.input(index)?.shape();
        if shape != first {
            return Err(invalid_argument!(
                "Shapes of all inputs must match: values[0].shape = {first} != values[{index}].shape = {shape}"
            ));
        }
    }
    let (dims, axis) = packed(first, axis, ctx.num_inputs())?;
    let shape = Shape::new(&dims)?;
    if ctx.num_inputs() == 1 {
        return ctx.take(0)?.reshaped(shape);
    }
    let row_len = first.elements_in(axis..first.rank());
    if shape.elements() == 0 {
        return Tensor::new(dtype, shape);
    }
    let parts = (0..ctx.num_inputs()).map(|index| Ok((ctx.input(index)?, row_len)));
    let parts: Vec<(&Tensor, usize)> = parts.collect::<Result<_>>()?;
    moves::concat(ctx.par(), dtype, &parts, shape)
}

/// The dimensions with the new one, and where that is.
fn packed(dims: &[i64], axis: i64, count: usize) -> Result<(Dims, usize)> {
    let rank = dims.len() as i64 + 1;
    if axis < -rank || axis >= rank {
        return Err(invalid_argument!(
            "axis = {axis} not in [{}, {rank})",
            -rank
        ));
    }
    let axis = if axis < 0 { axis + rank } else { axis } as usize;
    let mut dims = Dims::from_slice(dims);
    dims.insert(axis, count as i64);
    Ok((dims, axis))
}
