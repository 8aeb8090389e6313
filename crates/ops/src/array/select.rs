//! `Select`, `SelectV2`: elements of one tensor or the other by a condition.
//!
//! TensorFlow: Select(condition: bool, t: T, e: T) -> output: T, where the condition has the shape of `t` and `e`, or
//! is a scalar, or chooses rows by a vector; SelectV2 broadcasts all three.

use tensorfleet_graph::example::{Lit, bools, ex, ex_err, f32s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::{self, InferCtx};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::broadcast::out_shape;
use tensorfleet_math::movement::View;
use tensorfleet_math::par::{Par, chunks_mut};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor, Word, by_word};

use super::moves;
use crate::types::MOVABLE;

/// Elements per task.
const GRAIN: usize = 32 * 1024;

const SELECT: OpDef = OpDef {
    inputs: &["condition: bool", "t: T", "e: T"],
    outputs: &["output: T"],
    attrs: &["T: type"],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const THEN: Lit = x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
const ELSE: Lit = x(&[2, 2], &[5.0, 6.0, 7.0, 8.0]);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Select",
        infer: infer_rows,
        gradient: Gradient::Rule(gradient_rows),
        kernels: &[cpu(&[("T", MOVABLE)], build_rows)],
        examples: &[
            ex(
                "elements",
                &[bools(&[2, 2], &[true, false, false, true]), THEN, ELSE],
                &[x(&[2, 2], &[1.0, 6.0, 7.0, 4.0])],
            ),
            ex(
                "rows",
                &[bools(&[2], &[false, true]), THEN, ELSE],
                &[x(&[2, 2], &[5.0, 6.0, 3.0, 4.0])],
            ),
            ex("all", &[bools(&[], &[false]), THEN, ELSE], &[ELSE]),
            ex(
                "strings",
                &[
                    bools(&[2], &[false, true]),
                    strs(&[2], &["a", "b"]),
                    strs(&[2], &["c", "d"]),
                ],
                &[strs(&[2], &["c", "b"])],
            ),
            ex(
                "empty",
                &[bools(&[0], &[]), f32s(&[0], &[]), f32s(&[0], &[])],
                &[f32s(&[0], &[])],
            ),
            ex_err(
                "shapes",
                &[],
                &[bools(&[2], &[true]), f32s(&[2], &[1.0]), f32s(&[1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "number of rows",
                &[],
                &[
                    bools(&[1], &[true]),
                    f32s(&[2, 1], &[1.0]),
                    f32s(&[2, 1], &[1.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..SELECT
    },
    OpDef {
        name: "SelectV2",
        infer: infer_broadcast,
        gradient: Gradient::Rule(gradient_broadcast),
        kernels: &[cpu(&[("T", MOVABLE)], build_broadcast)],
        examples: &[
            ex(
                "elements",
                &[bools(&[2, 2], &[true, false, false, true]), THEN, ELSE],
                &[x(&[2, 2], &[1.0, 6.0, 7.0, 4.0])],
            ),
            ex(
                "columns",
                &[bools(&[2], &[false, true]), THEN, ELSE],
                &[x(&[2, 2], &[5.0, 2.0, 7.0, 4.0])],
            ),
            ex(
                "all three broadcast",
                &[
                    bools(&[2, 1], &[true, false]),
                    x(&[2], &[1.0, 2.0]),
                    x(&[], &[9.0]),
                ],
                &[x(&[2, 2], &[1.0, 2.0, 9.0, 9.0])],
            ),
            ex(
                "scalars",
                &[bools(&[], &[false]), strs(&[], &["a"]), strs(&[], &["b"])],
                &[strs(&[], &["b"])],
            ),
            ex(
                "empty",
                &[bools(&[0], &[]), f32s(&[2, 1], &[1.0]), f32s(&[], &[1.0])],
                &[f32s(&[2, 0], &[])],
            ),
            ex_err(
                "shapes",
                &[],
                &[bools(&[2], &[true]), f32s(&[3], &[1.0]), f32s(&[], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..SELECT
    },
];

fn infer_rows(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = ctx.input(1).merge(ctx.input(2))?;
    ctx.set(0, shape);
    Ok(())
}

fn infer_broadcast(ctx: &mut InferCtx<'_>) -> Result<()> {
    let values = infer::broadcast_shapes(ctx.input(1), ctx.input(2))?;
    let shape = infer::broadcast_shapes(&values, ctx.input(0))?;
    ctx.set(0, shape);
    Ok(())
}

fn gradient_rows(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, condition) = (g.grad(0)?, g.input(0));
    let zeros = g.apply("ZerosLike", &[g.input(1)])?;
    let then = g.apply("Select", &[condition, grad, zeros])?;
    let otherwise = g.apply("Select", &[condition, zeros, grad])?;
    Ok(vec![
        None,
        Some(Grad::Dense(then)),
        Some(Grad::Dense(otherwise)),
    ])
}

fn gradient_broadcast(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, condition) = (g.grad(0)?, g.input(0));
    let dtype = g.dtype(grad);
    let zero = Tensor::zeros(dtype, Shape::scalar())?;
    let zero = g.builder().constant(zero)?;
    let out_shape = g.shape(grad)?;
    let mut grads = vec![None];
    for (index, parts) in [(1, [condition, grad, zero]), (2, [condition, zero, grad])] {
        let part = g.apply("SelectV2", &parts)?;
        let own_shape = g.shape(g.input(index))?;
        let args = g.builder().op("BroadcastGradientArgs");
        let args = args.input(own_shape).input(out_shape).build()?;
        let summed = g.apply("Sum", &[part, args.output(0)])?;
        let part = g.apply("Reshape", &[summed, own_shape])?;
        grads.push(Some(Grad::Dense(part)));
    }
    Ok(grads)
}

fn build_rows(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let repeat = check_rows(ctx)?;
        let (then, otherwise) = (ctx.take(1)?, ctx.take(2)?);
        let condition = ctx.input(0)?;
        let output = choose(ctx.par(), condition, repeat, then, otherwise)?;
        ctx.set(0, output);
        Ok(())
    })
}

/// How many elements each condition is for.
fn check_rows(ctx: &KernelCtx<'_>) -> Result<usize> {
    let condition = ctx.input(0)?.shape();
    let (then, otherwise) = (ctx.input(1)?.shape(), ctx.input(2)?.shape());
    let node = ctx.node();
    let differ = |index: usize, one: &Shape, other_index: usize, other: &Shape| {
        invalid_argument!(
            "Inputs to operation {} of type {} must have the same size and shape.  Input {index}: {one} != input {other_index}: {other}",
            node.name,
            node.op
        )
    };
    if then != otherwise {
        return Err(differ(1, then, 2, otherwise));
    }
    if condition == then {
        return Ok(1);
    }
    match condition.rank() {
        0 => Ok(then.elements()),
        1 if then.rank() == 0 => Err(invalid_argument!(
            "'then' must be at least a vector, but saw shape: {then}"
        )),
        1 if then.dim(0) != condition.dim(0) => Err(invalid_argument!(
            "Number of batches of 'then' must match size of 'cond', but saw: {} vs. {}",
            then.dim(0),
            condition.dim(0)
        )),
        1 => Ok(then.elements_in(1..then.rank())),
        _ => Err(differ(0, condition, 1, then)),
    }
}

fn build_broadcast(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let shapes = [0, 1, 2].map(|index| ctx.input(index).map(Tensor::shape));
        let [condition, then, otherwise] = shapes;
        let [condition, then, otherwise] = [condition?, then?, otherwise?];
        let dims = [condition, then, otherwise].map(|shape| moves::extents(shape));
        let Ok(out) = out_shape(&[&dims[0], &dims[1], &dims[2]]) else {
            return Err(invalid_argument!(
                "condition {condition}, then {then}, and else {otherwise} must be broadcastable"
            ));
        };
        let out: Vec<i64> = out.iter().map(|dim| *dim as i64).collect();
        let shape = Shape::new(&out)?;
        let repeat = if condition.elements() == 1 {
            shape.elements()
        } else {
            1
        };
        let condition = match repeat {
            1 => spread(ctx, 0, &shape)?,
            _ => ctx.input(0)?.clone(),
        };
        let (then, otherwise) = (spread(ctx, 1, &shape)?, spread(ctx, 2, &shape)?);
        let output = choose(ctx.par(), &condition, repeat, then, otherwise)?;
        ctx.set(0, output.reshaped(shape)?);
        Ok(())
    })
}

/// Input `index` with the given shape, or as a single element.
fn spread(ctx: &mut KernelCtx<'_>, index: usize, shape: &Shape) -> Result<Tensor> {
    let input = ctx.take(index)?;
    if input.elements() == 1 && (index > 0 || shape.elements() == 1) {
        return Ok(input);
    }
    if input.elements() == shape.elements() {
        return input.reshaped(shape.clone());
    }
    let view = View::broadcast(&moves::extents(input.shape()), &moves::extents(shape));
    moves::copy_view(ctx.par(), &input, &view, shape.clone())
}

/// Element by element `then` or `otherwise`, either of which may be a single element for all; each
/// condition is for `repeat` elements.
fn choose(
    par: &dyn Par,
    condition: &Tensor,
    repeat: usize,
    then: Tensor,
    otherwise: Tensor,
) -> Result<Tensor> {
    let condition = condition.slice::<bool>()?;
    let len = condition.len() * repeat;
    match condition {
        [true] if then.elements() == len => return Ok(then),
        [false] if otherwise.elements() == len => return Ok(otherwise),
        _ => {}
    }
    let full = |tensor: &Tensor| tensor.elements() == len;
    let (mut then, mut otherwise) = (then, otherwise);
    // In place where that copies nothing.
    let (mut target, other, keep) = if full(&then) && then.is_unique() {
        (then, otherwise, true)
    } else if full(&otherwise) && otherwise.is_unique() {
        (otherwise, then, false)
    } else {
        let shape = if full(&then) {
            then.shape()
        } else {
            otherwise.shape()
        };
        let shape = if shape.elements() == len {
            shape.clone()
        } else {
            Shape::vector(len)
        };
        let mut output = Tensor::new(then.dtype(), shape)?;
        by_word!(output.dtype(), W => {
            let sources = (then.words::<W>()?, otherwise.words::<W>()?);
            write::<W>(par, condition, repeat, sources, output.words_mut::<W>()?);
        });
        return Ok(output);
    };
    by_word!(target.dtype(), W => {
        let out = target.words_mut::<W>()?;
        overwrite::<W>(par, condition, repeat, keep, other.words::<W>()?, out);
    });
    Ok(target)
}

/// Writes the elements of the one or the other source.
fn write<W: Word>(
    par: &dyn Par,
    condition: &[bool],
    repeat: usize,
    (then, otherwise): (&[W], &[W]),
    out: &mut [W],
) {
    chunks_mut(par, out, GRAIN, |first, chunk| {
        if repeat == 1 && then.len() > 1 && otherwise.len() > 1 {
            let sources = then[first..].iter().zip(&otherwise[first..]);
            let choices = condition[first..].iter().zip(sources);
            for (out, (condition, (then, otherwise))) in chunk.iter_mut().zip(choices) {
                *out = if *condition {
                    then.clone()
                } else {
                    otherwise.clone()
                };
            }
            return;
        }
        for_runs(first, chunk, repeat, |run, at, out| {
            copy(if condition[run] { then } else { otherwise }, at, out);
        });
    });
}

/// Writes the other's elements where the condition is not `keep`.
fn overwrite<W: Word>(
    par: &dyn Par,
    condition: &[bool],
    repeat: usize,
    keep: bool,
    other: &[W],
    out: &mut [W],
) {
    chunks_mut(par, out, GRAIN, |first, chunk| {
        if repeat == 1 && other.len() > 1 {
            let choices = condition[first..].iter().zip(&other[first..]);
            for (out, (condition, other)) in chunk.iter_mut().zip(choices) {
                // No branch: the loop runs over vectors.
                let kept = std::mem::take(out);
                *out = if *condition == keep {
                    kept
                } else {
                    other.clone()
                };
            }
            return;
        }
        for_runs(first, chunk, repeat, |run, at, out| {
            if condition[run] != keep {
                copy(other, at, out);
            }
        });
    });
}

/// Copies the elements from `at` on, or the only one.
fn copy<W: Word>(source: &[W], at: usize, out: &mut [W]) {
    match source {
        [value] => out.fill(value.clone()),
        _ => out.clone_from_slice(&source[at..at + out.len()]),
    }
}

/// Calls `body(condition, position, elements)` for the parts of a chunk that one condition is for.
fn for_runs<W>(
    first: usize,
    chunk: &mut [W],
    repeat: usize,
    mut body: impl FnMut(usize, usize, &mut [W]),
) {
    let (mut at, mut rest) = (first, chunk);
    while !rest.is_empty() {
        let len = (repeat - at % repeat).min(rest.len());
        let (part, behind) = rest.split_at_mut(len);
        body(at / repeat, at, part);
        at += len;
        rest = behind;
    }
}
