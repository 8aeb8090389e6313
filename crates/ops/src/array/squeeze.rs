//! `Squeeze`: the same elements without dimensions of extent one, all of them or those named.
//!
//! TensorFlow: Squeeze(input: T) -> output: T, with attr squeeze_dims: list(int).

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Dims, PartialShape, Shape, UNKNOWN_DIM};

pub(crate) static OP: OpDef = OpDef {
    name: "Squeeze",
    inputs: &["input: T"],
    outputs: &["output: T"],
    attrs: &["T: type", "squeeze_dims: list(int) >= 0 = []"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "all",
            &[x(&[1, 2, 1], &[1.0, 2.0])],
            &[x(&[2], &[1.0, 2.0])],
        ),
        ex("to scalar", &[x(&[1, 1], &[3.0])], &[x(&[], &[3.0])]),
        ex_attrs(
            "named, from behind",
            &[("squeeze_dims", "[-1]")],
            &[x(&[1, 2, 1], &[1.0, 2.0])],
            &[x(&[1, 2], &[1.0, 2.0])],
        ),
        ex_err(
            "not one",
            &[("squeeze_dims", "[1]")],
            &[f32s(&[1, 3], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "out of range",
            &[("squeeze_dims", "[2]")],
            &[f32s(&[1, 3], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let named = ctx.attrs().ints("squeeze_dims")?;
    let shape = match ctx.input(0).dims() {
        // Without names the rank depends on the unknown extents.
        Some(dims) if !named.is_empty() || !dims.contains(&UNKNOWN_DIM) => {
            PartialShape::new(&squeezed(dims, named)?)
        }
        _ => PartialShape::unknown(),
    };
    ctx.set(0, shape);
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    dense(g.reshape_like(grad, g.input(0))?)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let named = node.attrs.ints("squeeze_dims")?.to_vec();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.take(0)?;
        let shape = Shape::new(&squeezed(input.shape(), &named)?)?;
        ctx.set(0, input.reshaped(shape)?);
        Ok(())
    })
}

/// The dimensions without the named ones, or without all ones if none is named.
fn squeezed(dims: &[i64], named: &[i64]) -> Result<Dims> {
    if named.is_empty() {
        return Ok(dims.iter().copied().filter(|dim| *dim != 1).collect());
    }
    let rank = dims.len() as i64;
    let mut keep = vec![true; dims.len()];
    for dim in named {
        if *dim < -rank || *dim >= rank {
            return Err(invalid_argument!(
                "Tried to squeeze dim index {dim} for tensor with {rank} dimensions."
            ));
        }
        let axis = if *dim < 0 { dim + rank } else { *dim } as usize;
        if dims[axis] != 1 && dims[axis] != UNKNOWN_DIM {
            return Err(invalid_argument!(
                "Can not squeeze dim[{axis}], expected a dimension of 1, got {}",
                dims[axis]
            ));
        }
        keep[axis] = false;
    }
    let kept = dims.iter().zip(keep).filter(|(_, keep)| *keep);
    Ok(kept.map(|(dim, _)| *dim).collect())
}
