//! `Conv3D`, `Conv3DBackpropInput(V2)`, `Conv3DBackpropFilter(V2)`: convolutions of NDHWC volumes with DHWIO filters.
//!
//! TensorFlow: Conv3D(input: T, filter: T) -> output: T, with strides and padding. The second versions of the gradients take
//! the sizes of what they compute, the first ones a tensor that has them. Dilations and channels first have no kernels on the
//! CPU there, so they are refused here.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::conv::{
    Conv3d, Element as ConvElement, Padding, backprop_filter_3d, backprop_input_3d, forward_3d,
};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, Tensor};

use super::conv_attrs::with_attrs;
use super::volume::{convolved, five, negative, padding, shape_of, sizes, triple};
use crate::by_float;
use crate::types::FLOATS;

const ATTRS: &[&str] = &[
    "T: {half, bfloat16, float, double}",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
];

const INPUT_ATTRS: &[&str] = &[
    "T: {half, bfloat16, float, double}",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
    "Tshape: {int32, int64} = DT_INT32",
];

const OLD_ATTRS: &[&str] = &[
    "T: {half, float, double}",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
];

const OLD_TYPES: &[DType] = &[DType::F16, DType::F32, DType::F64];

/// Elements that may be laid out at a time.
const MOST_SCRATCH: usize = 1 << 30;

const UNIT: (&str, &str) = ("strides", "[1, 1, 1, 1, 1]");
const TWO: (&str, &str) = ("strides", "[1, 2, 1, 2, 1]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");
const DILATED: (&str, &str) = ("dilations", "[1, 2, 1, 1, 1]");
const FIRST: (&str, &str) = ("data_format", "'NCDHW'");

const VOLUME: Lit = ramp(&[2, 4, 3, 5, 2], -3.0, 0.125);
const FILTER: Lit = ramp(&[3, 2, 3, 2, 3], 1.0, -0.0625);
/// The gradient of what [`VOLUME`] and [`FILTER`] make with strides [`TWO`], `SAME`.
const GRAD: Lit = ramp(&[2, 2, 3, 3, 3], -1.0, 0.125);
const SMALL: Lit = f32s(&[1, 2, 2, 2, 1], &[1.0]);

