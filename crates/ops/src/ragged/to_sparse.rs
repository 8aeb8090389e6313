//! `RaggedTensorToSparse`: a ragged tensor as a sparse one.
//!
//! TensorFlow: RaggedTensorToSparse(rt_nested_splits: Tsplits…, rt_dense_values: T) -> (sparse_indices: int64,
//! sparse_values: T, sparse_dense_shape: int64). Dimensions are as large as their longest row.

use tensorfleet_graph::example::{ex, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{Shape, Tensor};

use super::{Splits, rows, splits};
use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "RaggedTensorToSparse",
    inputs: &[
        "rt_nested_splits: RAGGED_RANK * Tsplits",
        "rt_dense_values: T",
    ],
    outputs: &[
        "sparse_indices: int64",
        "sparse_values: T",
        "sparse_dense_shape: int64",
    ],
    attrs: &[
        "RAGGED_RANK: int >= 1",
        "T: type",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("Tsplits", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "rows",
            &[i64s(&[4], &[0, 2, 2, 3]), x(&[3], &[1.0, 2.0, 3.0])],
            &[
                i64s(&[3, 2], &[0, 0, 0, 1, 2, 0]),
                x(&[3], &[1.0, 2.0, 3.0]),
                i64s(&[2], &[3, 2]),
            ],
        ),
        ex(
            "rows of rows of pairs",
            &[
                i32s(&[3], &[0, 2, 3]),
                i32s(&[4], &[0, 1, 1, 2]),
                f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
            ],
            &[
                i64s(&[4, 4], &[0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1]),
                f32s(&[4], &[1.0, 2.0, 3.0, 4.0]),
                i64s(&[4], &[2, 2, 1, 2]),
            ],
        ),
        ex(
            "nothing",
            &[i64s(&[1], &[0]), x(&[0], &[])],
            &[i64s(&[0, 2], &[]), x(&[0], &[]), i64s(&[2], &[0, 0])],
        ),
        ex_err(
            "first split",
            &[],
            &[i64s(&[2], &[1, 2]), f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "First value of ragged splits must be 0.",
        ),
        ex_err(
            "last split",
            &[],
            &[i64s(&[2], &[0, 1]), f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "Final value of ragged splits must match the length the corresponding ragged values.",
        ),
        ex_err(
            "falling",
            &[],
            &[i64s(&[4], &[0, 2, 1, 2]), f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "Ragged splits should be non decreasing, but we got 2 followed by 1",
        ),
        ex_err(
            "no splits",
            &[],
            &[i64s(&[0], &[]), f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "ragged splits may not be empty.",
        ),
    ],
    ..OpDef::BLANK
};

/// The values stay in order.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, last) = (g.grad(1)?, g.num_inputs() - 1);
    let mut grads = vec![None; last];
    let to_values = g.reshape_like(grad, g.input(last))?;
    grads.push(Some(Grad::Dense(to_values)));
    Ok(grads)
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let depth = ctx.num_inputs() - 1;
        let (nested, values) = (splits(ctx, depth)?, ctx.input(depth)?.clone());
        check(&nested, values.shape())?;
        let inner = Shape::new(values.shape().get(1..).unwrap_or_default())?;
        let indices = indices(&nested, &inner);
        let outer = nested.first().map_or(0, |splits| rows(splits));
        let mut shape = vec![outer as i64];
        shape.extend(nested.iter().map(|splits| longest(splits)));
        shape.extend_from_slice(&inner);
        let count = values.elements();
        let matrix = Shape::matrix(count, shape.len())?;
        ctx.set(0, Tensor::from_vec(matrix, indices)?);
        ctx.set(1, values.reshaped(Shape::vector(count))?);
        ctx.set(2, Tensor::vector(&shape));
        Ok(())
    })
}

fn check(nested: &Splits, values: &Shape) -> Result<()> {
    let mut expected = None;
    for splits in nested {
        ensure!(
            !splits.is_empty(),
            invalid_argument,
            "ragged splits may not be empty."
        );
        ensure!(
            splits[0] == 0,
            invalid_argument,
            "First value of ragged splits must be 0."
        );
        for pair in splits.windows(2) {
            ensure!(
                pair[0] <= pair[1],
                invalid_argument,
                "Ragged splits should be non decreasing, but we got {} followed by {}",
                pair[0],
                pair[1]
            );
        }
        check_length(expected, rows(splits))?;
        expected = splits.last().copied();
    }
    ensure!(
        values.rank() > 0,
        invalid_argument,
        "Shape must be at least rank 1 but is rank 0"
    );
    check_length(expected, values.dim(0))
}

fn check_length(expected: Option<i64>, length: usize) -> Result<()> {
    ensure!(
        expected.is_none_or(|expected| expected == length as i64),
        invalid_argument,
        "Final value of ragged splits must match the length the corresponding ragged values."
    );
    Ok(())
}

fn longest(splits: &[i64]) -> i64 {
    let lengths = splits.windows(2).map(|pair| pair[1] - pair[0]);
    lengths.max().unwrap_or(0)
}

/// The coordinates of all values, dimension by dimension: each row hands its own on to all that lies in it.
fn indices(nested: &Splits, inner: &Shape) -> Vec<i64> {
    let outer = nested.first().map_or(0, |splits| rows(splits));
    let (mut flat, mut width): (Vec<i64>, usize) = ((0..outer as i64).collect(), 1);
    let mut add = |lengths: &mut dyn Iterator<Item = i64>| {
        let mut next = Vec::new();
        for (place, length) in flat.chunks_exact(width).zip(lengths) {
            for at in 0..length {
                next.extend_from_slice(place);
                next.push(at);
            }
        }
        flat = next;
        width += 1;
    };
    for splits in nested {
        add(&mut splits.windows(2).map(|pair| pair[1] - pair[0]));
    }
    for dim in inner.iter() {
        add(&mut std::iter::repeat(*dim));
    }
    flat
}
