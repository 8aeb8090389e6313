//! `DepthwiseConv2dNative` and its gradients: every channel convolved by itself.
//!
//! TensorFlow: DepthwiseConv2dNative(input: T, filter: T[h, w, channels, multiplier]) -> output: T, with the attributes of
//! Conv2D; the gradients take the sizes of what they compute as int32 tensors.

use tensorfleet_graph::example::{ex_err, ex_ref, f32s, i32s, ramp};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::conv::{Conv2d, Element as ConvElement, backprop_filter, backprop_input};
use tensorfleet_math::gemm::Epilogue;
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{Element, Shape, Tensor};

use super::conv_attrs::{WindowAttrs, four};
use super::conv_gradients;
use super::conv_shapes;
use super::conv2d::{check_backprop, convolved, sizes};
use crate::by_float;
use crate::types::FLOATS;

const ATTRS: &[&str] = &[
    "T: {half, bfloat16, float, double}",
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
];

const NAME: &str = "DepthwiseConv2dNative";
const STRIDES: (&str, &str) = ("strides", "[1, 2, 2, 1]");
const SAME: (&str, &str) = ("padding", "'SAME'");

const DEPTHWISE: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: ATTRS,
    cost: Cost::Expensive,
    exactness: Exactness::Relative(2e-5),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: NAME,
        inputs: &["input: T", "filter: T"],
        infer: conv_shapes::convolved_by_channel,
        gradient: Gradient::Rule(|g| conv_gradients::forward(g, NAME)),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Pass::Forward))],
        examples: &[
            ex_ref(
                "two outputs per channel",
                &[STRIDES, SAME],
                &[
                    ramp(&[1, 5, 4, 3], -3.0, 0.125),
                    ramp(&[3, 3, 3, 2], 1.0, -0.0625),
                ],
            ),
            ex_err(
                "channels differ",
                &[STRIDES, SAME],
                &[f32s(&[1, 3, 3, 3], &[0.0]), f32s(&[2, 2, 2, 1], &[0.0])],
                Code::InvalidArgument,
                "depth",
            ),
        ],
        ..DEPTHWISE
    },
    OpDef {
        name: "DepthwiseConv2dNativeBackpropInput",
        inputs: &["input_sizes: int32", "filter: T", "out_backprop: T"],
        infer: infer::shape_in::<0>,
        gradient: Gradient::Rule(|g| conv_gradients::backprop_input(g, NAME)),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Pass::Input))],
        examples: &[ex_ref(
            "stride two",
            &[STRIDES, SAME],
            &[
                i32s(&[4], &[1, 5, 4, 3]),
                ramp(&[3, 3, 3, 2], 1.0, -0.0625),
                ramp(&[1, 3, 2, 6], -1.0, 0.25),
            ],
        )],
        ..DEPTHWISE
    },
    OpDef {
        name: "DepthwiseConv2dNativeBackpropFilter",
        inputs: &["input: T", "filter_sizes: int32", "out_backprop: T"],
        infer: infer::shape_in::<1>,
        gradient: Gradient::Rule(|g| conv_gradients::backprop_filter(g, NAME)),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Pass::Filter))],
        examples: &[ex_ref(
            "stride two",
            &[STRIDES, SAME],
            &[
                ramp(&[1, 5, 4, 3], -3.0, 0.125),
                i32s(&[4], &[3, 3, 3, 2]),
                ramp(&[1, 3, 2, 6], -1.0, 0.25),
            ],
        )],
        ..DEPTHWISE
    },
];

#[derive(Clone, Copy)]
enum Pass {
    Forward,
    Input,
    Filter,
}

fn build(node: &NodeInfo, pass: Pass) -> Result<AnyKernel> {
    let attrs = WindowAttrs::new(node)?;
    let dtype = node.attrs.dtype("T")?;
    by_float!(dtype, T => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = run::<T>(ctx, &attrs, pass)?;
        ctx.set(0, out);
        Ok(())
    }), else => Err(internal!("no convolution of {dtype}")))
}

/// The convolution of an input of this shape with such a filter.
pub(super) fn geometry(attrs: &WindowAttrs, input: &Shape, filter: &Shape) -> Result<Conv2d> {
    let (images, windows) = (four(input, "input")?, four(filter, "filter")?);
    if images[3] != windows[2] {
        return Err(invalid_argument!(
            "input and filter must have the same depth: {} vs {}",
            images[3],
            windows[2]
        ));
    }
    Conv2d::depthwise(images, windows, attrs.stride, attrs.dilation, attrs.padding).ok_or_else(
        || {
            invalid_argument!(
                "Computed output size would be negative: input {input}, filter {filter}"
            )
        },
    )
}

fn run<T: Element + ConvElement>(
    ctx: &KernelCtx<'_>,
    attrs: &WindowAttrs,
    pass: Pass,
) -> Result<Tensor> {
    let input_shape = if matches!(pass, Pass::Input) {
        sizes(ctx, 0, "input_sizes")?
    } else {
        ctx.input(0)?.shape().clone()
    };
    let filter_shape = if matches!(pass, Pass::Filter) {
        sizes(ctx, 1, "filter_sizes")?
    } else {
        ctx.input(1)?.shape().clone()
    };
    let conv = geometry(attrs, &input_shape, &filter_shape)?;
    let shape = match pass {
        Pass::Forward => return convolved(ctx, &conv, Epilogue::<T>::default()),
        Pass::Input => input_shape,
        Pass::Filter => filter_shape,
    };
    check_backprop(&conv, ctx.input(2)?.shape())?;
    let mut out = ctx.allocate(T::DTYPE, shape)?;
    let backprop = ctx.input(2)?.slice::<T>()?;
    if matches!(pass, Pass::Input) {
        let filter = ctx.input(1)?.slice::<T>()?;
        backprop_input(ctx.par(), &conv, filter, backprop, out.slice_mut::<T>()?);
    } else {
        let input = ctx.input(0)?.slice::<T>()?;
        backprop_filter(ctx.par(), &conv, input, backprop, out.slice_mut::<T>()?);
    }
    Ok(out)
}
