//! `InTopK`, `InTopKV2`: whether the target is among the `k` best predictions of its row.
//!
//! TensorFlow: InTopKV2(predictions: float[rows, classes], targets: T[rows], k: T) -> precision: bool[rows]. Ties count as
//! in; a target out of range or not finite is never in.

use tensorfleet_graph::example::{bools, ex, ex_attrs, ex_err, f32s, i32s, i64s};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::is_in_top_k;
use tensorfleet_math::par::chunks_mut;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{PartialShape, Tensor};

use crate::types::INDEX;

const TOP: OpDef = OpDef {
    outputs: &["precision: bool"],
    infer: shape,
    gradient: Gradient::Stop("bools are not differentiated"),
    kernels: &[cpu(&[("T", INDEX)], build)],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "InTopK",
        inputs: &["predictions: float", "targets: T"],
        attrs: &["k: int", "T: {int32, int64} = DT_INT32"],
        examples: &[ex_attrs(
            "best",
            &[("k", "1")],
            &[f32s(&[2, 2], &[0.1, 0.9, 0.8, 0.2]), i32s(&[2], &[1, 1])],
            &[bools(&[2], &[true, false])],
        )],
        ..TOP
    },
    OpDef {
        name: "InTopKV2",
        inputs: &["predictions: float", "targets: T", "k: T"],
        attrs: &["T: {int32, int64} = DT_INT32"],
        examples: &[
            ex(
                "two best",
                &[
                    f32s(&[2, 3], &[0.1, 0.9, 0.5, 0.8, 0.2, 0.2]),
                    i64s(&[2], &[2, 1]),
                    i64s(&[], &[2]),
                ],
                &[bools(&[2], &[true, true])],
            ),
            ex(
                "out of range",
                &[
                    f32s(&[1, 2], &[0.1, 0.9]),
                    i32s(&[1], &[5]),
                    i32s(&[], &[1]),
                ],
                &[bools(&[1], &[false])],
            ),
            ex(
                "not finite",
                &[
                    f32s(&[1, 2], &[f64::NAN, 0.9]),
                    i32s(&[1], &[1]),
                    i32s(&[], &[1]),
                ],
                &[bools(&[1], &[false])],
            ),
            ex_err(
                "lengths differ",
                &[],
                &[
                    f32s(&[1, 2], &[0.1, 0.9]),
                    i32s(&[2], &[1, 1]),
                    i32s(&[], &[1]),
                ],
                Code::InvalidArgument,
                "targets",
            ),
        ],
        ..TOP
    },
];

fn shape(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, PartialShape::new(&[ctx.input(0).dim(0).unwrap_or(-1)]));
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let fixed = if node.op == "InTopK" {
        Some(node.attrs.int("k")?)
    } else {
        None
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (predictions, targets) = (ctx.input(0)?, ctx.input(1)?);
        if predictions.rank() != 2 {
            return Err(invalid_argument!(
                "predictions must be 2-dimensional, got shape {}",
                predictions.shape()
            ));
        }
        if targets.rank() != 1 || targets.elements() != predictions.shape().dim(0) {
            return Err(invalid_argument!(
                "First dimension of predictions {} must match length of targets {}",
                predictions.shape(),
                targets.shape()
            ));
        }
        let k = match fixed {
            Some(k) => k,
            None => ctx.int(2)?,
        };
        let classes = predictions.shape().dim(1);
        let values = predictions.slice::<f32>()?;
        let targets = ctx.ints(1)?;
        let mut found = vec![false; targets.len()];
        let grain = (64 << 10) / classes.max(1) + 1;
        chunks_mut(ctx.par(), &mut found, grain, |first, found| {
            for (row, found) in (first..).zip(found) {
                let row_values = &values[row * classes..(row + 1) * classes];
                *found = is_in(row_values, targets[row], k);
            }
        });
        ctx.set(0, Tensor::vector(&found));
        Ok(())
    })
}

fn is_in(row: &[f32], target: i64, k: i64) -> bool {
    let Some(wanted) = usize::try_from(target)
        .ok()
        .and_then(|target| row.get(target))
    else {
        return false;
    };
    is_in_top_k(row, *wanted, k)
}
