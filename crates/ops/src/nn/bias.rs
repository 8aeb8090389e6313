//! `BiasAdd`, `BiasAddV1`, `BiasAddGrad`: a vector added to every pixel, and its gradient.
//!
//! TensorFlow: BiasAdd(value: T, bias: T) -> output: T, with data_format; BiasAddGrad(out_backprop: T) -> output: T.
//! In NHWC the bias goes along the last dimension, in NCHW along the second.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AttrValue, KernelCtx, NodeInfo};
use tensorfleet_math::activation::{Channels, bias_add, bias_add_grad, bias_add_in_place};
use tensorfleet_math::binary::BinaryElement;
use tensorfleet_math::reduce::ReduceElement;
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{Element, PartialShape, Shape};

use crate::by_number;
use crate::types::NUMBERS;

const T: &str = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}";
const FORMAT: &str = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";

const BIAS: OpDef = OpDef {
    inputs: &["value: T", "bias: T"],
    outputs: &["output: T"],
    attrs: &[T, FORMAT],
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", NUMBERS)], build)],
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "BiasAdd",
        examples: &[
            ex(
                "matrix",
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), x(&[2], &[10.0, 20.0])],
                &[x(&[2, 2], &[11.0, 22.0, 13.0, 24.0])],
            ),
            ex_attrs(
                "channels first",
                &[("data_format", "'NCHW'")],
                &[
                    x(&[1, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0]),
                    x(&[2], &[10.0, 20.0]),
                ],
                &[x(&[1, 2, 2, 1], &[11.0, 12.0, 23.0, 24.0])],
            ),
            ex_err(
                "lengths differ",
                &[],
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), x(&[3], &[1.0, 2.0, 3.0])],
                Code::InvalidArgument,
                "bias",
            ),
            ex_err(
                "vector",
                &[],
                &[x(&[2], &[1.0, 2.0]), x(&[2], &[1.0, 2.0])],
                Code::InvalidArgument,
                "2D",
            ),
        ],
        ..BIAS
    },
    OpDef {
        name: "BiasAddV1",
        attrs: &[T],
        examples: &[ex(
            "matrix",
            &[x(&[1, 2], &[1.0, 2.0]), x(&[2], &[10.0, 20.0])],
            &[x(&[1, 2], &[11.0, 22.0])],
        )],
        ..BIAS
    },
    OpDef {
        name: "BiasAddGrad",
        inputs: &["out_backprop: T"],
        infer: grad_shape,
        gradient: Gradient::Rule(grad_gradient),
        kernels: &[cpu(&[("T", NUMBERS)], build_grad)],
        exactness: Exactness::Relative(1e-5),
        examples: &[
            ex(
                "matrix",
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
                &[x(&[2], &[4.0, 6.0])],
            ),
            ex_attrs(
                "channels first",
                &[("data_format", "'NCHW'")],
                &[x(&[1, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0])],
                &[x(&[2], &[3.0, 7.0])],
            ),
            ex("no rows", &[x(&[0, 2], &[])], &[x(&[2], &[0.0, 0.0])]),
        ],
        ..BIAS
    },
];

fn grad_shape(ctx: &mut InferCtx<'_>) -> Result<()> {
    let axis = match (ctx.attrs().str("data_format")?, ctx.input(0).rank()) {
        ("NCHW", Some(_)) => 1,
        (_, Some(rank)) => rank.saturating_sub(1),
        _ => {
            ctx.set(0, PartialShape::of_rank(1));
            return Ok(());
        }
    };
    ctx.set(
        0,
        PartialShape::new(&[ctx.input(0).dim(axis).unwrap_or(-1)]),
    );
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let format = g
        .attr("data_format")
        .unwrap_or_else(|_| AttrValue::from("NHWC"));
    let bias = g
        .builder()
        .op("BiasAddGrad")
        .input(grad)
        .attr("data_format", format)
        .output()?;
    Ok(vec![Some(Grad::Dense(grad)), Some(Grad::Dense(bias))])
}

/// The gradient of a sum over all pixels goes to every pixel.
fn grad_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (input, grad, format) = (g.input(0), g.grad(0)?, g.attr("data_format")?);
    let zeros = g.apply("ZerosLike", &[input])?;
    let node = g.builder().op("BiasAdd").input(zeros).input(grad);
    dense(node.attr("data_format", format).output()?)
}

/// Whether channels come second.
fn channels_first(node: &NodeInfo) -> Result<bool> {
    Ok(node.attrs.get("data_format").is_some() && node.attrs.str("data_format")? == "NCHW")
}

fn channels(shape: &Shape, first: bool) -> Result<Channels> {
    if shape.rank() < 2 {
        return Err(invalid_argument!(
            "Input tensor must be at least 2D: {shape}"
        ));
    }
    Ok(if first {
        Channels {
            count: shape.dim(1),
            inner: shape.elements_in(2..shape.rank()),
        }
    } else {
        Channels::last(shape.dim(shape.rank() - 1))
    })
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let first = channels_first(node)?;
    let dtype = node.attrs.dtype("T")?;
    by_number!(dtype, T => add::<T>(first), else => Err(internal!("no bias of {dtype}")))
}

fn add<T: Element + BinaryElement>(first: bool) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let bias = ctx.take(1)?;
        let mut value = ctx.take(0)?;
        if bias.rank() != 1 {
            return Err(invalid_argument!("Biases must be 1D: {}", bias.shape()));
        }
        let channels = channels(value.shape(), first)?;
        if channels.count != bias.elements() {
            return Err(invalid_argument!(
                "Must provide as many biases as the last dimension of the input tensor: {} vs. {}",
                bias.shape(),
                value.shape()
            ));
        }
        let bias = bias.slice::<T>()?;
        let out = if value.is_unique() {
            bias_add_in_place(ctx.par(), channels, value.slice_mut::<T>()?, bias);
            value
        } else {
            let mut out = ctx.allocate(T::DTYPE, value.shape().clone())?;
            bias_add(
                ctx.par(),
                channels,
                value.slice::<T>()?,
                bias,
                out.slice_mut::<T>()?,
            );
            out
        };
        ctx.set(0, out);
        Ok(())
    })
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let first = channels_first(node)?;
    let dtype = node.attrs.dtype("T")?;
    by_number!(dtype, T => add_grad::<T>(first), else => Err(internal!("no bias of {dtype}")))
}

fn add_grad<T: Element + ReduceElement>(first: bool) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let dy = ctx.input(0)?;
        let channels = channels(dy.shape(), first)?;
        let mut out = ctx.allocate(T::DTYPE, Shape::vector(channels.count))?;
        bias_add_grad(ctx.par(), channels, dy.slice::<T>()?, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}
