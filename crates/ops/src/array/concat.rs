//! `ConcatV2`, `Concat`: tensors one after the other along an axis.
//!
//! TensorFlow: ConcatV2(values: N * T, axis: Tidx) -> output: T; Concat(concat_dim: int32, values: N * T) -> output: T.

use tensorfleet_graph::example::{Lit, ex, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, UNKNOWN_DIM};

use super::moves;
use crate::types::{INDEX, MOVABLE};

const CONCAT: OpDef = OpDef {
    outputs: &["output: T"],
    infer,
    gradient: Gradient::Rule(gradient),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const LEFT: Lit = x(&[2, 1], &[1.0, 2.0]);
const RIGHT: Lit = x(&[2, 2], &[3.0, 4.0, 5.0, 6.0]);
const BOTH: Lit = x(&[2, 3], &[1.0, 3.0, 4.0, 2.0, 5.0, 6.0]);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Concat",
        inputs: &["concat_dim: int32", "values: N * T"],
        attrs: &["N: int >= 2", "T: type"],
        kernels: &[cpu(&[("T", MOVABLE)], build)],
        examples: &[
            ex("columns", &[i32s(&[], &[1]), LEFT, RIGHT], &[BOTH]),
            ex_err(
                "axis",
                &[],
                &[i32s(&[], &[2]), f32s(&[1], &[1.0]), f32s(&[1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..CONCAT
    },
    OpDef {
        name: "ConcatV2",
        inputs: &["values: N * T", "axis: Tidx"],
        attrs: &["N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32"],
        kernels: &[cpu(&[("T", MOVABLE), ("Tidx", INDEX)], build)],
        examples: &[
            ex("columns", &[LEFT, RIGHT, i32s(&[], &[-1])], &[BOTH]),
            ex(
                "rows",
                &[
                    f32s(&[1, 2], &[1.0, 2.0]),
                    f32s(&[0, 2], &[]),
                    f32s(&[2, 2], &[3.0, 4.0, 5.0, 6.0]),
                    i64s(&[], &[0]),
                ],
                &[f32s(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
            ),
            ex(
                "strings",
                &[strs(&[1], &["a"]), strs(&[2], &["b", ""]), i32s(&[], &[0])],
                &[strs(&[3], &["a", "b", ""])],
            ),
            ex(
                "empty",
                &[f32s(&[0, 2], &[]), f32s(&[0, 3], &[]), i32s(&[], &[1])],
                &[f32s(&[0, 5], &[])],
            ),
            ex_err(
                "axis",
                &[],
                &[f32s(&[1], &[1.0]), f32s(&[1], &[1.0]), i32s(&[], &[1])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "ranks",
                &[],
                &[f32s(&[1], &[1.0]), f32s(&[1, 1], &[1.0]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "extents",
                &[],
                &[
                    f32s(&[1, 1], &[1.0]),
                    f32s(&[1, 2], &[1.0]),
                    i32s(&[], &[0]),
                ],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "scalars",
                &[],
                &[f32s(&[], &[1.0]), f32s(&[], &[1.0]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "one scalar",
                &[],
                &[f32s(&[1], &[1.0]), f32s(&[], &[1.0]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..CONCAT
    },
];

/// Where the axis and the values stand among so many inputs.
fn layout(axis_first: bool, inputs: usize) -> (usize, std::ops::Range<usize>) {
    if axis_first {
        (0, 1..inputs)
    } else {
        (inputs - 1, 0..inputs - 1)
    }
}

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let axis_first = ctx.attrs().get("Tidx").is_none();
    let (axis_at, values) = layout(axis_first, ctx.num_inputs());
    let Some(dims) = ctx.input(values.start).dims() else {
        return Ok(());
    };
    let mut out = PartialShape::of_rank(dims.len());
    if let Some([axis]) = ctx.constant_ints(axis_at).as_deref() {
        let axis = if *axis < 0 {
            axis + dims.len() as i64
        } else {
            *axis
        };
        let mut sum = Some(0);
        let mut merged = PartialShape::of_rank(dims.len());
        for index in values {
            let Some(dims) = ctx.input(index).dims() else {
                sum = None;
                continue;
            };
            let mut others = dims.to_vec();
            if let Some(slot) = others.get_mut(axis as usize) {
                sum = sum
                    .filter(|_| *slot >= 0)
                    .map(|sum: i64| sum.saturating_add(*slot));
                *slot = UNKNOWN_DIM;
            }
            merged = merged.merge(&PartialShape::new(&others))?;
        }
        let mut dims = merged.dims().unwrap_or_default().to_vec();
        if let Some(slot) = dims.get_mut(axis as usize) {
            *slot = sum.unwrap_or(UNKNOWN_DIM);
        }
        out = PartialShape::new(&dims);
    }
    ctx.set(0, out);
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let axis_first = g.attrs().get("Tidx").is_none();
    let (axis_at, values) = layout(axis_first, g.num_inputs());
    let inputs: Vec<_> = values.clone().map(|index| g.input(index)).collect();
    let rank = g.apply("Rank", &[inputs[0]])?;
    let axis = g.cast(g.input(axis_at), DType::I32)?;
    let axis = g.apply("FloorMod", &[axis, rank])?;
    let shapes = g.builder().op("ShapeN").list(&inputs).build()?;
    let shapes: Vec<_> = (0..inputs.len())
        .map(|index| shapes.output(index))
        .collect();
    let offsets = g
        .builder()
        .op("ConcatOffset")
        .input(axis)
        .list(&shapes)
        .build()?;
    let mut grads = vec![None; g.num_inputs()];
    for (index, at) in values.enumerate() {
        let part = g.apply("Slice", &[grad, offsets.output(index), shapes[index]])?;
        grads[at] = Some(Grad::Dense(part));
    }
    Ok(grads)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let axis_first = node.attrs.get("Tidx").is_none();
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (axis_at, values) = layout(axis_first, ctx.num_inputs());
        let axis = ctx.input(axis_at)?;
        if axis.elements() != 1 {
            return Err(invalid_argument!(
                "axis tensor should be a scalar integer, but got shape {}",
                axis.shape()
            ));
        }
        let axis = ctx.int(axis_at)?;
        let parts: Result<Vec<&Tensor>> = values.map(|index| ctx.input(index)).collect();
        let joined = joined(ctx, dtype, &parts?, axis)?;
        ctx.set(0, joined);
        Ok(())
    })
}

fn joined(ctx: &KernelCtx<'_>, dtype: DType, parts: &[&Tensor], axis: i64) -> Result<Tensor> {
    let (shape, axis) = joined_shape(parts, axis)?;
    let rows: Vec<(&Tensor, usize)> = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| (*part, part.shape().elements_in(axis..part.rank())))
        .collect();
    match rows.as_slice() {
        [] => Tensor::new(dtype, shape),
        [(only, _)] => (*only).clone().reshaped(shape),
        rows => moves::concat(ctx.par(), dtype, rows, shape),
    }
}

/// The shape of all parts together and the axis counted from the front.
fn joined_shape(parts: &[&Tensor], axis: i64) -> Result<(Shape, usize)> {
    let Some(first) = parts.first().map(|part| part.shape()) else {
        return Err(invalid_argument!("ConcatOp : nothing to concatenate"));
    };
    let rank = first.rank() as i64;
    if parts.iter().any(|part| part.rank() == 0) {
        return Err(invalid_argument!(
            "ConcatOp : Can't concatenate scalars (use tf.stack instead)"
        ));
    }
    if axis < -rank || axis >= rank {
        return Err(invalid_argument!(
            "ConcatOp : Expected concatenating dimensions in the range [{}, {rank}), but got {axis}",
            -rank
        ));
    }
    let axis = if axis < 0 { axis + rank } else { axis } as usize;
    let mut sum = 0i64;
    for (index, part) in parts.iter().enumerate() {
        let shape = part.shape();
        if shape.rank() != first.rank() {
            return Err(invalid_argument!(
                "ConcatOp : Ranks of all input tensors should match: shape[0] = {first} vs. shape[{index}] = {shape}"
            ));
        }
        let differs = |dim: &usize| *dim != axis && shape.dim(*dim) != first.dim(*dim);
        if let Some(dim) = (0..first.rank()).find(differs) {
            return Err(invalid_argument!(
                "ConcatOp : Dimension {dim} in both shapes must be equal: shape[0] = {first} vs. shape[{index}] = {shape}"
            ));
        }
        sum = sum.saturating_add(shape[axis]);
    }
    Ok((first.with_dim(axis, sum)?, axis))
}
