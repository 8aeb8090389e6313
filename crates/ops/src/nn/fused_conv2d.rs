//! `_FusedConv2D`: a convolution, a bias or a normalisation of each channel, and a function of it, in one pass.
//!
//! TensorFlow: _FusedConv2D(input: T, filter: T, args: TArgs, host_args: num_host_args * float) -> output: T with attrs
//! fused_ops (BiasAdd with one argument or FusedBatchNorm with scale, offset, mean and variance; then perhaps one of Relu,
//! Relu6, Elu, LeakyRelu), epsilon and leakyrelu_alpha. Made by graph optimisation.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_ref, f32s};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::conv::Element as ConvElement;
use tensorfleet_math::gemm::Epilogue;
use tensorfleet_math::num::{Float, Real};
use tensorfleet_math::unary::UnaryElement;
use tensorfleet_status::{Result, internal, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element, f16};

use super::conv_attrs::WindowAttrs;
use super::conv2d::{SAME, UNIT, VALID, convolved, inputs_geometry};
use super::ending::{Ending, Fused};

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
    let (wanted, named) = match fused {
        Fused::Bias(_) => (1, "bias"),
        Fused::BatchNorm(_) => (4, "scale, offset, mean, variance"),
    };
    if node.attrs.int("num_args")? != wanted {
        return Err(invalid_argument!(
            "Fused Conv2D must have {wanted} extra arguments: {named}"
        ));
    }
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
    T: Element + ConvElement + Float + UnaryElement,
{
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let conv = inputs_geometry(ctx, &attrs)?;
        let argument = |index: usize| {
            let tensor = ctx.input(2 + index)?;
            if tensor.rank() != 1 || tensor.elements() != conv.out_channels {
                return Err(invalid_argument!(
                    "argument {index} of a fused convolution must be a vector of {} elements, got shape {}",
                    conv.out_channels,
                    tensor.shape()
                ));
            }
            tensor.slice::<T>()
        };
        let scaled;
        let with_bias;
        let epilogue = match fused {
            Fused::Bias(Ending::Nothing) => Epilogue::Bias(argument(0)?),
            Fused::Bias(Ending::Relu) => Epilogue::BiasRelu(argument(0)?),
            Fused::Bias(ending) => {
                let bias = argument(0)?;
                with_bias = move |first: usize, pixel: &mut [T]| {
                    ending.finish_biased(&bias[first..], pixel);
                };
                Epilogue::Rows(&with_bias)
            }
            Fused::BatchNorm(ending) => {
                let moments = [argument(0)?, argument(1)?, argument(2)?, argument(3)?];
                let channels = channels(moments, epsilon);
                scaled = move |first: usize, pixel: &mut [T]| {
                    for (value, (factor, shift)) in pixel.iter_mut().zip(&channels[first..]) {
                        *value = T::from_f64(value.to_f64() * factor + shift);
                    }
                    ending.finish(pixel);
                };
                Epilogue::Rows(&scaled)
            }
        };
        let out = convolved(ctx, &conv, epilogue)?;
        ctx.set(0, out);
        Ok(())
    })
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
