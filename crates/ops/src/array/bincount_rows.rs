//! `SparseBincount`, `RaggedBincount`: how often, or with which total weight, each small integer occurs in a row.
//!
//! TensorFlow: SparseBincount(indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T) -> output: T;
//! RaggedBincount(splits: int64, values: Tidx, size: Tidx, weights: T) -> output: T. Values from `size` on are left out; empty
//! weights mean one each; attr binary_output says only whether.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::bincount::{WEIGHTS, bins, count};
use crate::sparse::parts::Part;
use crate::types::INDEX;

const ROWS: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: &[
        "Tidx: {int32, int64}",
        "T: {int32, int64, float, double}",
        "binary_output: bool = false",
    ],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "RaggedBincount",
        inputs: &["splits: int64", "values: Tidx", "size: Tidx", "weights: T"],
        kernels: &[cpu(&[("Tidx", INDEX), ("T", WEIGHTS)], build_ragged)],
        examples: &[
            ex(
                "rows",
                &[
                    i64s(&[4], &[0, 0, 3, 5]),
                    i32s(&[5], &[1, 1, 0, 5, 2]),
                    i32s(&[], &[3]),
                    x(&[0], &[]),
                ],
                &[x(&[3, 3], &[0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0])],
            ),
            ex(
                "weighted",
                &[
                    i64s(&[2], &[0, 3]),
                    i64s(&[3], &[1, 1, 0]),
                    i64s(&[], &[2]),
                    x(&[3], &[2.0, 3.0, 4.0]),
                ],
                &[x(&[1, 2], &[4.0, 5.0])],
            ),
            ex_attrs(
                "whether at all",
                &[("binary_output", "true")],
                &[
                    i64s(&[2], &[0, 3]),
                    i64s(&[3], &[1, 1, 0]),
                    i64s(&[], &[3]),
                    x(&[0], &[]),
                ],
                &[x(&[1, 3], &[1.0, 1.0, 0.0])],
            ),
            ex_err(
                "negative",
                &[],
                &[
                    i64s(&[2], &[0, 1]),
                    i32s(&[1], &[-1]),
                    i32s(&[], &[3]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "Input must be non-negative",
            ),
            ex_err(
                "first split",
                &[],
                &[
                    i64s(&[2], &[1, 1]),
                    i32s(&[1], &[1]),
                    i32s(&[], &[3]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "Splits must start with 0, not with 1",
            ),
            ex_err(
                "last split",
                &[],
                &[
                    i64s(&[2], &[0, 2]),
                    i32s(&[1], &[1]),
                    i32s(&[], &[3]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "Splits must end with the number of values, got 2 instead of 1",
            ),
            ex_err(
                "no splits",
                &[],
                &[
                    i64s(&[0], &[]),
                    i32s(&[0], &[]),
                    i32s(&[], &[3]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..ROWS
    },
    OpDef {
        name: "SparseBincount",
        inputs: &[
            "indices: int64",
            "values: Tidx",
            "dense_shape: int64",
            "size: Tidx",
            "weights: T",
        ],
        kernels: &[cpu(&[("Tidx", INDEX), ("T", WEIGHTS)], build_sparse)],
        examples: &[
            ex(
                "rows",
                &[
                    i64s(&[4, 2], &[0, 0, 0, 1, 2, 0, 2, 3]),
                    i32s(&[4], &[1, 1, 0, 5]),
                    i64s(&[2], &[3, 4]),
                    i32s(&[], &[2]),
                    x(&[0], &[]),
                ],
                &[x(&[3, 2], &[0.0, 2.0, 0.0, 0.0, 1.0, 0.0])],
            ),
            ex(
                "one row, weighted",
                &[
                    i64s(&[3, 1], &[0, 2, 4]),
                    i64s(&[3], &[1, 1, 0]),
                    i64s(&[1], &[5]),
                    i64s(&[], &[3]),
                    x(&[3], &[2.0, 3.0, 4.0]),
                ],
                &[x(&[3], &[4.0, 5.0, 0.0])],
            ),
            ex_attrs(
                "whether at all",
                &[("binary_output", "true")],
                &[
                    i64s(&[2, 2], &[0, 0, 0, 1]),
                    i64s(&[2], &[1, 1]),
                    i64s(&[2], &[1, 2]),
                    i64s(&[], &[2]),
                    x(&[0], &[]),
                ],
                &[x(&[1, 2], &[0.0, 1.0])],
            ),
            ex_err(
                "outside of the shape",
                &[],
                &[
                    i64s(&[1, 2], &[1, 0]),
                    i32s(&[1], &[1]),
                    i64s(&[2], &[1, 2]),
                    i32s(&[], &[2]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "negative size",
                &[],
                &[
                    i64s(&[1, 2], &[0, 0]),
                    i32s(&[1], &[1]),
                    i64s(&[2], &[1, 2]),
                    i32s(&[], &[-2]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..ROWS
    },
];

fn check_weights(weights: &Tensor, values: usize) -> Result<()> {
    ensure!(
        weights.is_empty() || weights.elements() == values,
        invalid_argument,
        "Input indices and weights must have the same size: {values} and {}",
        weights.elements()
    );
    Ok(())
}

fn build_sparse(node: &NodeInfo) -> Result<AnyKernel> {
    let binary = node.attrs.bool("binary_output")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let size = bins(ctx, 3)?;
        let part = Part::of(ctx, 0)?;
        part.check_bounds()?;
        ensure!(
            part.rank() > 0,
            invalid_argument,
            "dense_shape must have at least 1 dimension, got 0"
        );
        let (numbers, weights) = (ctx.ints(1)?, ctx.input(4)?);
        check_weights(weights, numbers.len())?;
        let is_vector = part.rank() == 1;
        if is_vector && let Some(negative) = numbers.iter().find(|number| **number < 0) {
            return Err(invalid_argument!(
                "Input arr must be non-negative! Negative input value found: {negative}"
            ));
        }
        let shape = match is_vector {
            true => Shape::new(&[size])?,
            false => Shape::new(&[part.shape[0], size])?,
        };
        let mut counts = Tensor::zeros(weights.dtype(), shape)?;
        let row_of = |at: usize| match is_vector {
            true => 0,
            false => part.row(at)[0] as usize,
        };
        count(&numbers, &row_of, weights, binary, &mut counts)?;
        ctx.set(0, counts);
        Ok(())
    })
}

fn build_ragged(node: &NodeInfo) -> Result<AnyKernel> {
    let binary = node.attrs.bool("binary_output")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let size = bins(ctx, 2)?;
        let (splits, numbers) = (ctx.ints(0)?, ctx.ints(1)?);
        ensure!(
            !splits.is_empty(),
            invalid_argument,
            "Splits must be non-empty"
        );
        let rows = rows_of_values(&splits, numbers.len())?;
        ensure!(
            numbers.iter().all(|number| *number >= 0),
            invalid_argument,
            "Input must be non-negative"
        );
        let weights = ctx.input(3)?;
        check_weights(weights, numbers.len())?;
        let shape = Shape::new(&[splits.len() as i64 - 1, size])?;
        let mut counts = Tensor::zeros(weights.dtype(), shape)?;
        count(&numbers, &|at| rows[at], weights, binary, &mut counts)?;
        ctx.set(0, counts);
        Ok(())
    })
}

/// The row of each value by splits that begin with zero and end with the number of values; between them they need not be in
/// order, then the first that is beyond a value counts.
pub(super) fn rows_of_values(splits: &[i64], values: usize) -> Result<Vec<usize>> {
    let (first, last) = (splits.first().copied(), splits.last().copied());
    ensure!(
        first == Some(0),
        invalid_argument,
        "Splits must start with 0, not with {}",
        first.unwrap_or(0)
    );
    ensure!(
        last == Some(values as i64),
        invalid_argument,
        "Splits must end with the number of values, got {} instead of {values}",
        last.unwrap_or(0)
    );
    let mut next = 1;
    let rows = (0..values as i64).map(|at| {
        while splits.get(next).is_some_and(|split| at >= *split) {
            next += 1;
        }
        next - 1
    });
    Ok(rows.collect())
}