const CONV: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: ATTRS,
    cost: Cost::Expensive,
    exactness: Exactness::Relative(2e-5),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "Conv3D",
        inputs: &["input: T", "filter: T"],
        infer: convolved,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Pass::Forward))],
        examples: &[
            ex_attrs(
                "sums of cubes",
                &[UNIT, VALID],
                &[
                    x(
                        &[1, 2, 2, 3, 1],
                        &[
                            1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0,
                        ],
                    ),
                    x(&[2, 2, 2, 1, 1], &[1.0]),
                ],
                &[x(&[1, 1, 1, 2, 1], &[48.0, 56.0])],
            ),
            ex_ref("same, strides", &[TWO, SAME], &[VOLUME, FILTER]),
            ex_ref("valid", &[UNIT, VALID], &[VOLUME, FILTER]),
            ex_ref(
                "flat filter",
                &[UNIT, SAME],
                &[VOLUME, ramp(&[1, 2, 2, 2, 2], 1.0, -0.125)],
            ),
            ex_err(
                "no volume",
                &[UNIT, VALID],
                &[f32s(&[2, 2], &[1.0]), SMALL],
                Code::InvalidArgument,
                "5-dimensional",
            ),
            ex_err(
                "channels",
                &[UNIT, VALID],
                &[
                    f32s(&[1, 2, 2, 2, 3], &[1.0]),
                    f32s(&[1, 1, 1, 2, 1], &[1.0]),
                ],
                Code::InvalidArgument,
                "depth must be evenly divisible by filter depth: 3 vs 2",
            ),
            ex_err(
                "groups",
                &[UNIT, VALID],
                &[
                    f32s(&[1, 2, 2, 2, 4], &[1.0]),
                    f32s(&[1, 1, 1, 2, 2], &[1.0]),
                ],
                Code::InvalidArgument,
                "Number of channels in filter (2) must match last dimension of input (4)",
            ),
            ex_err(
                "dilated",
                &[UNIT, VALID, DILATED],
                &[
                    f32s(&[1, 3, 2, 2, 1], &[1.0]),
                    f32s(&[2, 1, 1, 1, 1], &[1.0]),
                ],
                Code::InvalidArgument,
                "CPU implementation of Conv3D currently only supports dilated rates of 1.",
            ),
            ex_err(
                "channels first",
                &[UNIT, VALID, FIRST],
                &[
                    f32s(&[1, 1, 2, 2, 2], &[1.0]),
                    f32s(&[1, 1, 1, 1, 1], &[1.0]),
                ],
                Code::InvalidArgument,
                "CPU implementation of Conv3D currently only supports the NHWC tensor format.",
            ),
        ],
        ..CONV
    },
    OpDef {
        name: "Conv3DBackpropFilter",
        inputs: &["input: T", "filter: T", "out_backprop: T"],
        attrs: OLD_ATTRS,
        deprecated: 10,
        infer: like_filter,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", OLD_TYPES)], |node| build(node, Pass::Filter))],
        examples: &[ex_ref("strides", &[TWO, SAME], &[VOLUME, FILTER, GRAD])],
        ..CONV
    },
    OpDef {
        name: "Conv3DBackpropFilterV2",
        inputs: &["input: T", "filter_sizes: int32", "out_backprop: T"],
        infer: infer::shape_in::<1>,
        gradient: Gradient::Rule(filter_gradient),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Pass::Filter))],
        examples: &[
            ex_ref(
                "strides",
                &[TWO, SAME],
                &[VOLUME, i32s(&[5], &[3, 2, 3, 2, 3]), GRAD],
            ),
            ex_err(
                "sizes",
                &[TWO, SAME],
                &[SMALL, i32s(&[4], &[3, 2, 3, 2]), SMALL],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "channels first",
                &[UNIT, VALID, FIRST],
                &[SMALL, i32s(&[5], &[1, 1, 1, 1, 1]), SMALL],
                Code::InvalidArgument,
                "Conv3DBackpropFilterOpV2 only supports NDHWC on the CPU.",
            ),
        ],
        ..CONV
    },
    OpDef {
        name: "Conv3DBackpropInput",
        inputs: &["input: T", "filter: T", "out_backprop: T"],
        attrs: OLD_ATTRS,
        deprecated: 10,
        infer: infer::same_as_first,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", OLD_TYPES)], |node| build(node, Pass::Input))],
        examples: &[ex_ref("strides", &[TWO, SAME], &[VOLUME, FILTER, GRAD])],
        ..CONV
    },
    OpDef {
        name: "Conv3DBackpropInputV2",
        inputs: &["input_sizes: Tshape", "filter: T", "out_backprop: T"],
        attrs: INPUT_ATTRS,
        infer: infer::shape_in::<0>,
        gradient: Gradient::Rule(input_gradient),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Pass::Input))],
        examples: &[
            ex_ref(
                "strides",
                &[TWO, SAME],
                &[i32s(&[5], &[2, 4, 3, 5, 2]), FILTER, GRAD],
            ),
            ex_err(
                "out_backprop",
                &[TWO, SAME],
                &[
                    i32s(&[5], &[1, 2, 2, 2, 1]),
                    f32s(&[1, 1, 1, 1, 1], &[1.0]),
                    SMALL,
                ],
                Code::InvalidArgument,
                "Size of out_backprop doesn't match computed: actual = 2, computed = 1",
            ),
            ex_err(
                "dilated",
                &[UNIT, VALID, DILATED],
                &[i32s(&[5], &[1, 2, 2, 2, 1]), SMALL, SMALL],
                Code::InvalidArgument,
                "Current CPU implementation does not yet support dilation rates larger than 1.",
            ),
        ],
        ..CONV
    },
];

fn like_filter(ctx: &mut infer::InferCtx<'_>) -> Result<()> {
    ctx.set(0, ctx.input(1).merge(&PartialShape::of_rank(5))?);
    Ok(())
}

const SHARED: [&str; 4] = ["strides", "padding", "data_format", "dilations"];

/// A node that computes one of the three tensors of a convolution from the others.
fn node(g: &mut GradCtx<'_>, op: &str, inputs: &[Output]) -> Result<Option<Grad>> {
    Ok(Some(Grad::Dense(with_attrs(g, op, &SHARED, inputs)?)))
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, input, filter) = (g.grad(0)?, g.input(0), g.input(1));
    let (input_sizes, filter_sizes) = (g.shape(input)?, g.shape(filter)?);
    Ok(vec![
        node(g, "Conv3DBackpropInputV2", &[input_sizes, filter, grad])?,
        node(g, "Conv3DBackpropFilterV2", &[input, filter_sizes, grad])?,
    ])
}

