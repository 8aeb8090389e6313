//! `RaggedTensorFromVariant`: variants put together to one ragged tensor.
//!
//! TensorFlow: RaggedTensorFromVariant(encoded_ragged: variant) -> (output_nested_splits: Tsplits…, output_dense_values: Tvalues).
//! The dimensions of the input become the outermost of the result.

use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor, Variant};

use super::gather::HELD;
use super::to_variant::SCRIPTS;
use super::variant::RaggedVariant;
use super::{Splits, even_splits, rows};
use crate::array::moves;
use crate::math::cast::{from_integers, integers};
use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "RaggedTensorFromVariant",
    inputs: &["encoded_ragged: variant"],
    outputs: &[
        "output_nested_splits: output_ragged_rank * Tsplits",
        "output_dense_values: Tvalues",
    ],
    attrs: &[
        "input_ragged_rank: int >= -1",
        "output_ragged_rank: int >= 0",
        "Tvalues: type",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("Tvalues", HELD), ("Tsplits", INDEX)], build)],
    exactness: Exactness::Bits,
    scripts: SCRIPTS,
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let depth = g.num_outputs() - 1;
    let splits: Vec<Output> = (0..depth).map(|level| g.output(level)).collect();
    let (grad, split_type) = (g.grad(depth)?, g.attr("Tsplits")?);
    let node = g.builder().op("RaggedTensorToVariant").list(&splits);
    let node = node.input(grad).attr("Tsplits", split_type);
    dense(node.attr("batched_input", depth > 0).output()?)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let given = node.attrs.int("input_ragged_rank")?;
    let depth = node.attrs.int("output_ragged_rank")?;
    let (dtype, split_type) = (node.attrs.dtype("Tvalues")?, node.attrs.dtype("Tsplits")?);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let encoded = ctx.input(0)?;
        let inner = inner_depth(given, depth, encoded.rank() as i64)?;
        let parts = decoded(encoded, inner, depth, dtype, split_type)?;
        let out = match parts.as_slice() {
            [only] if encoded.rank() == 0 => only.clone(),
            _ if depth == 0 => RaggedVariant {
                splits: Vec::new(),
                values: stacked(ctx, encoded.shape(), &parts, dtype)?,
            },
            _ => joined(ctx, encoded.shape(), &parts, inner, dtype, split_type)?,
        };
        let last = out.splits.len();
        for (index, tensor) in out.splits.into_iter().enumerate() {
            ctx.set(index, tensor);
        }
        ctx.set(last, out.values);
        Ok(())
    })
}

/// How many splits each variant must have.
fn inner_depth(given: i64, depth: i64, rank: i64) -> Result<usize> {
    let inner = match given {
        -1 if depth == 0 => (depth - rank).max(0),
        -1 => depth - rank,
        given => given,
    };
    ensure!(
        inner >= 0,
        invalid_argument,
        "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= 0, found output_ragged_rank: {depth}, encoded_variant.dims(): {rank}, inferred input_ragged_rank: {inner}"
    );
    ensure!(
        (depth == 0 && inner == 0) || depth == rank + inner,
        invalid_argument,
        "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: {depth}, input_ragged_rank: {inner}, encoded_variant.dims(): {rank}."
    );
    Ok(inner as usize)
}

fn decoded(
    encoded: &Tensor,
    inner: usize,
    depth: i64,
    dtype: DType,
    split_type: DType,
) -> Result<Vec<RaggedVariant>> {
    let mut parts = Vec::with_capacity(encoded.elements());
    for (at, variant) in encoded.slice::<Variant>()?.iter().enumerate() {
        let Some(part) = RaggedVariant::of(variant) else {
            return Err(invalid_argument!(
                "Input Variant element at index {at} doesn't hold a RaggedTensorVariant: {variant:?}"
            ));
        };
        ensure!(
            part.splits.len() == inner,
            invalid_argument,
            "Encoded input RaggedTensorVariant has ragged_rank={}.  Expected ragged_rank={inner}.",
            part.splits.len()
        );
        ensure!(
            part.values.dtype() == dtype,
            invalid_argument,
            "Expected values Tensor dtype: {dtype}, found: {}",
            part.values.dtype()
        );
        ensure!(
            part.values.rank() >= 1 || depth == 0,
            invalid_argument,
            "Ragged values must have rank >= 1; encoded scalar element at index {at} has values of shape {}",
            part.values.shape()
        );
        for splits in &part.splits {
            ensure!(
                splits.dtype() == split_type,
                invalid_argument,
                "Expected row_splits Tensor dtype: {split_type}, found: {}",
                splits.dtype()
            );
            ensure!(
                splits.rank() == 1,
                invalid_argument,
                "Ragged splits must have rank 1; encoded scalar element at index {at} has splits of shape {}",
                splits.shape()
            );
        }
        parts.push(part.into_owned());
    }
    Ok(parts)
}

