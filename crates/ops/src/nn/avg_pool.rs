//! `AvgPool`, `AvgPoolGrad`: the average of each window over NHWC images.
//!
//! TensorFlow: AvgPool(value: T) -> output: T, with ksize, strides, padding; AvgPoolGrad(orig_input_shape: int32, grad: T) ->
//! output: T. Padding takes no part in the count of an average.

use tensorfleet_graph::example::{ex_attrs, i32s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_math::pool2d::{avg_pool, avg_pool_grad};
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::Element;

use super::conv_attrs::with_attrs;
use super::conv_shapes;
use super::conv2d::sizes;
use super::pool::{Pooling, check_output, output_shape};
use crate::by_float;
use crate::types::FLOATS;

const TWO: (&str, &str) = ("ksize", "[1, 2, 2, 1]");
const STRIDE: (&str, &str) = ("strides", "[1, 2, 2, 1]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");

const AVG: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: &[
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        "padding: {'SAME', 'VALID'}",
        "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
        "T: {half, bfloat16, float, double}",
    ],
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "AvgPool",
        inputs: &["value: T"],
        infer: conv_shapes::pooled,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", FLOATS)], build)],
        examples: &[
            ex_attrs(
                "two by two",
                &[TWO, STRIDE, VALID],
                &[x(&[1, 2, 2, 1], &[1.0, 5.0, 2.0, 4.0])],
                &[x(&[1, 1, 1, 1], &[3.0])],
            ),
            ex_attrs(
                "padding does not count",
                &[TWO, STRIDE, SAME],
                &[x(&[1, 1, 3, 1], &[1.0, 5.0, 2.0])],
                &[x(&[1, 1, 2, 1], &[3.0, 2.0])],
            ),
        ],
        ..AVG
    },
    OpDef {
        name: "AvgPoolGrad",
        inputs: &["orig_input_shape: int32", "grad: T"],
        infer: infer::shape_in::<0>,
        gradient: Gradient::Rule(grad_gradient),
        kernels: &[cpu(&[("T", FLOATS)], build_grad)],
        examples: &[ex_attrs(
            "even shares",
            &[TWO, STRIDE, VALID],
            &[i32s(&[4], &[1, 2, 2, 1]), x(&[1, 1, 1, 1], &[4.0])],
            &[x(&[1, 2, 2, 1], &[1.0, 1.0, 1.0, 1.0])],
        )],
        ..AVG
    },
];

/// The attributes that both ops share.
const SHARED: [&str; 4] = ["ksize", "strides", "padding", "data_format"];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (input, grad) = (g.input(0), g.grad(0)?);
    let shape = g.shape(input)?;
    let pooled = with_attrs(g, "AvgPoolGrad", &SHARED, &[shape, grad])?;
    Ok(vec![Some(Grad::Dense(pooled))])
}

/// What went out in even shares comes back as a mean.
fn grad_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let pooled = with_attrs(g, "AvgPool", &SHARED, &[grad])?;
    Ok(vec![None, Some(Grad::Dense(pooled))])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (pooling, dtype) = (Pooling::new(node, 1)?, node.attrs.dtype("T")?);
    by_float!(dtype, T => forward::<T>(pooling), else => Err(internal!("no pooling of {dtype}")))
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let (pooling, dtype) = (Pooling::new(node, 2)?, node.attrs.dtype("T")?);
    by_float!(dtype, T => backward::<T>(pooling), else => Err(internal!("no pooling of {dtype}")))
}

fn forward<T: Element + Float>(pooling: Pooling) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let pool = pooling.over(ctx, input.shape())?;
        let mut out = ctx.allocate(T::DTYPE, output_shape(&pool)?)?;
        avg_pool(ctx.par(), &pool, input.slice::<T>()?, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}

fn backward<T: Element + Float>(pooling: Pooling) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (shape, grad) = (sizes(ctx, 0, "orig_input_shape")?, ctx.input(1)?);
        let pool = pooling.over(ctx, &shape)?;
        check_output(&pool, "grad", grad.shape())?;
        let mut out = ctx.allocate(T::DTYPE, shape)?;
        avg_pool_grad(ctx.par(), &pool, grad.slice::<T>()?, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}