fn input_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, filter, backprop) = (g.grad(0)?, g.input(1), g.input(2));
    let sizes = g.shape(filter)?;
    let to_filter = node(g, "Conv3DBackpropFilterV2", &[grad, sizes, backprop])?;
    Ok(vec![None, to_filter, node(g, "Conv3D", &[grad, filter])?])
}

fn filter_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, input, backprop) = (g.grad(0)?, g.input(0), g.input(2));
    let sizes = g.shape(input)?;
    let to_input = node(g, "Conv3DBackpropInputV2", &[sizes, grad, backprop])?;
    Ok(vec![to_input, None, node(g, "Conv3D", &[input, grad])?])
}

#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Forward,
    Input,
    Filter,
}

/// What a node's attributes say.
#[derive(Clone, Copy)]
pub(super) struct Attrs3d {
    pub(super) stride: [usize; 3],
    pub(super) padding: Padding,
}

impl Attrs3d {
    fn new(node: &NodeInfo, pass: Pass) -> Result<Attrs3d> {
        let attrs = &node.attrs;
        let first = attrs.get("data_format").is_some() && attrs.str("data_format")? == "NCDHW";
        let refuse = |what: &'static str| {
            move || {
                invalid_argument!(
                    "Current implementation does not yet support {what} in the batch and depth dimensions."
                )
            }
        };
        match pass {
            Pass::Forward if first => {
                return Err(invalid_argument!(
                    "CPU implementation of Conv3D currently only supports the NHWC tensor format."
                ));
            }
            Pass::Input if first => {
                return Err(invalid_argument!(
                    "Conv3DBackpropInputOpV2 only supports NDHWC on the CPU."
                ));
            }
            Pass::Filter if first => {
                return Err(invalid_argument!(
                    "Conv3DBackpropFilterOpV2 only supports NDHWC on the CPU."
                ));
            }
            _ => {}
        }
        let rates = refuse("dilation rates");
        let dilations = triple(attrs.ints("dilations")?, "Dilation rates", rates)?;
        if dilations != [1; 3] {
            return Err(match pass {
                Pass::Forward => invalid_argument!(
                    "CPU implementation of Conv3D currently only supports dilated rates of 1."
                ),
                _ => invalid_argument!(
                    "Current CPU implementation does not yet support dilation rates larger than 1."
                ),
            });
        }
        Ok(Attrs3d {
            stride: triple(attrs.ints("strides")?, "strides", refuse("strides"))?,
            padding: padding(attrs)?,
        })
    }

    /// The convolution of volumes with filters of these shapes.
    pub(super) fn over(&self, input: &Shape, filter: &Shape) -> Result<Conv3d> {
        let Some(volume) = five(input) else {
            return Err(invalid_argument!("input must be 5-dimensional"));
        };
        let Some(window) = five(filter) else {
            return Err(invalid_argument!("filter must be 5-dimensional"));
        };
        let (found, wanted) = (volume[4], window[3]);
        ensure!(
            wanted != 0,
            invalid_argument,
            "filter_depth must be non-zero"
        );
        ensure!(
            found.is_multiple_of(wanted),
            invalid_argument,
            "Input depth must be evenly divisible by filter depth: {found} vs {wanted}"
        );
        ensure!(
            filter.elements() > 0,
            invalid_argument,
            "filter must not have zero elements (i.e. all dimensions must be non-zero)"
        );
        ensure!(
            found == wanted,
            invalid_argument,
            "Number of channels in filter ({wanted}) must match last dimension of input ({found})"
        );
        let conv = Conv3d::new(volume, window, self.stride, self.padding).ok_or_else(|| {
            let [_, d, h, w, _] = volume;
            let [fd, fh, fw, ..] = window;
            negative([d, h, w], [fd, fh, fw], self.stride, self.padding)
        })?;
        ensure!(
            conv.scratch() <= MOST_SCRATCH,
            resource_exhausted,
            "a convolution of {input} with {filter} would lay out {} elements at a time",
            conv.scratch()
        );
        Ok(conv)
    }
}

