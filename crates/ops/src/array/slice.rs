//! `Slice`: a box cut out of a tensor; a size of -1 takes what is left.
//!
//! TensorFlow: Slice(input: T, begin: Index, size: Index) -> output: T.

use tensorfleet_graph::example::{Lit, ex, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{PartialShape, Shape, Tensor};

use super::grads;
use super::moves::{self, Extents};
use crate::types::{INDEX, MOVABLE};

const MATRIX: Lit = x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

pub(crate) static OP: OpDef = OpDef {
    name: "Slice",
    inputs: &["input: T", "begin: Index", "size: Index"],
    outputs: &["output: T"],
    attrs: &["T: type", "Index: {int32, int64}"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", MOVABLE), ("Index", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "box",
            &[MATRIX, i32s(&[2], &[0, 1]), i32s(&[2], &[2, 2])],
            &[x(&[2, 2], &[2.0, 3.0, 5.0, 6.0])],
        ),
        ex(
            "the rest",
            &[
                f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                i64s(&[2], &[1, 0]),
                i64s(&[2], &[-1, -1]),
            ],
            &[f32s(&[1, 2], &[3.0, 4.0])],
        ),
        ex(
            "nothing at the end",
            &[strs(&[1], &["a"]), i32s(&[1], &[1]), i32s(&[1], &[-1])],
            &[strs(&[0], &[])],
        ),
        ex(
            "scalar",
            &[f32s(&[], &[7.0]), i32s(&[0], &[]), i32s(&[0], &[])],
            &[f32s(&[], &[7.0])],
        ),
        ex_err(
            "begin",
            &[],
            &[f32s(&[3], &[1.0]), i32s(&[1], &[4]), i32s(&[1], &[1])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "size",
            &[],
            &[f32s(&[3], &[1.0]), i32s(&[1], &[1]), i32s(&[1], &[3])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "ranks",
            &[],
            &[f32s(&[3], &[1.0]), i32s(&[2], &[1, 1]), i32s(&[1], &[1])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = match (
        ctx.input(0).dims(),
        ctx.constant_ints(1),
        ctx.constant_ints(2),
    ) {
        (Some(dims), Some(begin), Some(size))
            if begin.len() == dims.len() && size.len() == dims.len() =>
        {
            let sizes = (0..dims.len()).map(|i| match (size[i], dims[i]) {
                (-1, -1) => -1,
                (-1, extent) => extent - begin[i],
                (size, _) => size,
            });
            PartialShape::new(&sizes.collect::<Vec<_>>())
        }
        (Some(dims), ..) => PartialShape::of_rank(dims.len()),
        (None, ..) => match ctx.shape_from(2).rank() {
            Some(rank) => PartialShape::of_rank(rank),
            None => PartialShape::unknown(),
        },
    };
    ctx.set(0, shape);
    Ok(())
}

/// The gradient with zeros around it.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, begin) = (g.grad(0)?, g.input(1));
    let index = g.dtype(begin);
    let whole = grads::shape_as(g, g.input(0), index)?;
    let taken = grads::shape_as(g, grad, index)?;
    let left = g.apply("Sub", &[whole, taken])?;
    let behind = g.apply("Sub", &[left, begin])?;
    let paddings = g
        .builder()
        .op("Pack")
        .list(&[begin, behind])
        .attr("axis", 1i64)
        .output()?;
    let grad = g.apply("Pad", &[grad, paddings])?;
    Ok(vec![Some(Grad::Dense(grad)), None, None])
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (begin, size) = bounds(ctx)?;
        let input = ctx.take(0)?;
        let slice = cut(ctx, input, &begin, &size)?;
        ctx.set(0, slice);
        Ok(())
    })
}

/// Begin and size of the box, checked.
fn bounds(ctx: &KernelCtx<'_>) -> Result<(Extents, Extents)> {
    let (shape, begins, sizes) = (ctx.input(0)?.shape(), ctx.input(1)?, ctx.input(2)?);
    let rank = shape.rank();
    if begins.rank() != 1
        || sizes.rank() != 1
        || begins.elements() != rank
        || sizes.elements() != rank
    {
        return Err(invalid_argument!(
            "Expected begin and size arguments to be 1-D tensors of size {rank}, but got shapes {} and {} instead.",
            begins.shape(),
            sizes.shape()
        ));
    }
    let (mut begin, mut size) = (Extents::new(), Extents::new());
    for (i, (from, len)) in ctx.ints(1)?.iter().zip(ctx.ints(2)?).enumerate() {
        let extent = shape[i];
        if *from < 0 || *from > extent {
            return Err(invalid_argument!(
                "Expected begin[{i}] in [0, {extent}], but got {from}"
            ));
        }
        let rest = extent - from;
        let len = if len == -1 { rest } else { len };
        if len < 0 || len > rest {
            return Err(invalid_argument!(
                "Expected size[{i}] in [0, {rest}], but got {len}"
            ));
        }
        begin.push(*from as usize);
        size.push(len as usize);
    }
    Ok((begin, size))
}

/// The box of these bounds, which lie inside the tensor.
fn cut(ctx: &KernelCtx<'_>, input: Tensor, begin: &[usize], size: &[usize]) -> Result<Tensor> {
    let dims = moves::extents(input.shape());
    if dims.as_slice() == size {
        return Ok(input);
    }
    let sizes: Vec<i64> = size.iter().map(|size| *size as i64).collect();
    let shape = Shape::new(&sizes)?;
    if size.contains(&0) {
        return Tensor::new(input.dtype(), shape);
    }
    if dims[1..] == size[1..] {
        return input.rows(begin[0], size[0]);
    }
    let view = View::sliced(&dims, begin, &vec![1; dims.len()], size);
    moves::copy_view(ctx.par(), &input, &view, shape)
}
