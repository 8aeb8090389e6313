//! `_FusedConv2D`: a convolution, a bias or a normalisation of each channel, and a function of it, in one pass.
//!
//! TensorFlow: _FusedConv2D(input: T, filter: T, args: TArgs, host_args: num_host_args * float) -> output: T with attrs
//! fused_ops (BiasAdd with one argument, perhaps Add with another, or FusedBatchNorm with scale, offset, mean and variance;
//! then functions, see [`super::ending`]), epsilon and leakyrelu_alpha. Made by graph optimisation.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, f32s};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::binary::{Binary, BinaryElement, apply_lhs};
use tensorfleet_math::broadcast::Broadcast;
use tensorfleet_math::conv::{Conv2d, Element as ConvElement};
use tensorfleet_math::gemm::Epilogue;
use tensorfleet_math::num::{Float, Real};
use tensorfleet_math::unary::UnaryElement;
use tensorfleet_status::{Code, Result, internal, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element, Tensor, f16};

use super::conv_attrs::WindowAttrs;
use super::conv2d::{SAME, UNIT, VALID, convolved, inputs_geometry};
use super::ending::{First, Fused, per_channel};
use crate::math::elementwise::status;

const BIAS: [(&str, &str); 2] = [("num_args", "1"), ("fused_ops", "['BiasAdd']")];

// The arguments may have other types than the image, so examples name theirs.
const IMAGE: Lit = f32s(
    &[1, 3, 3, 1],
    &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
);
const DIAGONAL: Lit = f32s(&[2, 2, 1, 1], &[1.0, 0.0, 0.0, 1.0]);
const TWO_CHANNELS: Lit = f32s(
    &[2, 2, 1, 2],
    &[1.0, -0.5, 0.25, 0.75, -2.0, 1.0, 0.5, -1.25],
);

