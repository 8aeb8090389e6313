//! `GatherNd`: rows of a tensor by coordinates.
//!
//! TensorFlow: GatherNd(params: Tparams, indices: Tindices) -> output: Tparams. With policy IGNORE a row
//! that does not exist is zeros.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::Gather;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor};

use super::grads;
use super::moves;
use super::nd::{self, BadIndices};
use crate::types::MOVABLE;

const INDICES: &[DType] = &[DType::I16, DType::I32, DType::I64];

pub(crate) static OP: OpDef = OpDef {
    name: "GatherNd",
    inputs: &["params: Tparams", "indices: Tindices"],
    outputs: &["output: Tparams"],
    attrs: &[
        "Tparams: type",
        "Tindices: {int16, int32, int64}",
        "bad_indices_policy: string = ''",
    ],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("Tparams", MOVABLE), ("Tindices", INDICES)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "elements",
            &[
                x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                i32s(&[2, 2], &[1, 0, 0, 1]),
            ],
            &[x(&[2], &[3.0, 2.0])],
        ),
        ex(
            "rows",
            &[strs(&[2, 1], &["a", "b"]), i64s(&[3, 1], &[1, 1, 0])],
            &[strs(&[3, 1], &["b", "b", "a"])],
        ),
        ex(
            "the whole, repeatedly",
            &[f32s(&[2], &[1.0, 2.0]), i32s(&[2, 0], &[])],
            &[f32s(&[2, 2], &[1.0, 2.0, 1.0, 2.0])],
        ),
        ex_attrs(
            "bad ones ignored",
            &[("bad_indices_policy", "IGNORE")],
            &[f32s(&[2], &[1.0, 2.0]), i32s(&[3, 1], &[1, 2, -1])],
            &[f32s(&[3], &[2.0, 0.0, 0.0])],
        ),
        ex_err(
            "outside",
            &[],
            &[f32s(&[2], &[1.0]), i32s(&[2, 1], &[0, 2])],
            Code::InvalidArgument,
            "indices[1] = [2] does not index into param shape [2]",
        ),
        ex_err(
            "too deep",
            &[],
            &[f32s(&[2], &[1.0]), i32s(&[1, 2], &[0, 0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "nothing to gather from",
            &[],
            &[f32s(&[0], &[]), i32s(&[1, 1], &[0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    if let (Some(params), Some([outer @ .., depth])) = (ctx.input(0).dims(), ctx.input(1).dims())
        && let Some(tail) = usize::try_from(*depth)
            .ok()
            .and_then(|depth| params.get(depth..))
    {
        ctx.set(0, PartialShape::new(&[outer, tail].concat()));
    }
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, params, indices) = (g.grad(0)?, g.input(0), g.input(1));
    let policy = g.attr("bad_indices_policy")?;
    let index = g.dtype(indices);
    let shape = grads::shape_as(g, params, index)?;
    let node = g.builder().op("ScatterNd");
    let node = node.input(indices).input(grad).input(shape);
    let grad = node.attr("bad_indices_policy", policy).output()?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let policy = BadIndices::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let output = gather_nd(ctx, ctx.input(0)?, ctx.input(1)?, policy)?;
        ctx.set(0, output);
        Ok(())
    })
}

/// Rows of `params` by coordinates, for other gathering ops too.
pub(crate) fn gather_nd(
    ctx: &KernelCtx<'_>,
    params: &Tensor,
    indices: &Tensor,
    policy: BadIndices,
) -> Result<Tensor> {
    if params.rank() == 0 {
        return Err(invalid_argument!("params must be at least a vector"));
    }
    let Some((depth, outer)) = indices.shape().split_last() else {
        return Err(invalid_argument!("indices must be at least a vector"));
    };
    let depth = *depth as usize;
    if depth > params.rank() {
        return Err(invalid_argument!(
            "index innermost dimension length must be <= params rank; saw: {depth} vs. {}",
            params.rank()
        ));
    }
    let (lead, tail) = params.shape().split_at(depth);
    let shape = Shape::new(&[outer, tail].concat())?;
    let count = indices.shape().elements_in(0..outer.len());
    if count > 0 && params.is_empty() {
        return Err(invalid_argument!(
            "Requested more than 0 entries, but params is empty.  Params shape: {}",
            params.shape()
        ));
    }
    let what = || {
        format!(
            "param shape {}, node name: {}",
            params.shape(),
            ctx.node().name
        )
    };
    let found = nd::rows(ctx.par(), indices, lead, policy, &what)?;
    let gather = Gather {
        batch: 1,
        outer: 1,
        limit: params.shape().elements_in(0..depth),
        inner: params.shape().elements_in(depth..params.rank()),
        count: found.rows.len(),
    };
    let Some(kept) = found.kept else {
        let mut out = Tensor::new(params.dtype(), shape)?;
        moves::gather(ctx.par(), gather, params, &found.rows, &mut out)?;
        return Ok(out);
    };
    let compact = Shape::new(&[gather.count as i64, gather.inner as i64])?;
    let mut good = Tensor::new(params.dtype(), compact)?;
    moves::gather(ctx.par(), gather, params, &found.rows, &mut good)?;
    let mut out = Tensor::zeros(params.dtype(), shape)?;
    moves::scatter_rows(ctx.par(), &mut out, gather.inner, &kept, &good)?;
    Ok(out)
}
