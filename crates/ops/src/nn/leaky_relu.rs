//! `LeakyRelu`, `LeakyReluGrad`: a small slope below zero.
//!
//! TensorFlow: LeakyRelu(features: T) -> activations: T, with alpha; LeakyReluGrad(gradients: T, features: T) -> backprops: T.

use tensorfleet_graph::example::{ex, ex_attrs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::activation::{leaky_relu, leaky_relu_grad};
use tensorfleet_math::num::Real;
use tensorfleet_status::{Result, internal, invalid_argument};
use tensorfleet_tensor::Element;

use crate::by_float;
use crate::types::FLOATS;

const LEAKY: OpDef = OpDef {
    attrs: &[
        "alpha: float = 0.2",
        "T: {half, bfloat16, float, double} = DT_FLOAT",
    ],
    infer: infer::same_as_first,
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "LeakyRelu",
        inputs: &["features: T"],
        outputs: &["activations: T"],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", FLOATS)], build)],
        examples: &[
            ex_attrs(
                "slope",
                &[("alpha", "0.5")],
                &[x(&[3], &[-2.0, 0.5, 2.0])],
                &[x(&[3], &[-1.0, 0.5, 2.0])],
            ),
            ex("default slope", &[x(&[1], &[3.0])], &[x(&[1], &[3.0])]),
        ],
        ..LEAKY
    },
    OpDef {
        name: "LeakyReluGrad",
        inputs: &["gradients: T", "features: T"],
        outputs: &["backprops: T"],
        gradient: Gradient::Rule(grad_gradient),
        kernels: &[cpu(&[("T", FLOATS)], build_grad)],
        examples: &[ex_attrs(
            "slope",
            &[("alpha", "0.5")],
            &[x(&[2], &[4.0, 6.0]), x(&[2], &[-2.0, 2.0])],
            &[x(&[2], &[2.0, 6.0])],
        )],
        ..LEAKY
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, features, alpha) = (g.grad(0)?, g.input(0), g.attr("alpha")?);
    dense(
        g.builder()
            .op("LeakyReluGrad")
            .input(grad)
            .input(features)
            .attr("alpha", alpha)
            .output()?,
    )
}

/// To the gradients as theirs went; the slope does not change with the features.
fn grad_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, features, alpha) = (g.grad(0)?, g.input(1), g.attr("alpha")?);
    let node = g.builder().op("LeakyReluGrad").input(grad).input(features);
    let to_gradients = node.attr("alpha", alpha).output()?;
    Ok(vec![Some(Grad::Dense(to_gradients)), None])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let alpha = node.attrs.float("alpha")?;
    let dtype = node.attrs.dtype("T")?;
    by_float!(dtype, T => forward::<T>(alpha), else => Err(internal!("no leaky relu of {dtype}")))
}

fn forward<T: Element + Real>(alpha: f32) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let x = ctx.input(0)?;
        let mut out = ctx.allocate(T::DTYPE, x.shape().clone())?;
        leaky_relu(ctx.par(), x.slice::<T>()?, alpha, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let alpha = node.attrs.float("alpha")?;
    let dtype = node.attrs.dtype("T")?;
    by_float!(dtype, T => backward::<T>(alpha), else => Err(internal!("no leaky relu of {dtype}")))
}

fn backward<T: Element + Real>(alpha: f32) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (dy, x) = (ctx.input(0)?, ctx.input(1)?);
        if dy.elements() != x.elements() {
            return Err(invalid_argument!(
                "Inputs must be the same size: {} and {}",
                dy.shape(),
                x.shape()
            ));
        }
        let mut out = ctx.allocate(T::DTYPE, dy.shape().clone())?;
        leaky_relu_grad(
            ctx.par(),
            dy.slice::<T>()?,
            x.slice::<T>()?,
            alpha,
            out.slice_mut::<T>()?,
        );
        ctx.set(0, out);
        Ok(())
    })
}
