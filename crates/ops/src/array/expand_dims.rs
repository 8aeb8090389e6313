//! `ExpandDims`: the same elements with a dimension of extent one more.
//!
//! TensorFlow: ExpandDims(input: T, dim: Tdim) -> output: T.

use tensorfleet_graph::example::{ex, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Dims, PartialShape, Shape};

use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "ExpandDims",
    inputs: &["input: T", "dim: Tdim"],
    outputs: &["output: T"],
    attrs: &["T: type", "Tdim: {int32, int64} = DT_INT32"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("Tdim", INDEX)], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "front",
            &[x(&[2], &[1.0, 2.0]), i32s(&[], &[0])],
            &[x(&[1, 2], &[1.0, 2.0])],
        ),
        ex(
            "behind",
            &[f32s(&[2], &[1.0, 2.0]), i64s(&[], &[-1])],
            &[f32s(&[2, 1], &[1.0, 2.0])],
        ),
        ex(
            "scalar",
            &[strs(&[], &["a"]), i32s(&[1], &[0])],
            &[strs(&[1], &["a"])],
        ),
        ex_err(
            "out of range",
            &[],
            &[f32s(&[1], &[1.0]), i32s(&[], &[3])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "two dims",
            &[],
            &[f32s(&[1], &[1.0]), i32s(&[2], &[0, 1])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = match (ctx.input(0).dims(), ctx.constant_ints(1).as_deref()) {
        (Some(dims), Some([dim])) => PartialShape::new(&expanded(dims, *dim)?),
        (Some(dims), _) => PartialShape::of_rank(dims.len() + 1),
        _ => PartialShape::unknown(),
    };
    ctx.set(0, shape);
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let grad = g.reshape_like(grad, g.input(0))?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let &[dim] = ctx.ints(1)?.as_slice() else {
            return Err(invalid_argument!(
                "'dim' must be a tensor with a single value, got shape {}",
                ctx.input(1)?.shape()
            ));
        };
        let input = ctx.take(0)?;
        let shape = Shape::new(&expanded(input.shape(), dim)?)?;
        ctx.set(0, input.reshaped(shape)?);
        Ok(())
    })
}

/// The dimensions with a one inserted at `dim`, which may count from behind.
fn expanded(dims: &[i64], dim: i64) -> Result<Dims> {
    let rank = dims.len() as i64;
    if dim < -1 - rank || dim > rank {
        return Err(invalid_argument!(
            "Tried to expand dim index {dim} for tensor with {rank} dimensions."
        ));
    }
    let at = if dim < 0 { dim + rank + 1 } else { dim };
    let mut dims = Dims::from_slice(dims);
    dims.insert(at as usize, 1);
    Ok(dims)
}
