//! `RaggedTensorToVariant`, `RaggedTensorToVariantGradient`: a ragged tensor as one variant, or each of its rows as one; and back for
//! gradients.
//!
//! TensorFlow: RaggedTensorToVariant(rt_nested_splits: Tsplits…, rt_dense_values: Tvalues) -> encoded_ragged: variant;
//! RaggedTensorToVariantGradient(encoded_ragged_grad: variant, row_splits: Tsplits, dense_values_shape: int32) ->
//! dense_values_grad: Tvalues, zeros for rows of which nothing is known.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor, Variant};

use super::gather::HELD;
use super::variant::RaggedVariant;
use super::{check_splits, rows, splits};
use crate::array::{grads, moves};
use crate::math::cast::from_integers;
use crate::types::INDEX;

pub(super) const SCRIPTS: &[Script] = &[
    script(
        "whole and by row",
        "outer = int64[3]{0, 2, 3}
         inner = int64[4]{0, 1, 3, 3}
         values = float[3]{1, 2, 3}
         whole = RaggedTensorToVariant([outer, inner], values) {batched_input=false}
         rows = RaggedTensorToVariant([outer, inner], values) {batched_input=true}
         a = RaggedTensorFromVariant(whole) {input_ragged_rank=2, output_ragged_rank=2, Tvalues=DT_FLOAT, Tsplits=DT_INT64}
         b = RaggedTensorFromVariant(rows) {input_ragged_rank=1, output_ragged_rank=2, Tvalues=DT_FLOAT, Tsplits=DT_INT64}
         guessed = RaggedTensorFromVariant(rows) {input_ragged_rank=-1, output_ragged_rank=2, Tvalues=DT_FLOAT, Tsplits=DT_INT64}
         other = RaggedTensorFromVariant(rows) {input_ragged_rank=1, output_ragged_rank=2, Tvalues=DT_INT32, Tsplits=DT_INT64}
         deep = RaggedTensorFromVariant(rows) {input_ragged_rank=2, output_ragged_rank=3, Tvalues=DT_FLOAT, Tsplits=DT_INT64}
         narrow = RaggedTensorFromVariant(rows) {input_ragged_rank=1, output_ragged_rank=2, Tvalues=DT_FLOAT, Tsplits=DT_INT32}
         zeros = ZerosLike(whole)
         z = RaggedTensorFromVariant(zeros) {input_ragged_rank=2, output_ragged_rank=2, Tvalues=DT_FLOAT, Tsplits=DT_INT64}
         sum = AddN([whole, whole])
         twice = RaggedTensorFromVariant(sum) {input_ragged_rank=2, output_ragged_rank=2, Tvalues=DT_FLOAT, Tsplits=DT_INT64}",
        &[
            "fetch a:0, a:1, a:2 => int64[3]{0, 2, 3}; int64[4]{0, 1, 3, 3}; float[3]{1, 2, 3}",
            "fetch b:0, b:1, b:2 => int64[3]{0, 2, 3}; int64[4]{0, 1, 3, 3}; float[3]{1, 2, 3}",
            "fetch guessed:0, guessed:1, guessed:2 => int64[3]{0, 2, 3}; int64[4]{0, 1, 3, 3}; float[3]{1, 2, 3}",
            "fetch other:2 fails INVALID_ARGUMENT Expected values Tensor dtype: int32, found: float",
            "fetch deep:2 fails INVALID_ARGUMENT Encoded input RaggedTensorVariant has ragged_rank=1.  Expected ragged_rank=2.",
            "fetch narrow:2 fails INVALID_ARGUMENT Expected row_splits Tensor dtype: int32, found: int64",
            "fetch z:0, z:1, z:2 => int64[3]{0, 2, 3}; int64[4]{0, 1, 3, 3}; float[3]{0, 0, 0}",
            "fetch twice:2 => float[3]{2, 4, 6}",
        ],
    ),
    script(
        "rows of pairs",
        "outer = int32[4]{0, 2, 2, 3}
         values = float[3, 2]{1, 2, 3, 4, 5, 6}
         rows = RaggedTensorToVariant([outer], values) {batched_input=true}
         back = RaggedTensorFromVariant(rows) {input_ragged_rank=0, output_ragged_rank=1, Tvalues=DT_FLOAT, Tsplits=DT_INT32}
         dims = int32[2]{3, 2}
         grad = RaggedTensorToVariantGradient(rows, outer, dims) {Tvalues=DT_FLOAT}
         dense = RaggedTensorToVariant([], values) {batched_input=true, Tsplits=DT_INT32}
         stacked = RaggedTensorFromVariant(dense) {input_ragged_rank=0, output_ragged_rank=0, Tvalues=DT_FLOAT, Tsplits=DT_INT32}",
        &[
            "fetch back:0, back:1 => int32[4]{0, 2, 2, 3}; float[3, 2]{1, 2, 3, 4, 5, 6}",
            "fetch grad => float[3, 2]{1, 2, 3, 4, 5, 6}",
            "fetch stacked => float[3, 2]{1, 2, 3, 4, 5, 6}",
        ],
    ),
    script(
        "splits that are none",
        "short = int64[2]{0, 2}
         late = int64[2]{1, 3}
         none = int64[0]{}
         falling = int64[4]{0, 2, 1, 3}
         values = float[3]{1, 2, 3}
         a = RaggedTensorToVariant([short], values) {batched_input=true}
         b = RaggedTensorToVariant([late], values) {batched_input=true}
         c = RaggedTensorToVariant([none], values) {batched_input=true}
         d = RaggedTensorToVariant([falling], values) {batched_input=true}",
        &[
            "run a fails INVALID_ARGUMENT last element of ragged splits must be the number of ragged values(3) but is 2",
            "run b fails INVALID_ARGUMENT first element of ragged splits  must be 0 but is 1",
            "run c fails INVALID_ARGUMENT ragged splits must have at least one splits, but is empty",
            "run d fails INVALID_ARGUMENT but ragged_splits[2]=1 is smaller than row_splits[1]=2",
        ],
    ),
];