/// Dense values of one shape below the dimensions of the variants.
fn stacked(
    ctx: &KernelCtx<'_>,
    outer: &Shape,
    parts: &[RaggedVariant],
    dtype: DType,
) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Tensor::zeros(dtype, Shape::vector(0));
    };
    let shape = first.values.shape();
    for (at, part) in parts.iter().enumerate() {
        check_alike(shape, at, part.values.shape(), "")?;
    }
    concat(ctx, parts, dtype, outer.concat(shape)?)
}

fn check_alike(first: &[i64], at: usize, own: &[i64], advice: &str) -> Result<()> {
    if first != own {
        let (first, own) = (Shape::new(first)?, Shape::new(own)?);
        return Err(invalid_argument!(
            "All flat_values must have compatible shapes.  Shape at index 0: {first}.  Shape at index {at}: {own}{advice}"
        ));
    }
    Ok(())
}

fn concat(
    ctx: &KernelCtx<'_>,
    parts: &[RaggedVariant],
    dtype: DType,
    shape: Shape,
) -> Result<Tensor> {
    let parts = parts
        .iter()
        .map(|part| (&part.values, part.values.elements()));
    let parts: Vec<(&Tensor, usize)> = parts.filter(|(_, len)| *len > 0).collect();
    if parts.is_empty() {
        return Tensor::zeros(dtype, shape);
    }
    moves::concat(ctx.par(), dtype, &parts, shape)
}

/// The rows of all variants below splits that tell these apart.
fn joined(
    ctx: &KernelCtx<'_>,
    outer: &Shape,
    parts: &[RaggedVariant],
    inner: usize,
    dtype: DType,
    split_type: DType,
) -> Result<RaggedVariant> {
    let mut nested: Splits = Vec::new();
    // Only the size of a dimension itself counts here: TensorFlow's way for variants of several dimensions.
    for pair in outer.windows(2) {
        nested.push(even_splits(pair[0], pair[1])?);
    }
    let mut by_part = vec![0i64];
    let mut deeper: Splits = vec![vec![0]; inner];
    for part in parts {
        let mut count = part.values.shape().dim(0) as i64;
        for (level, (splits, out)) in part.splits.iter().zip(&mut deeper).enumerate() {
            let splits = integers(splits)?;
            if level == 0 {
                count = rows(&splits) as i64;
            }
            let base = out.last().copied().unwrap_or(0);
            out.extend(splits.iter().skip(1).map(|split| base.wrapping_add(*split)));
        }
        by_part.push(by_part.last().copied().unwrap_or(0) + count);
    }
    nested.push(by_part);
    nested.append(&mut deeper);
    let values = match parts.first() {
        None => Tensor::zeros(dtype, Shape::vector(0))?,
        Some(first) => {
            let mut count = 0;
            for (at, part) in parts.iter().enumerate() {
                let (shape, own) = (first.values.shape(), part.values.shape());
                ensure!(
                    own.rank() == shape.rank(),
                    invalid_argument,
                    "Rank of values must match for all components; values shape at index 0: {shape}, values shape at index {at}: {own}"
                );
                check_alike(
                    &shape[1..],
                    at,
                    &own[1..],
                    ".  If you are using tf.map_fn, then you may need to specify an explicit fn_output_signature with appropriate ragged_rank, and/or convert output tensors to RaggedTensors.",
                )?;
                count += own[0];
            }
            concat(ctx, parts, dtype, first.values.shape().with_dim(0, count)?)?
        }
    };
    let splits = nested.iter().map(|splits| {
        let shape = Shape::vector(splits.len());
        from_integers(splits, split_type, shape)
    });
    Ok(RaggedVariant {
        splits: splits.collect::<Result<_>>()?,
        values,
    })
}
