//! `RaggedGather`: rows of a ragged tensor by index.
//!
//! TensorFlow: RaggedGather(params_nested_splits: Tsplits…, params_dense_values: Tvalues, indices: Tindices) ->
//! (output_nested_splits: Tsplits…, output_dense_values: Tvalues). Indices of more dimensions make a ragged tensor of more.

use tensorfleet_graph::example::{ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::{Splits, even_splits, rows, splits};
use crate::array::gather::{coordinates, gather_rows};
use crate::array::grads;
use crate::math::cast::from_integers;
use crate::room::grow;
use crate::types::{INDEX, QUANTIZED, VALUES, dtypes};

/// What ragged tensors hold.
pub(super) const HELD: &[DType] = dtypes![VALUES, QUANTIZED];

const ONE_TO_ONE: &[(&str, &str)] = &[("PARAMS_RAGGED_RANK", "1"), ("OUTPUT_RAGGED_RANK", "1")];

pub(crate) static OP: OpDef = OpDef {
    name: "RaggedGather",
    inputs: &[
        "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits",
        "params_dense_values: Tvalues",
        "indices: Tindices",
    ],
    outputs: &[
        "output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits",
        "output_dense_values: Tvalues",
    ],
    attrs: &[
        "Tvalues: type",
        "Tindices: {int32, int64}",
        "Tsplits: {int32, int64} = DT_INT64",
        "PARAMS_RAGGED_RANK: int >= 1",
        "OUTPUT_RAGGED_RANK: int >= 0",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(
        &[("Tvalues", HELD), ("Tindices", INDEX), ("Tsplits", INDEX)],
        build,
    )],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "rows",
            ONE_TO_ONE,
            &[
                i64s(&[4], &[0, 2, 2, 3]),
                x(&[3], &[1.0, 2.0, 3.0]),
                i32s(&[3], &[2, 0, 1]),
            ],
            &[i64s(&[4], &[0, 1, 3, 3]), x(&[3], &[3.0, 1.0, 2.0])],
        ),
        ex_attrs(
            "one row",
            &[("PARAMS_RAGGED_RANK", "1"), ("OUTPUT_RAGGED_RANK", "0")],
            &[
                i32s(&[3], &[0, 2, 3]),
                f32s(&[3, 1], &[1.0, 2.0, 3.0]),
                i64s(&[], &[0]),
            ],
            &[f32s(&[2, 1], &[1.0, 2.0])],
        ),
        ex_attrs(
            "rows of rows by a matrix",
            &[("PARAMS_RAGGED_RANK", "2"), ("OUTPUT_RAGGED_RANK", "3")],
            &[
                i64s(&[3], &[0, 2, 3]),
                i64s(&[4], &[0, 1, 3, 4]),
                f32s(&[4], &[1.0, 2.0, 3.0, 4.0]),
                i64s(&[1, 2], &[1, 0]),
            ],
            &[
                i64s(&[2], &[0, 2]),
                i64s(&[3], &[0, 1, 3]),
                i64s(&[4], &[0, 1, 2, 4]),
                f32s(&[4], &[4.0, 1.0, 2.0, 3.0]),
            ],
        ),
        ex_attrs(
            "no rows",
            ONE_TO_ONE,
            &[i64s(&[1], &[0]), f32s(&[0], &[]), i32s(&[0], &[])],
            &[i64s(&[1], &[0]), f32s(&[0], &[])],
        ),
        ex_err(
            "index",
            ONE_TO_ONE,
            &[i64s(&[2], &[0, 1]), f32s(&[1], &[1.0]), i32s(&[2], &[0, 1])],
            Code::InvalidArgument,
            "indices[1] = 1 is not in [0, 1)",
        ),
        ex_err(
            "splits beyond the values",
            ONE_TO_ONE,
            &[i64s(&[2], &[0, 2]), f32s(&[1], &[1.0]), i32s(&[1], &[0])],
            Code::InvalidArgument,
            "Ragged splits must not point past values",
        ),
        ex_err(
            "falling splits",
            ONE_TO_ONE,
            &[
                i64s(&[4], &[0, 1, 0, 1]),
                f32s(&[1], &[1.0]),
                i32s(&[1], &[0]),
            ],
            Code::InvalidArgument,
            "Ragged splits must be sorted",
        ),
        ex_err(
            "negative split",
            ONE_TO_ONE,
            &[i64s(&[2], &[-1, 1]), f32s(&[1], &[1.0]), i32s(&[1], &[0])],
            Code::InvalidArgument,
            "Ragged splits must be non-negative",
        ),
    ],
    ..OpDef::BLANK
};

