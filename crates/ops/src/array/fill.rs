//! `Fill`: one value, everywhere.
//!
//! TensorFlow: Fill(dims: index_type, value: T) -> output: T. Like TensorFlow's kernel this one takes a
//! scalar for `dims` and a vector of one element for `value`.

use tensorfleet_graph::example::{bools, ex, ex_attrs, ex_err, f32s, i32s, i64s, of, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::{grads, moves};
use crate::types::{INDEX, MOVABLE};

pub(crate) static OP: OpDef = OpDef {
    name: "Fill",
    inputs: &["dims: index_type", "value: T"],
    outputs: &["output: T"],
    attrs: &["T: type", "index_type: {int32, int64} = DT_INT32"],
    infer: infer::shape_in::<0>,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", MOVABLE), ("index_type", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "matrix",
            &[i32s(&[2], &[2, 2]), x(&[], &[3.0])],
            &[x(&[2, 2], &[3.0])],
        ),
        ex_attrs(
            "int64 dims",
            &[("index_type", "int64")],
            &[i64s(&[1], &[3]), x(&[], &[1.0])],
            &[x(&[3], &[1.0])],
        ),
        ex(
            "scalar",
            &[i32s(&[0], &[]), bools(&[], &[true])],
            &[bools(&[], &[true])],
        ),
        ex(
            "strings",
            &[i32s(&[1], &[2]), strs(&[], &["ab"])],
            &[strs(&[2], &["ab", "ab"])],
        ),
        ex(
            "four bits",
            &[i32s(&[1], &[2]), of(DType::U4, &[], &[11.0])],
            &[of(DType::U4, &[2], &[11.0])],
        ),
        ex(
            "nothing",
            &[i32s(&[2], &[3, 0]), x(&[], &[1.0])],
            &[x(&[3, 0], &[])],
        ),
        ex_err(
            "negative",
            &[],
            &[i32s(&[1], &[-3]), f32s(&[], &[1.0])],
            Code::InvalidArgument,
            "-3 must be >= 0",
        ),
        ex_err(
            "overflow",
            &[],
            &[
                i32s(&[3], &[2147483647, 2147483647, 2147483647]),
                f32s(&[], &[1.0]),
            ],
            Code::InvalidArgument,
            "2147483647",
        ),
        ex_err(
            "many values",
            &[],
            &[i32s(&[1], &[2]), f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let axes = grads::all_axes(g, grad)?;
    let sum = g.apply("Sum", &[grad, axes])?;
    Ok(vec![None, Some(Grad::Dense(sum))])
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let dims = ctx.input(0)?;
        if dims.rank() > 1 {
            return Err(invalid_argument!(
                "dims must represent a vector, got shape {}",
                dims.shape()
            ));
        }
        let shape = Shape::new(&ctx.ints(0)?)?;
        let value = ctx.input(1)?;
        if value.rank() > 1 || value.elements() != 1 {
            return Err(invalid_argument!(
                "value must represent a scalar, got shape {}",
                value.shape()
            ));
        }
        let filled = filled(ctx, shape)?;
        ctx.set(0, filled);
        Ok(())
    })
}

fn filled(ctx: &KernelCtx<'_>, shape: Shape) -> Result<Tensor> {
    let value = ctx.input(1)?;
    // Zeros come from the allocator, which may have them ready.
    if value
        .bytes()
        .is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    {
        return Tensor::zeros(value.dtype(), shape);
    }
    moves::fill(ctx.par(), value, shape)
}
