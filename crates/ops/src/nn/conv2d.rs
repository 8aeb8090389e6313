//! `Conv2D`, `Conv2DBackpropInput`, `Conv2DBackpropFilter`: convolutions of NHWC images with HWIO filters.
//!
//! TensorFlow: Conv2D(input: T, filter: T) -> output: T, with strides, padding, explicit_paddings, dilations, data_format;
//! the gradients take the sizes of what they compute as int32 tensors. Filters with fewer input channels than the image
//! convolve in groups.

use tensorfleet_graph::example::{Example, ex_attrs, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::conv::{
    Conv2d, Element as ConvElement, backprop_filter, backprop_input, forward,
};
use tensorfleet_math::gemm::Epilogue;
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::conv_attrs::{WindowAttrs, four};
use super::conv_gradients;
use super::conv_shapes;
use crate::by_float;
use crate::types::FLOATS;

pub(super) const WITH_INT: &[DType] =
    &[DType::F16, DType::BF16, DType::F32, DType::F64, DType::I32];

const ATTRS: &[&str] = &[
    "T: {half, bfloat16, float, double, int32}",
    "strides: list(int)",
    "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
];

const FILTER_ATTRS: &[&str] = &[
    "T: {half, bfloat16, float, double}",
    "strides: list(int)",
    "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
];

pub(super) const UNIT: (&str, &str) = ("strides", "[1, 1, 1, 1]");
pub(super) const VALID: (&str, &str) = ("padding", "'VALID'");
pub(super) const SAME: (&str, &str) = ("padding", "'SAME'");

const CONV: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: ATTRS,
    cost: Cost::Expensive,
    exactness: Exactness::Relative(2e-5),
    ..OpDef::BLANK
};

