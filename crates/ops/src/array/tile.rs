//! `Tile`: a tensor repeated along its dimensions.
//!
//! TensorFlow: Tile(input: T, multiples: Tmultiples) -> output: T.

use tensorfleet_graph::example::{ex, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Dims, PartialShape, Shape, Tensor};

use super::{grads, moves};
use crate::types::{COMPLEX, FLOATS, INDEX, SIGNED, dtypes};

/// What TensorFlow takes: everything but uint16.
const TYPES: &[DType] = dtypes![
    FLOATS,
    SIGNED,
    &[DType::U8, DType::U32, DType::U64],
    COMPLEX,
    &[DType::Bool, DType::String, DType::Variant]
];

pub(crate) static OP: OpDef = OpDef {
    name: "Tile",
    inputs: &["input: T", "multiples: Tmultiples"],
    outputs: &["output: T"],
    attrs: &["T: type", "Tmultiples: {int32, int64} = DT_INT32"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", TYPES), ("Tmultiples", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "matrix",
            &[x(&[1, 2], &[1.0, 2.0]), i32s(&[2], &[2, 2])],
            &[x(&[2, 4], &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0])],
        ),
        ex(
            "strings",
            &[strs(&[2], &["a", "b"]), i64s(&[1], &[2])],
            &[strs(&[4], &["a", "b", "a", "b"])],
        ),
        ex(
            "scalar",
            &[f32s(&[], &[1.0]), i32s(&[0], &[])],
            &[f32s(&[], &[1.0])],
        ),
        ex(
            "not at all",
            &[f32s(&[2], &[1.0, 2.0]), i32s(&[1], &[0])],
            &[f32s(&[0], &[])],
        ),
        ex_err(
            "negative",
            &[],
            &[f32s(&[2], &[1.0]), i32s(&[1], &[-1])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "length",
            &[],
            &[f32s(&[1, 2], &[1.0]), i32s(&[1], &[2])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let Some(dims) = ctx.input(0).dims() else {
        return Ok(());
    };
    let shape = match ctx.constant_ints(1) {
        Some(multiples) if multiples.len() == dims.len() => {
            let dims = dims.iter().zip(&multiples).map(|(dim, multiple)| {
                if *dim < 0 {
                    -1
                } else {
                    dim.saturating_mul(*multiple)
                }
            });
            PartialShape::new(&dims.collect::<Dims>())
        }
        _ => PartialShape::of_rank(dims.len()),
    };
    ctx.set(0, shape);
    Ok(())
}

/// Each dimension of the gradient seen as (repeat, extent), summed over the repeats.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, multiples) = (g.grad(0)?, g.input(1));
    let index = g.dtype(multiples);
    let shape = grads::shape_as(g, g.input(0), index)?;
    let pairs = g
        .builder()
        .op("Pack")
        .list(&[multiples, shape])
        .attr("axis", 1i64)
        .output()?;
    let flat = g.ints(&[-1])?;
    let split_shape = g.apply("Reshape", &[pairs, flat])?;
    let (zero, two) = (grads::int(g, 0)?, grads::int(g, 2)?);
    let size = g.apply("Size", &[split_shape])?;
    let axes = g.apply("Range", &[zero, size, two])?;
    let split = g.apply("Reshape", &[grad, split_shape])?;
    let summed = g.apply("Sum", &[split, axes])?;
    let grad = g.apply("Reshape", &[summed, shape])?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let output = tiled(ctx)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn tiled(ctx: &mut KernelCtx<'_>) -> Result<Tensor> {
    let (input, multiples) = (ctx.input(0)?, ctx.input(1)?);
    if multiples.rank() != 1 {
        return Err(invalid_argument!(
            "Expected multiples to be 1-D, but got shape {}",
            multiples.shape()
        ));
    }
    if multiples.elements() != input.rank() {
        return Err(invalid_argument!(
            "Expected multiples argument to be a vector of length {} but got length {}",
            input.rank(),
            multiples.elements()
        ));
    }
    let multiples = ctx.ints(1)?;
    let mut dims = Dims::new();
    for (axis, (dim, multiple)) in input.shape().iter().zip(&multiples).enumerate() {
        if *multiple < 0 {
            return Err(invalid_argument!(
                "Expected multiples[{axis}] >= 0, but got {multiple}"
            ));
        }
        dims.push(dim.checked_mul(*multiple).ok_or_else(|| {
            invalid_argument!("dimension {dim} repeated {multiple} times overflows")
        })?);
    }
    let shape = Shape::new(&dims)?;
    if multiples.iter().all(|multiple| *multiple == 1) {
        return ctx.take(0);
    }
    if shape.elements() == 0 {
        return Tensor::new(input.dtype(), shape);
    }
    let view = View::tiled(&moves::extents(input.shape()), &moves::extents(&multiples));
    moves::copy_view(ctx.par(), input, &view, shape)
}
