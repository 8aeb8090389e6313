//! `_MklLayerNorm`, `_MklFusedInstanceNorm`: normalisation by the mean and variance over some axes, a scale and an offset.
//!
//! TensorFlow: _MklLayerNorm(x: T, scale: T, offset: T) -> y: T over the last axis; _MklFusedInstanceNorm(x: T, gamma: T,
//! beta: T) -> y: T over reduction_axes, which are all but the batch and the channels, then perhaps Relu or LeakyRelu. Made
//! by graph optimisation where TensorFlow uses oneDNN, of sums that broadcast scale and offset against x. That is what they
//! mean here; TensorFlow's kernels want vectors of channels, and read past the end of what is shorter.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, f32s, ramp, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::binary::{Binary, apply_lhs};
use tensorfleet_math::norm::{BatchNorm, Layout, NormElement, Statistics, batch_norm_train};
use tensorfleet_math::num::{from_f32_slice, to_f32_slice};
use tensorfleet_status::{Code, Result, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, bf16, f16};

use super::ending::Ending;
use crate::math::elementwise::{broadcast, input_dtype, no_function, status};
use crate::room::filled;

const TYPES: &[DType] = &[DType::F16, DType::BF16, DType::F32];

const NORM: OpDef = OpDef {
    outputs: &["y: T"],
    infer: infer::same_as_first,
    gradient: Gradient::None("made by graph optimisation, after differentiation"),
    exactness: Exactness::Relative(2e-5),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "_MklLayerNorm",
        inputs: &["x: T", "scale: T", "offset: T"],
        attrs: &["T: {float, bfloat16, half}", "epsilon: float = 0.001"],
        kernels: &[cpu(&[("T", TYPES)], |node| {
            build(node, |_, x| {
                let last = x.rank().checked_sub(1).map(|axis| x.dim(axis));
                let row = last.ok_or_else(|| invalid_argument!("input must have rows: {x}"))?;
                // Every row by itself, as channels of one image.
                let rows = x.elements_in(0..x.rank() - 1);
                Ok((1, Layout::nchw(1, rows, row), rows))
            })
        })],
        examples: &[
            ex_attrs(
                "rows",
                &[("epsilon", "0.0")],
                &[
                    x(&[2, 2], &[1.0, 3.0, -4.0, -8.0]),
                    x(&[2], &[2.0, 4.0]),
                    x(&[2], &[0.5, -1.0]),
                ],
                &[x(&[2, 2], &[-1.5, 3.0, 2.5, -5.0])],
            ),
            ex_ref(
                "three dimensions",
                &[],
                &[
                    ramp(&[2, 3, 4], -3.0, 0.25),
                    ramp(&[4], 1.0, -0.5),
                    ramp(&[4], -1.0, 0.5),
                ],
            ),
            ex_err(
                "scale of other columns",
                &[],
                &[
                    f32s(&[2, 2], &[0.0]),
                    f32s(&[3], &[1.0]),
                    f32s(&[2], &[0.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..NORM
    },
    OpDef {
        name: "_MklFusedInstanceNorm",
        inputs: &["x: T", "gamma: T", "beta: T"],
        attrs: &[
            "T: {float, bfloat16, half}",
            "fused_ops: list(string) = []",
            "epsilon: float = 0.0001",
            "leakyrelu_alpha: float = 0.2",
            "reduction_axes: list(int)",
        ],
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, instances))],
        examples: &[
            ex_ref(
                "channels last",
                &[("reduction_axes", "[1, 2]"), ("epsilon", "0.001")],
                &[
                    f32s(&[2, 1, 2, 2], &[1.0, -2.0, 3.0, 0.5, -1.0, 4.0, 2.0, 2.5]),
                    f32s(&[2], &[1.0, -2.0]),
                    f32s(&[2], &[0.5, -1.0]),
                ],
            ),
            ex_ref(
                "channels second, then relu",
                &[("reduction_axes", "[2, 3]"), ("fused_ops", "['Relu']")],
                &[
                    f32s(&[2, 2, 2, 1], &[1.0, -2.0, 3.0, 0.5, -1.0, 4.0, 2.0, 2.5]),
                    f32s(&[2, 1, 1], &[1.0, -2.0]),
                    f32s(&[2, 1, 1], &[0.5, -1.0]),
                ],
            ),
            ex_ref(
                "volumes, then leaky relu",
                &[
                    ("reduction_axes", "[1, 2, 3]"),
                    ("fused_ops", "['LeakyRelu']"),
                    ("leakyrelu_alpha", "0.5"),
                ],
                &[
                    f32s(
                        &[1, 2, 2, 1, 2],
                        &[1.0, -2.0, 3.0, 0.5, -1.0, 4.0, 2.0, 2.5],
                    ),
                    f32s(&[2], &[1.0, -2.0]),
                    f32s(&[2], &[0.5, -1.0]),
                ],
            ),
        ],
        ..NORM
    },
];

/// The images of a batch, how each lies, and its channels.
type Images = (usize, Layout, usize);

fn instances(node: &NodeInfo, x: &Shape) -> Result<Images> {
    let axes = node.attrs.ints("reduction_axes")?;
    let rank = x.rank();
    let is = |range: std::ops::Range<usize>| axes.iter().copied().eq(range.map(|axis| axis as i64));
    if rank >= 3 && is(1..rank - 1) {
        let channels = x.dim(rank - 1);
        let layout = Layout::nhwc(x.elements_in(1..rank - 1), channels);
        Ok((x.dim(0), layout, channels))
    } else if rank >= 3 && is(2..rank) {
        let channels = x.elements_in(0..2);
        let layout = Layout::nchw(1, channels, x.elements_in(2..rank));
        Ok((1, layout, channels))
    } else {
        Err(unimplemented!(
            "instances are normalised over all axes but the batch and the channels, got axes {axes:?} of shape {x}"
        ))
    }
}

fn build(node: &NodeInfo, images: fn(&NodeInfo, &Shape) -> Result<Images>) -> Result<AnyKernel> {
    let names = match node.attrs.get("fused_ops") {
        Some(_) => node.attrs.bytes_list("fused_ops")?,
        None => Default::default(),
    };
    let names: Vec<&[u8]> = names.iter().map(AsRef::as_ref).collect();
    let (ending, epsilon) = (Ending::read(node, &names)?, node.attrs.float("epsilon")?);
    match input_dtype(node) {
        DType::F32 => build_of::<f32>(images, ending, epsilon),
        DType::F16 => build_of::<f16>(images, ending, epsilon),
        DType::BF16 => build_of::<bf16>(images, ending, epsilon),
        other => Err(no_function(&node.op, other)),
    }
}

fn build_of<T: Element + NormElement>(
    images: fn(&NodeInfo, &Shape) -> Result<Images>,
    ending: Ending,
    epsilon: f32,
) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let x = ctx.input(0)?;
        let (count, layout, channels) = images(ctx.node(), x.shape())?;
        let wide = as_f32::<T>(ctx, x)?;
        let values = wide.slice::<f32>()?;
        let mut out = ctx.allocate(DType::F32, x.shape().clone())?;
        let y = out.slice_mut::<f32>()?;
        if x.is_empty() {
            let none = ctx.allocate(T::DTYPE, x.shape().clone())?;
            ctx.set(0, none);
            return Ok(());
        }
        let (ones, zeros) = (filled(1.0, channels)?, filled(0.0, channels)?);
        let norm = BatchNorm {
            scale: &ones,
            offset: &zeros,
            epsilon,
        };
        let mut statistics = [(); 4].map(|()| zeros.clone());
        let size = values.len().checked_div(count).unwrap_or(0).max(1);
        for (x, y) in values.chunks(size).zip(y.chunks_mut(size)) {
            let [mean, variance, saved_mean, saved_variance] = &mut statistics;
            let statistics = Statistics {
                mean,
                variance,
                saved_mean,
                saved_variance,
            };
            batch_norm_train(ctx.par(), layout, norm, None, x, y, statistics);
        }
        for (op, index) in [(Binary::Mul, 1), (Binary::Add, 2)] {
            let by = ctx.input(index)?;
            let (plan, shape) = broadcast(x.shape(), by.shape())?;
            if shape != *x.shape() {
                return Err(invalid_argument!(
                    "scale and offset must fit the input of shape {}, got shape {}",
                    x.shape(),
                    by.shape()
                ));
            }
            let by = as_f32::<T>(ctx, by)?;
            apply_lhs(ctx.par(), op, &plan, y, by.slice::<f32>()?).map_err(status)?;
        }
        ending.finish_all(ctx.par(), y);
        if T::DTYPE != DType::F32 {
            let mut rounded = ctx.allocate(T::DTYPE, x.shape().clone())?;
            from_f32_slice(y, rounded.slice_mut::<T>()?);
            out = rounded;
        }
        ctx.set(0, out);
        Ok(())
    })
}

/// The numbers as float, so that halves are rounded once.
fn as_f32<T: Element + NormElement>(ctx: &KernelCtx<'_>, tensor: &Tensor) -> Result<Tensor> {
    if T::DTYPE == DType::F32 {
        return Ok(tensor.clone());
    }
    let mut wide = ctx.allocate(DType::F32, tensor.shape().clone())?;
    to_f32_slice(tensor.slice::<T>()?, wide.slice_mut::<f32>()?);
    Ok(wide)
}