fn build(node: &NodeInfo, pass: Pass) -> Result<AnyKernel> {
    let (attrs, dtype) = (Attrs3d::new(node, pass)?, node.attrs.dtype("T")?);
    by_float!(dtype, T => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = match pass {
            Pass::Forward => convolve::<T>(ctx, &attrs)?,
            _ => backward::<T>(ctx, &attrs, pass)?,
        };
        ctx.set(0, out);
        Ok(())
    }), else => Err(internal!("no convolution of {dtype}")))
}

fn convolve<T: Element + ConvElement>(ctx: &KernelCtx<'_>, attrs: &Attrs3d) -> Result<Tensor> {
    let (input, filter) = (ctx.input(0)?, ctx.input(1)?);
    let conv = attrs.over(input.shape(), filter.shape())?;
    volume_convolved::<T>(ctx, &conv, input, filter)
}

/// A volume convolved with a filter.
pub(super) fn volume_convolved<T: Element + ConvElement>(
    ctx: &KernelCtx<'_>,
    conv: &Conv3d,
    input: &Tensor,
    filter: &Tensor,
) -> Result<Tensor> {
    let mut out = ctx.allocate(T::DTYPE, shape_of(conv.output())?)?;
    if !out.is_empty() {
        let (input, filter) = (input.slice::<T>()?, filter.slice::<T>()?);
        forward_3d(ctx.par(), conv, input, filter, out.slice_mut::<T>()?);
    }
    Ok(out)
}

/// The shape of what `pass` computes: an input of sizes, or the shape of an input.
fn wanted_shape(ctx: &KernelCtx<'_>, index: usize, text: &str) -> Result<Shape> {
    let tensor = ctx.input(index)?;
    match tensor.dtype() {
        DType::I32 | DType::I64 => sizes(&ctx.ints(index)?, text),
        _ => Ok(tensor.shape().clone()),
    }
}

fn backward<T: Element + ConvElement>(
    ctx: &KernelCtx<'_>,
    attrs: &Attrs3d,
    pass: Pass,
) -> Result<Tensor> {
    let backprop = ctx.input(2)?;
    let (input, filter) = if pass == Pass::Input {
        let shape = wanted_shape(ctx, 0, "input tensor must have 5 dimensions")?;
        (shape, ctx.input(1)?.shape().clone())
    } else {
        let shape = wanted_shape(ctx, 1, "filter_sizes tensor must have 5 dimensions")?;
        (ctx.input(0)?.shape().clone(), shape)
    };
    let conv = attrs.over(&input, &filter)?;
    check_backprop(&conv, backprop.shape(), pass)?;
    let grad = backprop.slice::<T>()?;
    let shape = if pass == Pass::Input { input } else { filter };
    let mut out = ctx.allocate(T::DTYPE, shape)?;
    let to = out.slice_mut::<T>()?;
    if grad.is_empty() || to.is_empty() {
        to.fill(<T as tensorfleet_math::gemm::Element>::ZERO);
    } else if pass == Pass::Input {
        backprop_input_3d(ctx.par(), &conv, ctx.input(1)?.slice::<T>()?, grad, to);
    } else {
        backprop_filter_3d(ctx.par(), &conv, ctx.input(0)?.slice::<T>()?, grad, to);
    }
    Ok(out)
}

fn check_backprop(conv: &Conv3d, found: &Shape, pass: Pass) -> Result<()> {
    let label = match pass {
        Pass::Input => "Conv3DBackpropInputOp",
        _ => "Conv3DBackpropFilterOp",
    };
    let Some(found) = five(found) else {
        return Err(invalid_argument!(
            "out_backprop tensor must have 5 dimensions"
        ));
    };
    let wanted = conv.output();
    ensure!(
        found[0] == wanted[0],
        invalid_argument,
        "{label}: input and out_backprop must have the same batch size. Input batch: {}, outbackprop batch: {}, batch_dim: 0",
        wanted[0],
        found[0]
    );
    ensure!(
        found[4] == wanted[4],
        invalid_argument,
        "out_backprop and filter_sizes must have the same number of channels. Got {} for out_backprop and {} for filter_sizes",
        found[4],
        wanted[4]
    );
    for axis in 1..4 {
        ensure!(
            found[axis] == wanted[axis],
            invalid_argument,
            "{label}: Size of out_backprop doesn't match computed: actual = {}, computed = {} spatial_dim: {axis}",
            found[axis],
            wanted[axis]
        );
    }
    Ok(())
}
