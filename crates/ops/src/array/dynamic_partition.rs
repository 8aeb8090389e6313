//! `DynamicPartition`: rows sorted into outputs by number.
//!
//! TensorFlow: DynamicPartition(data: T, partitions: int32) -> outputs: num_partitions * T. The shape of `data`
//! begins with that of `partitions`; what is behind is a row.

use tensorfleet_graph::example::{ex_attrs, ex_err, f32s, i32s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::{Gather, partition_positions};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{PartialShape, Shape, Tensor};

use super::gather::bad_index;
use super::{grads, moves};
use crate::types::MOVABLE;

const TWO: &[(&str, &str)] = &[("num_partitions", "2")];

pub(crate) static OP: OpDef = OpDef {
    name: "DynamicPartition",
    inputs: &["data: T", "partitions: int32"],
    outputs: &["outputs: num_partitions * T"],
    attrs: &["num_partitions: int >= 1", "T: type"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", MOVABLE)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "rows",
            TWO,
            &[
                x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                i32s(&[3], &[1, 0, 1]),
            ],
            &[x(&[1, 2], &[3.0, 4.0]), x(&[2, 2], &[1.0, 2.0, 5.0, 6.0])],
        ),
        ex_attrs(
            "matrix of numbers",
            TWO,
            &[
                strs(&[2, 2], &["a", "b", "c", "d"]),
                i32s(&[2, 2], &[0, 0, 1, 0]),
            ],
            &[strs(&[3], &["a", "b", "d"]), strs(&[1], &["c"])],
        ),
        ex_attrs(
            "one number",
            TWO,
            &[f32s(&[2], &[1.0, 2.0]), i32s(&[], &[1])],
            &[f32s(&[0, 2], &[]), f32s(&[1, 2], &[1.0, 2.0])],
        ),
        ex_attrs(
            "empty",
            TWO,
            &[f32s(&[0, 2], &[]), i32s(&[0], &[])],
            &[f32s(&[0, 2], &[]), f32s(&[0, 2], &[])],
        ),
        ex_err(
            "out of range",
            TWO,
            &[f32s(&[2], &[1.0]), i32s(&[2], &[0, 2])],
            Code::InvalidArgument,
            "partitions[1] = 2 is not in [0, 2)",
        ),
        ex_err(
            "shapes",
            TWO,
            &[f32s(&[2], &[1.0]), i32s(&[1], &[0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    if let (Some(data), Some(lead)) = (ctx.input(0).dims(), ctx.input(1).rank())
        && let Some(tail) = data.get(lead..)
    {
        let shape = PartialShape::new(&[&[-1], tail].concat());
        for index in 0..ctx.num_outputs() {
            ctx.set(index, shape.clone());
        }
    }
    Ok(())
}

/// Partitions the row numbers in the same way, which says where each gradient row came from.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (data, partitions, count) = (g.input(0), g.input(1), g.num_outputs());
    let mut output_grads = Vec::with_capacity(count);
    for index in 0..count {
        output_grads.push(g.grad(index)?);
    }
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let size = g.apply("Size", &[partitions])?;
    let numbers = g.apply("Range", &[zero, size, one])?;
    let numbers = g.reshape_like(numbers, partitions)?;
    let parts = g.builder().op("DynamicPartition");
    let parts = parts.input(numbers).input(partitions);
    let parts = parts.attr("num_partitions", count as i64).build()?;
    let parts: Vec<_> = (0..count).map(|index| parts.output(index)).collect();
    let stitched = g.builder().op("ParallelDynamicStitch");
    let stitched = stitched.list(&parts).list(&output_grads).output()?;
    let grad = g.reshape_like(stitched, data)?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (data, partitions) = (ctx.input(0)?, ctx.input(1)?);
        let lead = partitions.rank();
        if data.shape().get(..lead) != Some(partitions.shape()) {
            return Err(invalid_argument!(
                "data.shape must start with partitions.shape, got data.shape = {}, partitions.shape = {}",
                data.shape(),
                partitions.shape()
            ));
        }
        let count = ctx.num_outputs();
        let parts = partition_positions(partitions.slice::<i32>()?, count)
            .map_err(|bad| bad_index("partitions", partitions.shape(), bad, count))?;
        let rest = &data.shape()[lead..];
        let mut outputs = Vec::with_capacity(count);
        for rows in &parts {
            let shape = Shape::new(&[&[rows.len() as i64], rest].concat())?;
            let mut output = Tensor::new(data.dtype(), shape)?;
            let gather = Gather {
                batch: 1,
                outer: 1,
                limit: partitions.elements(),
                inner: data.shape().elements_in(lead..data.rank()),
                count: rows.len(),
            };
            moves::gather(ctx.par(), gather, data, rows, &mut output)?;
            outputs.push(output);
        }
        for (index, output) in outputs.into_iter().enumerate() {
            ctx.set(index, output);
        }
        Ok(())
    })
}