const FORWARD: &[Example] = &[
    ex_attrs(
        "two by two",
        &[UNIT, VALID],
        &[
            x(
                &[1, 3, 3, 1],
                &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            ),
            x(&[2, 2, 1, 1], &[1.0, 0.0, 0.0, 1.0]),
        ],
        &[x(&[1, 2, 2, 1], &[6.0, 8.0, 12.0, 14.0])],
    ),
    ex_ref(
        "same, stride two",
        &[("strides", "[1, 2, 2, 1]"), SAME],
        &[
            ramp(&[2, 5, 4, 3], -3.0, 0.125),
            ramp(&[3, 3, 3, 2], 1.0, -0.0625),
        ],
    ),
    ex_ref(
        "dilated",
        &[UNIT, SAME, ("dilations", "[1, 2, 2, 1]")],
        &[
            ramp(&[1, 6, 6, 2], -3.0, 0.125),
            ramp(&[3, 3, 2, 2], 1.0, -0.0625),
        ],
    ),
    ex_ref(
        "explicit",
        &[
            UNIT,
            ("padding", "'EXPLICIT'"),
            ("explicit_paddings", "[0, 0, 1, 2, 0, 1, 0, 0]"),
        ],
        &[
            ramp(&[1, 4, 4, 1], -1.0, 0.25),
            ramp(&[3, 3, 1, 2], 1.0, -0.25),
        ],
    ),
    ex_ref(
        "one by one",
        &[UNIT, VALID],
        &[
            ramp(&[1, 3, 3, 4], -1.0, 0.25),
            ramp(&[1, 1, 4, 3], 1.0, -0.25),
        ],
    ),
    ex_err(
        "channels differ",
        &[UNIT, VALID],
        &[f32s(&[1, 3, 3, 3], &[0.0]), f32s(&[2, 2, 2, 1], &[0.0])],
        Code::InvalidArgument,
        "depth",
    ),
    ex_err(
        "no image",
        &[UNIT, VALID],
        &[f32s(&[3, 3], &[0.0]), f32s(&[2, 2, 2, 1], &[0.0])],
        Code::InvalidArgument,
        "4-dimensional",
    ),
    ex_err(
        "filter without rows",
        &[UNIT, VALID],
        &[f32s(&[1, 2, 2, 1], &[0.0]), f32s(&[0, 1, 1, 1], &[])],
        Code::InvalidArgument,
        "",
    ),
    ex_err(
        "filter too large",
        &[UNIT, VALID],
        &[f32s(&[1, 2, 2, 1], &[0.0]), f32s(&[5, 5, 1, 1], &[0.0])],
        Code::InvalidArgument,
        "negative",
    ),
];

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "Conv2D",
        inputs: &["input: T", "filter: T"],
        infer: conv_shapes::convolved,
        gradient: Gradient::Rule(|g| conv_gradients::forward(g, "Conv2D")),
        kernels: &[cpu(&[("T", WITH_INT)], build)],
        examples: FORWARD,
        ..CONV
    },
    OpDef {
        name: "Conv2DBackpropInput",
        inputs: &["input_sizes: int32", "filter: T", "out_backprop: T"],
        infer: conv_shapes::sized,
        gradient: Gradient::Rule(|g| conv_gradients::backprop_input(g, "Conv2D")),
        kernels: &[cpu(&[("T", WITH_INT)], build_input)],
        examples: &[
            ex_ref(
                "stride two",
                &[("strides", "[1, 2, 2, 1]"), SAME],
                &[
                    i32s(&[4], &[2, 5, 4, 3]),
                    ramp(&[3, 3, 3, 2], 1.0, -0.0625),
                    ramp(&[2, 3, 2, 2], -1.0, 0.25),
                ],
            ),
            ex_ref(
                "height and width only",
                &[UNIT, VALID],
                &[
                    i32s(&[2], &[3, 3]),
                    ramp(&[2, 2, 1, 1], 1.0, -0.5),
                    ramp(&[2, 2, 2, 1], -1.0, 0.25),
                ],
            ),
            ex_err(
                "three sizes",
                &[UNIT, VALID],
                &[
                    i32s(&[3], &[3, 3, 1]),
                    f32s(&[2, 2, 1, 1], &[0.0]),
                    f32s(&[1, 2, 2, 1], &[0.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "sizes do not fit",
                &[UNIT, VALID],
                &[
                    i32s(&[4], &[1, 3, 3, 1]),
                    f32s(&[2, 2, 1, 1], &[0.0]),
                    f32s(&[1, 3, 3, 1], &[0.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..CONV
    },
    OpDef {
        name: "Conv2DBackpropFilter",
        inputs: &["input: T", "filter_sizes: int32", "out_backprop: T"],
        attrs: FILTER_ATTRS,
        infer: infer::shape_in::<1>,
        gradient: Gradient::Rule(|g| conv_gradients::backprop_filter(g, "Conv2D")),
        kernels: &[cpu(&[("T", FLOATS)], build_filter)],
        examples: &[ex_ref(
            "stride two",
            &[("strides", "[1, 2, 2, 1]"), SAME],
            &[
                ramp(&[2, 5, 4, 3], -3.0, 0.125),
                i32s(&[4], &[3, 3, 3, 2]),
                ramp(&[2, 3, 2, 2], -1.0, 0.25),
            ],
        )],
        ..CONV
    },
];

fn geometry(attrs: &WindowAttrs, input: [usize; 4], filter: [usize; 4]) -> Result<Conv2d> {
    if filter[2] == 0 || !input[3].is_multiple_of(filter[2]) {
        return Err(invalid_argument!(
            "input depth must be evenly divisible by filter depth: {} vs {}",
            input[3],
            filter[2]
        ));
    }
    let groups = input[3] / filter[2];
    if groups > 0 && !filter[3].is_multiple_of(groups) {
        return Err(invalid_argument!(
            "output depth must be evenly divisible by number of groups: {} vs {groups}",
            filter[3]
        ));
    }
    Conv2d::new(input, filter, attrs.stride, attrs.dilation, attrs.padding)
        .ok_or_else(|| invalid_argument!("Computed output size would be negative: input {input:?}, filter {filter:?}, strides {:?}, dilations {:?}", attrs.stride, attrs.dilation))
}

pub(super) fn output_shape(conv: &Conv2d) -> Result<Shape> {
    Shape::new(&[
        conv.batch as i64,
        conv.output[0] as i64,
        conv.output[1] as i64,
        conv.out_channels as i64,
    ])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = WindowAttrs::new(node)?;
    let dtype = node.attrs.dtype("T")?;
    by_float!(dtype, T => convolve::<T>(attrs), else => match dtype {
        DType::I32 => convolve::<i32>(attrs),
        _ => Err(internal!("no convolution of {dtype}")),
    })
}

fn convolve<T: Element + ConvElement>(attrs: WindowAttrs) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let conv = inputs_geometry(ctx, &attrs)?;
        let out = convolved(ctx, &conv, Epilogue::<T>::default())?;
        ctx.set(0, out);
        Ok(())
    })
}

/// The convolution of the first input with the second.
pub(super) fn inputs_geometry(ctx: &KernelCtx<'_>, attrs: &WindowAttrs) -> Result<Conv2d> {
    let filter = four(ctx.input(1)?.shape(), "filter")?;
    ensure!(
        filter[0] > 0 && filter[1] > 0,
        invalid_argument,
        "filter must not have zero elements (i.e. all dimensions must be non-zero)"
    );
    geometry(attrs, four(ctx.input(0)?.shape(), "input")?, filter)
}

/// Convolves the first input with the second.
pub(super) fn convolved<T: Element + ConvElement>(
    ctx: &KernelCtx<'_>,
    conv: &Conv2d,
    epilogue: Epilogue<'_, T>,
) -> Result<Tensor> {
    let mut out = ctx.allocate(T::DTYPE, output_shape(conv)?)?;
    forward(
        ctx.par(),
        conv,
        ctx.input(0)?.slice::<T>()?,
        ctx.input(1)?.slice::<T>()?,
        out.slice_mut::<T>()?,
        epilogue,
    );
    Ok(out)
}

/// The shape of the input whose gradient is wanted: four sizes, or height and width.
fn input_sizes(ctx: &KernelCtx<'_>) -> Result<Shape> {
    let (tensor, sizes) = (ctx.input(0)?, ctx.ints(0)?);
    ensure!(
        tensor.rank() == 1,
        invalid_argument,
        "Conv2DBackpropInput: input_sizes input must be 1-dim, not {}",
        tensor.rank()
    );
    match *sizes {
        [_, _, _, _] => Shape::new(&sizes),
        [height, width] => {
            ensure!(
                height >= 0 && width >= 0,
                invalid_argument,
                "Conv2DBackpropInput: elements of input_sizes must be >= 0, not {height}x{width}"
            );
            let filter = four(ctx.input(1)?.shape(), "filter")?;
            let grad = four(ctx.input(2)?.shape(), "out_backprop")?;
            Shape::new(&[grad[0] as i64, height, width, filter[2] as i64])
        }
        _ => Err(invalid_argument!(
            "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: {}",
            sizes.len()
        )),
    }
}

/// The shape in an int32 input of four sizes.
pub(super) fn sizes(ctx: &KernelCtx<'_>, index: usize, what: &str) -> Result<Shape> {
    let tensor = ctx.input(index)?;
    if tensor.rank() != 1 || tensor.elements() != 4 {
        return Err(invalid_argument!(
            "{what} input must be 1-dim of 4 sizes, got shape {}",
            tensor.shape()
        ));
    }
    Shape::new(&ctx.ints(index)?)
}

pub(super) fn check_backprop(conv: &Conv2d, found: &Shape) -> Result<()> {
    let wanted = output_shape(conv)?;
    if wanted != *found {
        return Err(invalid_argument!(
            "out_backprop has shape {found}, the sizes make {wanted}"
        ));
    }
    Ok(())
}

fn build_input(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = WindowAttrs::new(node)?;
    let dtype = node.attrs.dtype("T")?;
    by_float!(dtype, T => to_input::<T>(attrs), else => match dtype {
        DType::I32 => to_input::<i32>(attrs),
        _ => Err(internal!("no convolution of {dtype}")),
    })
}

fn to_input<T: Element + ConvElement>(attrs: WindowAttrs) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (filter, backprop) = (ctx.input(1)?, ctx.input(2)?);
        let shape = input_sizes(ctx)?;
        let conv = geometry(
            &attrs,
            four(&shape, "input_sizes")?,
            four(filter.shape(), "filter")?,
        )?;
        check_backprop(&conv, backprop.shape())?;
        let mut out = ctx.allocate(T::DTYPE, shape)?;
        backprop_input(
            ctx.par(),
            &conv,
            filter.slice::<T>()?,
            backprop.slice::<T>()?,
            out.slice_mut::<T>()?,
        );
        ctx.set(0, out);
        Ok(())
    })
}

fn build_filter(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = WindowAttrs::new(node)?;
    let dtype = node.attrs.dtype("T")?;
    by_float!(dtype, T => to_filter::<T>(attrs), else => Err(internal!("no convolution of {dtype}")))
}

fn to_filter<T: Element + ConvElement>(attrs: WindowAttrs) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (input, backprop) = (ctx.input(0)?, ctx.input(2)?);
        let shape = sizes(ctx, 1, "filter_sizes")?;
        let conv = geometry(
            &attrs,
            four(input.shape(), "input")?,
            four(&shape, "filter_sizes")?,
        )?;
        check_backprop(&conv, backprop.shape())?;
        let mut out = ctx.allocate(T::DTYPE, shape)?;
        backprop_filter(
            ctx.par(),
            &conv,
            input.slice::<T>()?,
            backprop.slice::<T>()?,
            out.slice_mut::<T>()?,
        );
        ctx.set(0, out);
        Ok(())
    })
}