const RAGGED: OpDef = OpDef {
    exactness: Exactness::Bits,
    scripts: SCRIPTS,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "RaggedTensorToVariant",
        inputs: &[
            "rt_nested_splits: RAGGED_RANK * Tsplits",
            "rt_dense_values: Tvalues",
        ],
        outputs: &["encoded_ragged: variant"],
        attrs: &[
            "RAGGED_RANK: int >= 0",
            "Tvalues: type",
            "Tsplits: {int32, int64} = DT_INT64",
            "batched_input: bool",
        ],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("Tvalues", HELD), ("Tsplits", INDEX)], build)],
        ..RAGGED
    },
    OpDef {
        name: "RaggedTensorToVariantGradient",
        inputs: &[
            "encoded_ragged_grad: variant",
            "row_splits: Tsplits",
            "dense_values_shape: int32",
        ],
        outputs: &["dense_values_grad: Tvalues"],
        attrs: &["Tvalues: type", "Tsplits: {int32, int64} = DT_INT64"],
        kernels: &[cpu(&[("Tvalues", HELD), ("Tsplits", INDEX)], build_grad)],
        ..RAGGED
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, last) = (g.grad(0)?, g.num_inputs() - 1);
    let values = g.input(last);
    let splits = match last {
        0 => grads::int(g, 0)?,
        _ => g.input(0),
    };
    let (shape, dtype) = (g.shape(values)?, g.dtype(values));
    let node = g.builder().op("RaggedTensorToVariantGradient").input(grad);
    let node = node.input(splits).input(shape).attr("Tvalues", dtype);
    let mut out = vec![None; last];
    out.push(Some(Grad::Dense(node.output()?)));
    Ok(out)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let by_row = node.attrs.bool("batched_input")?;
    let split_type = node.attrs.dtype("Tsplits")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let depth = ctx.num_inputs() - 1;
        let values = ctx.input(depth)?.clone();
        let nested = splits(ctx, depth)?;
        for level in (0..depth).rev() {
            let count = match nested.get(level + 1) {
                Some(next) => rows(next),
                None => {
                    ensure!(
                        values.rank() >= 1,
                        invalid_argument,
                        "Requires flat_values to have rank>=1 when nested_row_splits is not empty, but is 0."
                    );
                    values.shape().dim(0)
                }
            };
            check_splits(&nested[level], ctx.input(level)?.rank(), Some(count))?;
        }
        if !by_row {
            let splits = (0..depth).map(|level| ctx.input(level).cloned());
            let splits = splits.collect::<Result<_>>()?;
            let whole = RaggedVariant { splits, values }.into_variant();
            ctx.set(0, Tensor::scalar(whole));
            return Ok(());
        }
        let Some((outer, deeper)) = nested.split_first() else {
            let out = Tensor::from_vec(Shape::vector(count_of(&values)?), dense_rows(&values)?)?;
            ctx.set(0, out);
            return Ok(());
        };
        let mut variants = Vec::with_capacity(rows(outer));
        for bounds in outer.windows(2) {
            let (mut start, mut end) = (bounds[0] as usize, bounds[1] as usize);
            let mut splits = Vec::with_capacity(deeper.len());
            for level in deeper {
                let own = level.get(start..=end).unwrap_or(&[0]);
                let base = own[0];
                let shifted: Vec<i64> = own.iter().map(|split| split - base).collect();
                splits.push(from_integers(
                    &shifted,
                    split_type,
                    Shape::vector(shifted.len()),
                )?);
                (start, end) = (base as usize, own[own.len() - 1] as usize);
            }
            let values = values.rows(start, end - start)?;
            variants.push(RaggedVariant { splits, values }.into_variant());
        }
        let out = Tensor::from_vec(Shape::vector(variants.len()), variants)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn count_of(values: &Tensor) -> Result<usize> {
    ensure!(
        values.rank() >= 1,
        invalid_argument,
        "Can't unbatch rank-0 tensor."
    );
    Ok(values.shape().dim(0))
}

