//! `LRN`, `LRNGrad`: local response normalisation, each element by the squares of its neighbours along the channels.
//!
//! TensorFlow: LRN(input: T) -> output: T, with depth_radius, bias, alpha, beta: `input / (bias + alpha·Σ input²)^beta`;
//! LRNGrad(input_grads: T, input_image: T, output_image: T) -> output: T.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, f32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::norm::{Lrn, NormElement, lrn, lrn_grad};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, f16};

use super::conv_attrs::with_attrs;

const HALF_OR_SINGLE: &[DType] = &[DType::F16, DType::F32];
const SHARED: [&str; 4] = ["depth_radius", "bias", "alpha", "beta"];
const RADIUS: (&str, &str) = ("depth_radius", "1");
const ALPHA: (&str, &str) = ("alpha", "0.5");
const BETA: (&str, &str) = ("beta", "0.75");

const LRN: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: &[
        "depth_radius: int = 5",
        "bias: float = 1.0",
        "alpha: float = 1.0",
        "beta: float = 0.5",
        "T: {half, bfloat16, float} = DT_FLOAT",
    ],
    infer: infer::same_as_first,
    // Halves are computed in single precision here, in half precision there.
    exactness: Exactness::Relative(4e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "LRN",
        inputs: &["input: T"],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| build(node, false))],
        examples: &[
            ex_attrs(
                "one channel",
                &[],
                &[x(&[1, 1, 2, 1], &[0.0, 0.0])],
                &[x(&[1, 1, 2, 1], &[0.0, 0.0])],
            ),
            ex_ref(
                "neighbours",
                &[RADIUS, ALPHA, BETA, ("bias", "2.0")],
                &[ramp(&[1, 2, 2, 5], -2.0, 0.25)],
            ),
            ex_attrs(
                "no images",
                &[],
                &[x(&[0, 1, 2, 1], &[])],
                &[x(&[0, 1, 2, 1], &[])],
            ),
            ex_err(
                "no image",
                &[],
                &[f32s(&[2, 2], &[0.0])],
                Code::InvalidArgument,
                "in must be 4-dimensional",
            ),
            ex_err(
                "negative radius",
                &[("depth_radius", "-1")],
                &[f32s(&[1, 1, 2, 2], &[0.0])],
                Code::InvalidArgument,
                "depth_radius = -1 larger than int max",
            ),
        ],
        ..LRN
    },
    OpDef {
        name: "LRNGrad",
        inputs: &["input_grads: T", "input_image: T", "output_image: T"],
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| build(node, true))],
        examples: &[
            ex_ref(
                "neighbours",
                &[RADIUS, ALPHA, BETA],
                &[
                    ramp(&[1, 1, 2, 5], 1.0, -0.125),
                    ramp(&[1, 1, 2, 5], -1.0, 0.25),
                    ramp(&[1, 1, 2, 5], -0.5, 0.125),
                ],
            ),
            ex_err(
                "shapes differ",
                &[],
                &[
                    f32s(&[1, 1, 2, 1], &[0.0]),
                    f32s(&[1, 1, 2, 2], &[0.0]),
                    f32s(&[1, 1, 2, 2], &[0.0]),
                ],
                Code::InvalidArgument,
                "input_grads, input_image, and out_image should have the same shape",
            ),
        ],
        ..LRN
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let inputs = [g.grad(0)?, g.input(0), g.output(0)];
    dense(with_attrs(g, "LRNGrad", &SHARED, &inputs)?)
}

fn build(node: &NodeInfo, backward: bool) -> Result<AnyKernel> {
    let radius = node.attrs.int("depth_radius")?;
    let attrs = Lrn {
        depth_radius: usize::try_from(radius)
            .ok()
            .filter(|radius| *radius < i32::MAX as usize)
            .ok_or_else(|| invalid_argument!("depth_radius = {radius} larger than int max"))?,
        bias: node.attrs.float("bias")?,
        alpha: node.attrs.float("alpha")?,
        beta: node.attrs.float("beta")?,
    };
    match (node.attrs.dtype("T")?, backward) {
        (DType::F32, false) => normalise::<f32>(attrs),
        (DType::F16, false) => normalise::<f16>(attrs),
        (DType::F32, true) => differentiate::<f32>(attrs),
        (DType::F16, true) => differentiate::<f16>(attrs),
        (other, _) => Err(internal!("no normalisation of {other}")),
    }
}

fn normalise<T: Element + NormElement>(attrs: Lrn) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        ensure!(
            input.rank() == 4,
            invalid_argument,
            "in must be 4-dimensional"
        );
        let mut out = ctx.allocate(T::DTYPE, input.shape().clone())?;
        let channels = input.shape().dim(3);
        lrn(
            ctx.par(),
            attrs,
            channels,
            input.slice::<T>()?,
            out.slice_mut::<T>()?,
        );
        ctx.set(0, out);
        Ok(())
    })
}

fn differentiate<T: Element + NormElement>(attrs: Lrn) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (grad, image, output) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        ensure!(
            grad.rank() == 4 && image.rank() == 4,
            invalid_argument,
            "inputs must be 4-dimensional"
        );
        ensure!(
            image.shape() == grad.shape() && output.shape() == grad.shape(),
            invalid_argument,
            "input_grads, input_image, and out_image should have the same shape"
        );
        let mut out = ctx.allocate(T::DTYPE, grad.shape().clone())?;
        let inputs = (
            grad.slice::<T>()?,
            image.slice::<T>()?,
            output.slice::<T>()?,
        );
        let channels = grad.shape().dim(3);
        lrn_grad(ctx.par(), attrs, channels, inputs, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}