/// Which value each gradient belongs to follows from the splits: a range for each index.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let depth = g.num_inputs() - 2;
    let (values, indices) = (g.input(depth), g.input(depth + 1));
    let grad = g.grad(g.num_outputs() - 1)?;
    let mut combined = g.input(0);
    for level in 1..depth {
        let splits = g.input(level);
        combined = grads::element(g, splits, combined)?;
    }
    let flat = g.ints(&[-1])?;
    let indices = g.apply("Reshape", &[indices, flat])?;
    let one = grads::int_like(g, 1, indices)?;
    let next = g.apply("AddV2", &[indices, one])?;
    let starts = grads::element(g, combined, indices)?;
    let limits = grads::element(g, combined, next)?;
    let step = grads::int_like(g, 1, combined)?;
    let split_type = g.dtype(combined);
    let range = g.builder().op("RaggedRange").input(starts).input(limits);
    let range = range.input(step).attr("Tsplits", split_type).build()?;
    let dense_shape = g.shape(values)?;
    let mut out = vec![None; depth];
    out.push(Some(Grad::Rows {
        values: grad,
        indices: range.output(1),
        dense_shape,
    }));
    out.push(None);
    Ok(out)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let depth = usize::try_from(node.attrs.int("PARAMS_RAGGED_RANK")?).unwrap_or(0);
    let split_type = node.attrs.dtype("Tsplits")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (values, indices) = (ctx.input(depth)?, ctx.input(depth + 1)?);
        ensure!(
            ctx.input(0)?.rank() > 0,
            invalid_argument,
            "Split tensors must not be scalars"
        );
        let nested = splits(ctx, depth)?;
        let picked = ctx.ints(depth + 1)?;
        let count = nested.first().map_or(0, |splits| rows(splits));
        for (position, index) in picked.iter().enumerate() {
            ensure!(
                (0..count as i64).contains(index),
                invalid_argument,
                "indices{} = {index} is not in [0, {count})",
                coordinates(indices.shape(), position)
            );
        }
        ensure!(
            values.rank() > 0,
            invalid_argument,
            "params.rank must be nonzero"
        );
        check(&nested, values.shape().dim(0))?;
        let (out_splits, places) = gathered(ctx, &nested, indices.shape(), &picked)?;
        ensure!(
            ctx.num_outputs() == out_splits.len() + 1,
            invalid_argument,
            "OUTPUT_RAGGED_RANK must be {}, got {}",
            out_splits.len(),
            ctx.num_outputs().saturating_sub(1)
        );
        let places = Tensor::from_vec(Shape::vector(places.len()), places)?;
        let out = gather_rows(ctx, values, &places, 0, 0)?;
        for (index, splits) in out_splits.iter().enumerate() {
            let shape = Shape::vector(splits.len());
            ctx.set(index, from_integers(splits, split_type, shape)?);
        }
        ctx.set(out_splits.len(), out);
        Ok(())
    })
}

fn check(nested: &Splits, values: usize) -> Result<()> {
    for (level, splits) in nested.iter().enumerate() {
        let limit = nested.get(level + 1).map_or(values, |next| rows(next));
        let (Some(first), Some(last)) = (splits.first(), splits.last()) else {
            return Err(invalid_argument!("Ragged splits may not be empty"));
        };
        ensure!(
            *first >= 0,
            invalid_argument,
            "Ragged splits must be non-negative"
        );
        ensure!(
            *last <= limit as i64,
            invalid_argument,
            "Ragged splits must not point past values"
        );
        ensure!(
            splits.is_sorted(),
            invalid_argument,
            "Ragged splits must be sorted"
        );
    }
    Ok(())
}

/// The splits of the result, and which values it has.
fn gathered(
    ctx: &KernelCtx<'_>,
    nested: &Splits,
    indices: &Shape,
    picked: &[i64],
) -> Result<(Splits, Vec<i64>)> {
    let mut out: Splits = Vec::new();
    // Indices of several dimensions: rows of even length.
    let mut count = 1i64;
    for pair in indices.windows(2) {
        count = count.saturating_mul(pair[0]);
        out.push(even_splits(count, pair[1])?);
    }
    // One index alone is no row but what lies in it: its outermost splits are no splits of the result.
    let skipped = usize::from(indices.rank() == 0);
    let first = out.len();
    out.resize(first + nested.len().saturating_sub(skipped), vec![0]);
    let mut places = Vec::new();
    for index in picked {
        ctx.poll();
        let (mut start, mut limit) = (*index, *index + 1);
        for (level, splits) in nested.iter().enumerate() {
            let split = |at: i64| splits.get(at as usize).copied().unwrap_or(0);
            let slot = (level >= skipped)
                .then(|| out.get_mut(first + level - skipped))
                .flatten();
            if let Some(out) = slot {
                let delta = out.last().copied().unwrap_or(0) - split(start);
                grow(out, limit.abs_diff(start) as usize)?;
                out.extend((start..limit).map(|at| split(at + 1) + delta));
            }
            (start, limit) = (split(start), split(limit));
        }
        // Values without elements may be more than memory has room for.
        grow(&mut places, limit.abs_diff(start) as usize)?;
        places.extend(start..limit);
    }
    Ok((out, places))
}