/// Without splits: each row is dense, one dimension less.
fn dense_rows(values: &Tensor) -> Result<Vec<Variant>> {
    let shape = Shape::new(values.shape().get(1..).unwrap_or_default())?;
    let row = |at: usize| {
        let ragged = RaggedVariant {
            splits: Vec::new(),
            values: values.rows(at, 1)?.reshaped(shape.clone())?,
        };
        Ok(ragged.into_variant())
    };
    (0..count_of(values)?).map(row).collect()
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("Tvalues")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let splits = ctx.ints(1)?;
        let shape = Shape::new(&ctx.ints(2)?)?;
        if ctx.input(1)?.rank() > 0 {
            check_splits(&splits, ctx.input(1)?.rank(), None)?;
        }
        let variants = ctx.input(0)?.slice::<Variant>()?;
        let mut parts = Vec::with_capacity(variants.len());
        for (at, variant) in variants.iter().enumerate() {
            if let Some(ragged) = RaggedVariant::of(variant) {
                parts.push(ragged.values.clone());
                continue;
            }
            let (Some(start), Some(end)) = (splits.get(at), splits.get(at + 1)) else {
                return Err(invalid_argument!(
                    "row_splits has insufficient size: {} vs required {}",
                    splits.len(),
                    at + 2
                ));
            };
            parts.push(Tensor::zeros(dtype, shape.with_dim(0, end - start)?)?);
        }
        if let [only] = parts.as_slice() {
            let only = only.clone();
            ctx.set(0, only);
            return Ok(());
        }
        let count: usize = parts.iter().map(Tensor::elements).sum();
        ensure!(
            count == shape.elements() && parts.iter().all(|part| part.dtype() == dtype),
            invalid_argument,
            "{count} gradients of rows for values of shape {shape}"
        );
        let parts: Vec<(&Tensor, usize)> =
            parts.iter().map(|part| (part, part.elements())).collect();
        let out = moves::concat(ctx.par(), dtype, &parts, shape)?;
        ctx.set(0, out);
        Ok(())
    })
}
