//! `Split`, `SplitV`, `Unpack`: a tensor cut into pieces along an axis.
//!
//! TensorFlow: Split(split_dim: int32, value: T) -> output: num_split * T, pieces of one size;
//! SplitV(value: T, size_splits: Tlen, split_dim: int32) -> output: num_split * T, one size may be -1, to be
//! worked out; Unpack(value: T) -> output: num * T, single rows without the axis.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, f32s, i32s, i64s, of, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor};

use super::moves;
use crate::types::MOVABLE;

const LENGTHS: &[DType] = &[DType::I8, DType::I32, DType::I64];

const CUT: OpDef = OpDef {
    outputs: &["output: num_split * T"],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const TWO: &[(&str, &str)] = &[("num_split", "2")];
const MATRIX: Lit = x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
const LEFT: Lit = x(&[2, 1], &[1.0, 4.0]);
const RIGHT: Lit = x(&[2, 2], &[2.0, 3.0, 5.0, 6.0]);

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "Split",
        inputs: &["split_dim: int32", "value: T"],
        attrs: &["num_split: int >= 1", "T: type"],
        infer: infer_split,
        gradient: Gradient::Rule(gradient_split),
        kernels: &[cpu(&[("T", MOVABLE)], build_split)],
        examples: &[
            ex_attrs(
                "rows",
                TWO,
                &[i32s(&[], &[0]), MATRIX],
                &[x(&[1, 3], &[1.0, 2.0, 3.0]), x(&[1, 3], &[4.0, 5.0, 6.0])],
            ),
            ex_attrs(
                "columns",
                &[("num_split", "3")],
                &[i32s(&[], &[-1]), MATRIX],
                &[LEFT, x(&[2, 1], &[2.0, 5.0]), x(&[2, 1], &[3.0, 6.0])],
            ),
            ex_attrs(
                "four bits",
                TWO,
                &[i32s(&[], &[0]), of(DType::I4, &[2], &[-6.0, 7.0])],
                &[of(DType::I4, &[1], &[-6.0]), of(DType::I4, &[1], &[7.0])],
            ),
            ex_attrs(
                "one",
                &[("num_split", "1")],
                &[i32s(&[], &[0]), strs(&[2], &["a", "b"])],
                &[strs(&[2], &["a", "b"])],
            ),
            ex_attrs(
                "empty",
                TWO,
                &[i32s(&[], &[0]), f32s(&[0, 2], &[])],
                &[f32s(&[0, 2], &[]), f32s(&[0, 2], &[])],
            ),
            ex_err(
                "uneven",
                TWO,
                &[i32s(&[], &[0]), f32s(&[3], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "axis",
                TWO,
                &[i32s(&[], &[1]), f32s(&[2], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..CUT
    },
    OpDef {
        name: "SplitV",
        inputs: &["value: T", "size_splits: Tlen", "split_dim: int32"],
        attrs: &[
            "num_split: int >= 1",
            "T: type",
            "Tlen: {int8, int32, int64} = DT_INT64",
        ],
        infer: infer_split_v,
        gradient: Gradient::Rule(gradient_split_v),
        kernels: &[cpu(&[("T", MOVABLE), ("Tlen", LENGTHS)], build_split_v)],
        examples: &[
            ex_attrs(
                "columns",
                TWO,
                &[MATRIX, i64s(&[2], &[1, 2]), i32s(&[], &[1])],
                &[LEFT, RIGHT],
            ),
            ex_attrs(
                "one size worked out",
                &[("num_split", "2"), ("Tlen", "int32")],
                &[MATRIX, i32s(&[2], &[1, -1]), i32s(&[], &[-1])],
                &[LEFT, RIGHT],
            ),
            ex_attrs(
                "int8 sizes and an empty piece",
                TWO,
                &[
                    f32s(&[2], &[1.0, 2.0]),
                    of(DType::I8, &[2], &[0.0, 2.0]),
                    i32s(&[], &[0]),
                ],
                &[f32s(&[0], &[]), f32s(&[2], &[1.0, 2.0])],
            ),
            ex_err(
                "sum",
                TWO,
                &[f32s(&[3], &[1.0]), i64s(&[2], &[1, 1]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "a single size is not worked out",
                &[("num_split", "1")],
                &[f32s(&[3], &[1.0]), i64s(&[1], &[-1]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "If there is only one output",
            ),
            ex_err(
                "two unknown",
                TWO,
                &[f32s(&[3], &[1.0]), i64s(&[2], &[-1, -1]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "negative",
                TWO,
                &[f32s(&[3], &[1.0]), i64s(&[2], &[5, -2]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "number of sizes",
                TWO,
                &[f32s(&[3], &[1.0]), i64s(&[3], &[1, 1, 1]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..CUT
    },
    OpDef {
        name: "Unpack",
        inputs: &["value: T"],
        outputs: &["output: num * T"],
        attrs: &["num: int >= 0", "T: type", "axis: int = 0"],
        infer: infer_unpack,
        gradient: Gradient::Rule(gradient_unpack),
        kernels: &[cpu(&[("T", MOVABLE)], build_unpack)],
        examples: &[
            ex_attrs(
                "rows",
                &[("num", "2")],
                &[MATRIX],
                &[x(&[3], &[1.0, 2.0, 3.0]), x(&[3], &[4.0, 5.0, 6.0])],
            ),
            ex_attrs(
                "columns",
                &[("num", "3"), ("axis", "-1")],
                &[MATRIX],
                &[
                    x(&[2], &[1.0, 4.0]),
                    x(&[2], &[2.0, 5.0]),
                    x(&[2], &[3.0, 6.0]),
                ],
            ),
            ex_attrs(
                "vector",
                &[("num", "2")],
                &[strs(&[2], &["a", "b"])],
                &[strs(&[], &["a"]), strs(&[], &["b"])],
            ),
            ex_err(
                "number",
                &[("num", "3")],
                &[f32s(&[2], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "axis",
                &[("num", "2"), ("axis", "1")],
                &[f32s(&[2], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..CUT
    },
];

fn infer_split(ctx: &mut InferCtx<'_>) -> Result<()> {
    let count = ctx.num_outputs();
    let sizes = |extent: i64| (extent >= 0).then(|| vec![extent / count as i64; count]);
    infer_pieces(ctx, 1, 0, sizes)
}

fn infer_split_v(ctx: &mut InferCtx<'_>) -> Result<()> {
    let sizes = ctx.constant_ints(1).map(|sizes| sizes.to_vec());
    infer_pieces(ctx, 0, 2, |_| sizes)
}

fn infer_pieces(
    ctx: &mut InferCtx<'_>,
    value: usize,
    axis: usize,
    sizes: impl FnOnce(i64) -> Option<Vec<i64>>,
) -> Result<()> {
    let Some(dims) = ctx.input(value).dims() else {
        return Ok(());
    };
    let rank = dims.len() as i64;
    let axis = match ctx.constant_ints(axis).as_deref() {
        Some([axis]) => resolve_axis(*axis, rank)?,
        _ => {
            for index in 0..ctx.num_outputs() {
                ctx.set(index, PartialShape::of_rank(dims.len()));
            }
            return Ok(());
        }
    };
    let sizes = sizes(dims[axis]).unwrap_or_default();
    for index in 0..ctx.num_outputs() {
        let mut piece = dims.to_vec();
        piece[axis] = sizes.get(index).copied().unwrap_or(-1);
        ctx.set(index, PartialShape::new(&piece));
    }
    Ok(())
}

fn infer_unpack(ctx: &mut InferCtx<'_>) -> Result<()> {
    let axis = ctx.attrs().int("axis")?;
    if let Some(dims) = ctx.input(0).dims() {
        let axis = unpack_axis(axis, dims.len())?;
        let mut dims = dims.to_vec();
        dims.remove(axis);
        for index in 0..ctx.num_outputs() {
            ctx.set(index, PartialShape::new(&dims));
        }
    }
    Ok(())
}

fn all_grads(g: &mut GradCtx<'_>) -> Result<Vec<Output>> {
    (0..g.num_outputs()).map(|index| g.grad(index)).collect()
}

fn gradient_split(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let joined = join(g, 0)?;
    Ok(vec![None, Some(Grad::Dense(joined))])
}

fn gradient_split_v(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let joined = join(g, 2)?;
    Ok(vec![Some(Grad::Dense(joined)), None, None])
}

/// The gradients of the pieces along the axis in input `axis`.
fn join(g: &mut GradCtx<'_>, axis: usize) -> Result<Output> {
    let (grads, axis) = (all_grads(g)?, g.input(axis));
    match grads.as_slice() {
        [only] => Ok(*only),
        grads => g.builder().op("ConcatV2").list(grads).input(axis).output(),
    }
}

fn gradient_unpack(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grads, axis) = (all_grads(g)?, g.attr("axis")?);
    let packed = g.builder().op("Pack").list(&grads).attr("axis", axis);
    let packed = packed.output()?;
    Ok(vec![Some(Grad::Dense(packed))])
}

fn build_split(node: &NodeInfo) -> Result<AnyKernel> {
    let count = node.attrs.int("num_split")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let axis = ctx.input(0)?;
        if axis.rank() != 0 {
            return Err(invalid_argument!(
                "split_dim must be a scalar but has rank {}",
                axis.rank()
            ));
        }
        let axis = split_axis(ctx, 0, 1)?;
        let value = ctx.take(1)?;
        let extent = value.shape()[axis];
        if count < 1 || extent % count != 0 {
            return Err(invalid_argument!(
                "Number of ways to split should evenly divide the split dimension, but got split_dim {axis} (size = {extent}) and num_split {count}"
            ));
        }
        let sizes = vec![(extent / count) as usize; count as usize];
        set_pieces(ctx, value, axis, &sizes, true)
    })
}

fn build_split_v(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let lengths = lengths(ctx)?;
        let axis = split_axis(ctx, 2, 0)?;
        let value = ctx.take(0)?;
        let extent = value.shape().dim(axis);
        // Of a single piece TensorFlow does not find out the size.
        ensure!(
            lengths.len() != 1 || lengths[0] == extent as i64,
            invalid_argument,
            "If there is only one output, it must have the same size as the input. Input size: {extent} output size: {}",
            lengths[0]
        );
        let sizes = resolve_sizes(lengths, extent)?;
        set_pieces(ctx, value, axis, &sizes, true)
    })
}

fn build_unpack(node: &NodeInfo) -> Result<AnyKernel> {
    let (axis, count) = (node.attrs.int("axis")?, node.attrs.int("num")?);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let value = ctx.take(0)?;
        let axis = unpack_axis(axis, value.rank())?;
        if value.shape()[axis] != count {
            return Err(invalid_argument!(
                "Input shape axis {axis} must equal {count}, got shape {}",
                value.shape()
            ));
        }
        let sizes = vec![1; count as usize];
        set_pieces(ctx, value, axis, &sizes, false)
    })
}

fn unpack_axis(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    if axis < -rank || axis >= rank {
        return Err(invalid_argument!(
            "axis = {axis} not in [{}, {rank})",
            -rank
        ));
    }
    Ok(if axis < 0 { axis + rank } else { axis } as usize)
}

/// The axis in input `at` for the value in input `value`.
fn split_axis(ctx: &KernelCtx<'_>, at: usize, value: usize) -> Result<usize> {
    let axis = ctx.input(at)?;
    if axis.elements() != 1 {
        return Err(invalid_argument!(
            "split_dim_tensor must have exactly one element, got shape {}",
            axis.shape()
        ));
    }
    resolve_axis(ctx.int(at)?, ctx.input(value)?.rank() as i64)
}

fn resolve_axis(axis: i64, rank: i64) -> Result<usize> {
    if axis < -rank || axis >= rank {
        return Err(invalid_argument!(
            "-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}"
        ));
    }
    Ok(if axis < 0 { axis + rank } else { axis } as usize)
}

fn lengths(ctx: &KernelCtx<'_>) -> Result<Vec<i64>> {
    let lengths = ctx.input(1)?;
    if lengths.rank() != 1 || lengths.elements() != ctx.num_outputs() {
        return Err(invalid_argument!(
            "size of the split_tensor must be 1-D and have the same elements as outputs got {} -D and {} elements",
            lengths.rank(),
            lengths.elements()
        ));
    }
    if lengths.dtype() == DType::I8 {
        let lengths = lengths.slice::<i8>()?.iter();
        return Ok(lengths.map(|length| i64::from(*length)).collect());
    }
    Ok(ctx.ints(1)?.to_vec())
}

/// The sizes of the pieces of an axis of this extent.
fn resolve_sizes(mut lengths: Vec<i64>, extent: usize) -> Result<Vec<usize>> {
    let (mut sum, mut unknown) = (0i64, None);
    for (index, length) in lengths.iter().enumerate() {
        match (*length, unknown) {
            (-1, None) => unknown = Some(index),
            (-1, Some(_)) => {
                return Err(invalid_argument!("There can only be one -1 in the input."));
            }
            (length, _) => sum = sum.saturating_add(length),
        }
    }
    let extent = extent as i64;
    if sum > extent || (unknown.is_none() && sum != extent) {
        return Err(invalid_argument!(
            "Determined shape must either match input shape along split_dim exactly if fully specified, or be less than the size of the input along split_dim if not fully specified.  Got: {sum}"
        ));
    }
    if let Some(index) = unknown {
        lengths[index] = extent - sum;
    }
    if let Some(index) = lengths.iter().position(|length| *length < 0) {
        return Err(invalid_argument!(
            "Split size at index {index} must be >= 0. Got: {}",
            lengths[index]
        ));
    }
    Ok(lengths.into_iter().map(|length| length as usize).collect())
}

/// Sets the outputs to the pieces of `value`, with or without the axis they were cut along.
fn set_pieces(
    ctx: &mut KernelCtx<'_>,
    value: Tensor,
    axis: usize,
    sizes: &[usize],
    keep_axis: bool,
) -> Result<()> {
    let whole = value.shape().clone();
    let shape_of = |size: usize| match (whole.with_dim(axis, size as i64)?, keep_axis) {
        (shape, true) => Ok(shape),
        (shape, false) => without(&shape, axis),
    };
    if sizes.len() == 1 {
        let piece = value.reshaped(shape_of(sizes[0])?)?;
        ctx.set(0, piece);
        return Ok(());
    }
    let mut begin = vec![0; whole.rank()];
    let mut last: Option<(usize, Shape)> = None;
    for (index, size) in sizes.iter().enumerate() {
        if !ctx.node().is_read(index) {
            begin[axis] += size;
            continue;
        }
        // Most pieces are as large as the one before.
        let shape = match last.take() {
            Some((other, shape)) if other == *size => shape,
            _ => shape_of(*size)?,
        };
        let piece = if axis == 0 {
            value.rows(begin[0], *size)?.reshaped(shape.clone())?
        } else {
            piece(ctx, &value, axis, &begin, *size, shape.clone())?
        };
        last = Some((*size, shape));
        begin[axis] += size;
        ctx.set(index, piece);
    }
    Ok(())
}

/// A copy of the elements from `begin` on, `size` of them along an axis.
fn piece(
    ctx: &KernelCtx<'_>,
    value: &Tensor,
    axis: usize,
    begin: &[usize],
    size: usize,
    shape: Shape,
) -> Result<Tensor> {
    let dims = moves::extents(value.shape());
    let mut extents = dims.clone();
    extents[axis] = size;
    // An empty piece may begin behind the last element, which a view cannot.
    let view = if size == 0 {
        View::dense(&extents)
    } else {
        View::sliced(&dims, begin, &vec![1; dims.len()], &extents)
    };
    moves::copy_view(ctx.par(), value, &view, shape)
}

fn without(shape: &Shape, axis: usize) -> Result<Shape> {
    let mut dims = shape.to_vec();
    dims.remove(axis);
    Shape::new(&dims)
}
