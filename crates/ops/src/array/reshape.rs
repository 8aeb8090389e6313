//! `Reshape`: the same elements under another shape; one dimension may be -1, to be worked out.
//!
//! TensorFlow: Reshape(tensor: T, shape: Tshape) -> output: T.

use tensorfleet_graph::example::{ex, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Dims, MAX_RANK, PartialShape, Shape, UNKNOWN_DIM};

use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "Reshape",
    inputs: &["tensor: T", "shape: Tshape"],
    outputs: &["output: T"],
    attrs: &["T: type", "Tshape: {int32, int64} = DT_INT32"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("Tshape", INDEX)], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "given",
            &[
                x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                i32s(&[2], &[3, 2]),
            ],
            &[x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        ),
        ex(
            "inferred",
            &[f32s(&[4], &[1.0, 2.0, 3.0, 4.0]), i64s(&[2], &[-1, 2])],
            &[f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
        ),
        ex(
            "to scalar",
            &[strs(&[1, 1], &["a"]), i32s(&[0], &[])],
            &[strs(&[], &["a"])],
        ),
        ex(
            "inferred from a scalar",
            &[f32s(&[], &[2.0]), i32s(&[1], &[-1])],
            &[f32s(&[1], &[2.0])],
        ),
        ex(
            "empty",
            &[f32s(&[0, 3], &[]), i32s(&[2], &[5, -1])],
            &[f32s(&[5, 0], &[])],
        ),
        ex(
            "zero beside the inferred one",
            &[f32s(&[0], &[]), i32s(&[2], &[0, -1])],
            &[f32s(&[0, 1], &[])],
        ),
        ex(
            "extents kept beside a zero",
            &[f32s(&[0, 4], &[]), i32s(&[3], &[2, 0, -1])],
            &[f32s(&[2, 0, 2], &[])],
        ),
        ex_err(
            "wrong size",
            &[],
            &[f32s(&[3], &[1.0]), i32s(&[1], &[2])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "too many dimensions",
            &[],
            &[f32s(&[1], &[1.0]), i32s(&[254], &[1])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "no multiple",
            &[],
            &[f32s(&[3], &[1.0]), i32s(&[2], &[2, -1])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "two unknown",
            &[],
            &[f32s(&[3], &[1.0]), i32s(&[2], &[-1, -1])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "negative",
            &[],
            &[f32s(&[3], &[1.0]), i32s(&[1], &[-3])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let wanted = ctx.shape_from(1);
    let shape = match (ctx.constant_ints(1), ctx.input(0).to_shape()) {
        (Some(dims), Some(input)) => PartialShape::from(&resolve(&dims, &input)?),
        _ => wanted,
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
        let sizes = ctx.input(1)?;
        if sizes.rank() > 1 {
            return Err(invalid_argument!(
                "sizes input must be 1-D, not {}",
                sizes.shape()
            ));
        }
        let shape = resolve(&ctx.ints(1)?, ctx.input(0)?.shape())?;
        let tensor = ctx.take(0)?.reshaped(shape)?;
        ctx.set(0, tensor);
        Ok(())
    })
}

/// The shape meant by `sizes` for a tensor of shape `input`.
fn resolve(sizes: &[i64], input: &Shape) -> Result<Shape> {
    // One fewer than other ops allow, and only here: TensorFlow's check.
    if sizes.len() >= MAX_RANK {
        return Err(invalid_argument!(
            "too many dimensions: must be < {MAX_RANK}, but received {}",
            sizes.len()
        ));
    }
    let mut dims = Dims::from_slice(sizes);
    let mut unknown = None;
    for (axis, size) in sizes.iter().enumerate() {
        match (*size, unknown) {
            (UNKNOWN_DIM, None) => unknown = Some(axis),
            (UNKNOWN_DIM, Some(first)) => {
                return Err(invalid_argument!(
                    "Only one input size may be -1, not both {first} and {axis}"
                ));
            }
            (..0, _) => {
                return Err(invalid_argument!(
                    "Size {axis} must be non-negative, not {size}"
                ));
            }
            _ => {}
        }
    }
    if let Some(axis) = unknown {
        // Zeros among the sizes do not count, and then those of the input do not either: an empty
        // tensor keeps its other extents as far as they go.
        let zero_wanted = dims.contains(&0);
        dims[axis] = 1;
        let known: i64 = Shape::new(&dims)?.iter().filter(|dim| **dim > 0).product();
        let counted = input.iter().filter(|dim| !zero_wanted || **dim > 0);
        let values: i64 = counted.product();
        if !input.contains(&0) && values % known != 0 {
            return Err(invalid_argument!(
                "Input to reshape is a tensor with {values} values, but the requested shape \
                 requires a multiple of {known}"
            ));
        }
        dims[axis] = values / known;
    }
    let shape = Shape::new(&dims)?;
    if shape.elements() != input.elements() {
        return Err(invalid_argument!(
            "Input to reshape is a tensor with {} values, but the requested shape has {}",
            input.elements(),
            shape.elements()
        ));
    }
    Ok(shape)
}
