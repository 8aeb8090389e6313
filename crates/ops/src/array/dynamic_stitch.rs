//! `DynamicStitch`, `ParallelDynamicStitch`: rows of several tensors put in their places.
//!
//! TensorFlow: DynamicStitch(indices: N * int32, data: N * T) -> merged: T. Of rows that name one place the last
//! wins, in the parallel op too, where TensorFlow leaves it open; a place that no row names is zeros, where
//! TensorFlow leaves that open.

use tensorfleet_graph::example::{ex, ex_err, f32s, i32s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{PartialShape, Shape, Tensor};

use super::row_update::row_numbers;
use super::{grads, moves};
use crate::types::MOVABLE;

const STITCH: OpDef = OpDef {
    inputs: &["indices: N * int32", "data: N * T"],
    outputs: &["merged: T"],
    attrs: &["N: int >= 1", "T: type"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", MOVABLE)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "rows of different ranks",
            &[
                i32s(&[], &[2]),
                i32s(&[2, 1], &[1, 0]),
                x(&[2], &[5.0, 6.0]),
                x(&[2, 1, 2], &[3.0, 4.0, 1.0, 2.0]),
            ],
            &[x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        ),
        ex(
            "strings",
            &[i32s(&[2], &[1, 0]), strs(&[2], &["b", "a"])],
            &[strs(&[2], &["a", "b"])],
        ),
        ex(
            "empty",
            &[i32s(&[0], &[]), f32s(&[0, 3], &[])],
            &[f32s(&[0, 3], &[])],
        ),
        ex_err(
            "negative",
            &[],
            &[i32s(&[2], &[0, -1]), f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "shapes of rows",
            &[],
            &[
                i32s(&[1], &[0]),
                i32s(&[1], &[1]),
                f32s(&[1, 2], &[1.0]),
                f32s(&[1], &[1.0]),
            ],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "number of rows",
            &[],
            &[i32s(&[2], &[0, 1]), f32s(&[1], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "DynamicStitch",
        ..STITCH
    },
    OpDef {
        name: "ParallelDynamicStitch",
        ..STITCH
    },
];

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let data = ctx.num_inputs() / 2;
    let mut known = Some(0i64);
    for index in 0..data {
        known = match (known, ctx.constant_ints(index)) {
            (Some(rows), Some(indices)) => {
                Some(indices.iter().fold(rows, |rows, index| rows.max(index + 1)))
            }
            _ => None,
        };
    }
    if let (Some(lead), Some(dims)) = (ctx.input(0).rank(), ctx.input(data).dims())
        && let Some(tail) = dims.get(lead..)
    {
        ctx.set(
            0,
            PartialShape::new(&[&[known.unwrap_or(-1)], tail].concat()),
        );
    }
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, count) = (g.grad(0)?, g.num_inputs() / 2);
    let axis = grads::int(g, 0)?;
    let mut grads = vec![None; count];
    for index in 0..count {
        let rows = g.apply("GatherV2", &[grad, g.input(index), axis])?;
        grads.push(Some(Grad::Dense(rows)));
    }
    Ok(grads)
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let merged = stitch(ctx)?;
        ctx.set(0, merged);
        Ok(())
    })
}

fn stitch(ctx: &KernelCtx<'_>) -> Result<Tensor> {
    let count = ctx.num_inputs() / 2;
    let (mut places, mut named) = (0i64, 0);
    for index in 0..count {
        let indices = ctx.input(index)?;
        check(ctx, index, count)?;
        for place in indices.slice::<i32>()? {
            if *place < 0 {
                return Err(invalid_argument!(
                    "indices[{index}] is out of range: {place}"
                ));
            }
            places = places.max(i64::from(*place) + 1);
        }
        named += indices.elements();
    }
    let (lead, first) = (ctx.input(0)?.rank(), ctx.input(count)?);
    let row = &first.shape()[lead..];
    let row_len = first.shape().elements_in(lead..first.rank());
    let shape = Shape::new(&[&[places], row].concat())?;
    let mut merged = if named as i64 >= places && each_named(ctx, count, places)? {
        Tensor::new(first.dtype(), shape)?
    } else {
        Tensor::zeros(first.dtype(), shape)?
    };
    for index in 0..count {
        let rows = row_numbers(ctx.input(index)?)?;
        let data = ctx.input(count + index)?;
        moves::scatter_rows(ctx.par(), &mut merged, row_len, &rows, data)?;
    }
    Ok(merged)
}

/// Whether every place is named.
fn each_named(ctx: &KernelCtx<'_>, count: usize, places: i64) -> Result<bool> {
    let mut seen = vec![false; places as usize];
    for index in 0..count {
        for place in ctx.input(index)?.slice::<i32>()? {
            seen[*place as usize] = true;
        }
    }
    Ok(seen.iter().all(|seen| *seen))
}

/// Whether data `index` is rows like those of data 0, one for each index.
fn check(ctx: &KernelCtx<'_>, index: usize, count: usize) -> Result<()> {
    let (indices, data) = (ctx.input(index)?.shape(), ctx.input(count + index)?.shape());
    let (indices0, data0) = (ctx.input(0)?.shape(), ctx.input(count)?.shape());
    if data.get(..indices.rank()) != Some(indices) {
        return Err(invalid_argument!(
            "data[{index}].shape = {data} does not start with indices[{index}].shape = {indices}"
        ));
    }
    let (lead0, lead) = (indices0.rank(), indices.rank());
    if data[lead..] != data0[lead0..] {
        return Err(invalid_argument!(
            "Need data[0].shape[{lead0}:] = data[{index}].shape[{lead}:], got data[0].shape = {data0}, data[{index}].shape = {data}, indices[0].shape = {indices0}, indices[{index}].shape = {indices}"
        ));
    }
    Ok(())
}