pub(crate) static OP: OpDef = OpDef {
    name: "_FusedConv2D",
    inputs: &[
        "input: T",
        "filter: T",
        "args: TArgs",
        "host_args: num_host_args * float",
    ],
    outputs: &["output: T"],
    attrs: &[
        "T: {half, float, double, int8, qint8}",
        "TArgs: list(type) >= 1",
        "num_args: int >= 0",
        "num_host_args: int >= 0 = 0",
        "strides: list(int)",
        "padding: {'SAME', 'VALID', 'EXPLICIT'}",
        "explicit_paddings: list(int) = []",
        "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        "filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'",
        "dilations: list(int) = [1, 1, 1, 1]",
        "use_cudnn_on_gpu: bool = true",
        "fused_ops: list(string) = []",
        "epsilon: float = 0.0001",
        "leakyrelu_alpha: float = 0.2",
    ],
    gradient: Gradient::None("made by graph optimisation, after differentiation"),
    kernels: &[cpu(&[("T", &[DType::F16, DType::F32, DType::F64])], build)],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(2e-5),
    examples: &[
        ex_attrs(
            "bias",
            &[UNIT, VALID, BIAS[0], BIAS[1]],
            &[IMAGE, DIAGONAL, f32s(&[1], &[-10.0])],
            &[f32s(&[1, 2, 2, 1], &[-4.0, -2.0, 2.0, 4.0])],
        ),
        ex_ref(
            "bias and leaky relu",
            &[
                UNIT,
                SAME,
                BIAS[0],
                ("fused_ops", "['BiasAdd', 'LeakyRelu']"),
                ("leakyrelu_alpha", "0.5"),
            ],
            &[IMAGE, TWO_CHANNELS, f32s(&[2], &[-10.0, 4.5])],
        ),
        ex_attrs(
            "bias, sum and relu",
            &[
                UNIT,
                VALID,
                ("num_args", "2"),
                ("fused_ops", "['BiasAdd', 'Add', 'Relu']"),
            ],
            &[
                IMAGE,
                DIAGONAL,
                f32s(&[1], &[-10.0]),
                f32s(&[1, 2, 2, 1], &[1.0, 3.0, -3.0, 0.5]),
            ],
            &[f32s(&[1, 2, 2, 1], &[0.0, 1.0, 0.0, 4.5])],
        ),
        ex_attrs(
            "bias, hard swish and leaky relu",
            &[
                UNIT,
                VALID,
                BIAS[0],
                ("fused_ops", "['BiasAdd', '_FusedHardSwish', 'LeakyRelu']"),
                ("leakyrelu_alpha", "0.5"),
            ],
            &[IMAGE, DIAGONAL, f32s(&[1], &[-8.0])],
            &[f32s(&[1, 2, 2, 1], &[-1.0 / 6.0, 0.0, 4.0, 6.0])],
        ),
        ex_err(
            "arguments are missing",
            &[UNIT, VALID, BIAS[0], ("fused_ops", "['FusedBatchNorm']")],
            &[IMAGE, DIAGONAL, f32s(&[1], &[-10.0])],
            Code::InvalidArgument,
            "4 extra arguments, got 1: scale, offset, mean, variance",
        ),
        ex_err(
            "unknown functions",
            &[
                UNIT,
                VALID,
                BIAS[0],
                ("fused_ops", "['BiasAdd', 'Sigmoids']"),
            ],
            &[IMAGE, DIAGONAL, f32s(&[1], &[-10.0])],
            Code::Unimplemented,
            "[BiasAdd,Sigmoids]",
        ),
        ex_ref(
            "normalised, then relu",
            &[
                UNIT,
                SAME,
                ("num_args", "4"),
                ("fused_ops", "['FusedBatchNorm', 'Relu']"),
                ("epsilon", "0.001"),
            ],
            &[
                IMAGE,
                TWO_CHANNELS,
                f32s(&[2], &[1.5, -0.5]),
                f32s(&[2], &[0.25, 1.0]),
                f32s(&[2], &[0.5, -1.0]),
                f32s(&[2], &[2.0, 0.25]),
            ],
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = WindowAttrs::new(node)?;
    if node.attrs.str("filter_format")? != "HWIO" {
        return Err(unimplemented!(
            "_FusedConv2D takes HWIO filters on the CPU, not {}",
            node.attrs.str("filter_format")?
        ));
    }
    let fused = Fused::new(node)?;
    let epsilon = f64::from(node.attrs.float("epsilon")?);
    match node.attrs.dtype("T")? {
        DType::F32 => convolve::<f32>(attrs, fused, epsilon),
        DType::F64 => convolve::<f64>(attrs, fused, epsilon),
        DType::F16 => convolve::<f16>(attrs, fused, epsilon),
        other => Err(internal!("no fused convolution of {other}")),
    }
}

fn convolve<T>(attrs: WindowAttrs, fused: Fused, epsilon: f64) -> Result<AnyKernel>
where
    T: Element + ConvElement + Float + UnaryElement + BinaryElement,
{
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let conv = inputs_geometry(ctx, &attrs)?;
        let argument = |index| per_channel::<T>(ctx, index, conv.out_channels);
        let out = match fused.first {
            First::Bias => with_bias::<T>(ctx, &conv, &fused)?,
            First::BatchNorm => {
                let moments = [argument(0)?, argument(1)?, argument(2)?, argument(3)?];
                let channels = channels(moments, epsilon);
                let scaled = |first: usize, pixel: &mut [T]| {
                    for (value, (factor, shift)) in pixel.iter_mut().zip(&channels[first..]) {
                        *value = T::from_f64(value.to_f64() * factor + shift);
                    }
                    fused.ending.finish(pixel);
                };
                convolved(ctx, &conv, Epilogue::Rows(&scaled))?
            }
        };
        ctx.set(0, out);
        Ok(())
    })
}

/// A convolution, its bias, perhaps the sum with another tensor, and the functions.
pub(super) fn with_bias<T>(ctx: &KernelCtx<'_>, conv: &Conv2d, fused: &Fused) -> Result<Tensor>
where
    T: Element + ConvElement + Float + UnaryElement + BinaryElement,
{
    let bias = per_channel::<T>(ctx, 0, conv.out_channels)?;
    if !fused.add {
        return fused
            .ending
            .biased(bias, |epilogue| convolved(ctx, conv, epilogue));
    }
    let mut out = convolved(ctx, conv, Epilogue::Bias(bias))?;
    let addend = ctx.input(3)?;
    if addend.shape() != out.shape() {
        return Err(invalid_argument!(
            "what is added has shape {}, the convolution {}",
            addend.shape(),
            out.shape()
        ));
    }
    let (addend, values) = (addend.slice::<T>()?, out.slice_mut::<T>()?);
    let shapes = Broadcast::same(addend.len());
    apply_lhs(ctx.par(), Binary::Add, &shapes, values, addend).map_err(status)?;
    fused.ending.finish_all(ctx.par(), values);
    Ok(out)
}

/// What each channel is multiplied by and what is then added, for scale, offset, mean and variance.
fn channels<T: Real>(moments: [&[T]; 4], epsilon: f64) -> Vec<(f64, f64)> {
    let [scale, offset, mean, variance] = moments;
    let channels = 0..scale.len();
    channels
        .map(|channel| {
            let factor = scale[channel].to_f64() / (variance[channel].to_f64() + epsilon).sqrt();
            (
                factor,
                offset[channel].to_f64() - mean[channel].to_f64() * factor,
            )
        })
        .collect()
}
