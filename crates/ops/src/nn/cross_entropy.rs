//! `SoftmaxCrossEntropyWithLogits`, `SparseSoftmaxCrossEntropyWithLogits`: loss per row and its gradient.
//!
//! TensorFlow: (features: T[rows, classes], labels) -> (loss: T[rows], backprop: T[rows, classes]). Dense labels broadcast
//! against the logits; sparse labels are class numbers.

use tensorfleet_graph::example::{ex_err, ex_ref, f32s, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::softmax::{SoftmaxElement, cross_entropy, sparse_cross_entropy};
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, Tensor};

use crate::by_float;
use crate::types::{FLOATS, INDEX};

const LOSS: OpDef = OpDef {
    outputs: &["loss: T", "backprop: T"],
    infer: shapes,
    exactness: Exactness::Relative(4e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "SoftmaxCrossEntropyWithLogits",
        inputs: &["features: T", "labels: T"],
        attrs: &["T: {half, bfloat16, float, double}"],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", FLOATS)], build)],
        examples: &[
            ex_ref(
                "two rows",
                &[],
                &[
                    x(&[2, 3], &[1.0, 2.0, 3.0, 0.5, -1.0, 0.25]),
                    x(&[2, 3], &[0.0, 0.0, 1.0, 0.5, 0.25, 0.25]),
                ],
            ),
            ex_ref(
                "labels broadcast",
                &[],
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), x(&[1, 2], &[0.5, 0.5])],
            ),
            ex_err(
                "no matrix",
                &[],
                &[f32s(&[2], &[1.0, 2.0]), f32s(&[2], &[1.0, 0.0])],
                Code::InvalidArgument,
                "logits and labels must be",
            ),
        ],
        ..LOSS
    },
    OpDef {
        name: "SparseSoftmaxCrossEntropyWithLogits",
        inputs: &["features: T", "labels: Tlabels"],
        attrs: &[
            "T: {half, bfloat16, float, double}",
            "Tlabels: {int32, int64} = DT_INT64",
        ],
        gradient: Gradient::Rule(sparse_gradient),
        kernels: &[cpu(&[("T", FLOATS), ("Tlabels", INDEX)], build_sparse)],
        examples: &[
            ex_ref(
                "two rows",
                &[],
                &[
                    x(&[2, 3], &[1.0, 2.0, 3.0, 0.5, -1.0, 0.25]),
                    i64s(&[2], &[2, 0]),
                ],
            ),
            ex_ref(
                "short labels",
                &[],
                &[x(&[1, 2], &[1.0, 2.0]), i32s(&[1], &[1])],
            ),
            ex_err(
                "label out of range",
                &[],
                &[f32s(&[1, 2], &[1.0, 2.0]), i64s(&[1], &[2])],
                Code::InvalidArgument,
                "label value of 2 which is outside the valid range of [0, 2)",
            ),
            ex_err(
                "lengths differ",
                &[],
                &[f32s(&[1, 2], &[1.0, 2.0]), i64s(&[2], &[0, 0])],
                Code::InvalidArgument,
                "same first dimension",
            ),
        ],
        ..LOSS
    },
];

fn shapes(ctx: &mut InferCtx<'_>) -> Result<()> {
    let logits = match ctx.input(1).rank() {
        Some(2) => infer::broadcast_shapes(ctx.input(0), ctx.input(1))?,
        _ => ctx.input(0).clone(),
    };
    ctx.set(0, PartialShape::new(&[logits.dim(0).unwrap_or(-1)]));
    ctx.set(1, logits);
    Ok(())
}

/// `grad` of the loss times the rows of `matrix`.
fn scale_rows(g: &mut GradCtx<'_>, grad: Output, matrix: Output) -> Result<Output> {
    let axis = g.builder().constant(Tensor::scalar(-1i32))?;
    let column = g.apply("ExpandDims", &[grad, axis])?;
    g.apply("Mul", &[column, matrix])
}

/// What flows to the logits: from the loss, and from the second output where something depends on it.
fn to_logits(g: &mut GradCtx<'_>) -> Result<Output> {
    let grad = g.grad(0)?;
    let backprop = g.output(1);
    let first = scale_rows(g, grad, backprop)?;
    let Some(grad_grad) = g.grad_or_none(1) else {
        return Ok(first);
    };
    let logits = g.input(0);
    let softmax = g.apply("Softmax", &[logits])?;
    let product = g.apply("Mul", &[grad_grad, softmax])?;
    let axis = g.ints(&[-1])?;
    let sum = g
        .builder()
        .op("Sum")
        .input(product)
        .input(axis)
        .attr("keep_dims", true)
        .output()?;
    let centred = g.apply("Sub", &[grad_grad, sum])?;
    let second = g.apply("Mul", &[centred, softmax])?;
    g.apply("AddV2", &[first, second])
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let to_logits = to_logits(g)?;
    let (grad, logits) = (g.grad(0)?, g.input(0));
    let log_probabilities = g.apply("LogSoftmax", &[logits])?;
    let negated = g.apply("Neg", &[log_probabilities])?;
    let mut to_labels = scale_rows(g, grad, negated)?;
    if let Some(grad_grad) = g.grad_or_none(1) {
        to_labels = g.apply("Sub", &[to_labels, grad_grad])?;
    }
    // Either input may have been broadcast.
    g.unbroadcast([to_logits, to_labels])
}

fn sparse_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    Ok(vec![Some(Grad::Dense(to_logits(g)?)), None])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    by_float!(dtype, T => dense_labels::<T>(), else => Err(internal!("no cross entropy of {dtype}")))
}

fn dense_labels<T: Element + SoftmaxElement>() -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (logits, labels) = (ctx.input(0)?, ctx.input(1)?);
        let shape = infer::broadcast_shapes(
            &PartialShape::from(logits.shape()),
            &PartialShape::from(labels.shape()),
        )
        .map_err(|_| {
            invalid_argument!(
                "logits and labels must be broadcastable: logits_size={} labels_size={}",
                logits.shape(),
                labels.shape()
            )
        })?;
        let Some(shape) = shape.to_shape().filter(|shape| shape.rank() == 2) else {
            return Err(invalid_argument!(
                "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional"
            ));
        };
        let (logits, labels) = (
            broadcast_rows::<T>(logits, &shape)?,
            broadcast_rows::<T>(labels, &shape)?,
        );
        let mut loss = ctx.allocate(T::DTYPE, Shape::vector(shape.dim(0)))?;
        let mut backprop = ctx.allocate(T::DTYPE, shape.clone())?;
        if !backprop.is_empty() {
            cross_entropy(
                ctx.par(),
                logits.slice::<T>()?,
                labels.slice::<T>()?,
                shape.dim(1),
                loss.slice_mut::<T>()?,
                backprop.slice_mut::<T>()?,
            );
        } else {
            loss = Tensor::zeros(T::DTYPE, Shape::vector(shape.dim(0)))?;
        }
        ctx.set(0, loss);
        ctx.set(1, backprop);
        Ok(())
    })
}

/// A matrix of this shape; rows or columns of length one are repeated.
fn broadcast_rows<T: Element + Copy>(tensor: &Tensor, shape: &Shape) -> Result<Tensor> {
    if tensor.shape() == shape {
        return Ok(tensor.clone());
    }
    let rank = tensor.rank();
    let (rows, columns) = (
        if rank == 2 { tensor.shape().dim(0) } else { 1 },
        if rank == 0 {
            1
        } else {
            tensor.shape().dim(rank - 1)
        },
    );
    let values = tensor.slice::<T>()?;
    let mut out = Vec::with_capacity(shape.elements());
    for row in 0..shape.dim(0) {
        for column in 0..shape.dim(1) {
            out.push(
                values[(if rows == 1 { 0 } else { row }) * columns
                    + if columns == 1 { 0 } else { column }],
            );
        }
    }
    Tensor::from_vec(shape.clone(), out)
}

fn build_sparse(node: &NodeInfo) -> Result<AnyKernel> {
    let (dtype, labels) = (node.attrs.dtype("T")?, node.attrs.dtype("Tlabels")?);
    by_float!(dtype, T => match labels {
        DType::I32 => sparse_labels::<T, i32>(),
        _ => sparse_labels::<T, i64>(),
    }, else => Err(internal!("no cross entropy of {dtype}")))
}

fn sparse_labels<T: Element + SoftmaxElement, L: Element + Copy + Into<i64>>() -> Result<AnyKernel>
{
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (logits, labels) = (ctx.input(0)?, ctx.input(1)?);
        if logits.rank() != 2 {
            return Err(invalid_argument!(
                "logits must be 2-D, but got shape {}",
                logits.shape()
            ));
        }
        if labels.rank() != 1 {
            return Err(invalid_argument!(
                "labels must be 1-D, but got shape {}",
                labels.shape()
            ));
        }
        let (rows, classes) = (logits.shape().dim(0), logits.shape().dim(1));
        if labels.elements() != rows {
            return Err(invalid_argument!(
                "logits and labels must have the same first dimension, got logits shape {} and labels shape {}",
                logits.shape(),
                labels.shape()
            ));
        }
        if rows > 0 && classes == 0 {
            return Err(invalid_argument!(
                "Must have at least one class, but got logits shape {}",
                logits.shape()
            ));
        }
        let mut loss = ctx.allocate(T::DTYPE, Shape::vector(rows))?;
        let mut backprop = ctx.allocate(T::DTYPE, logits.shape().clone())?;
        if rows > 0 {
            sparse_cross_entropy(ctx.par(), logits.slice::<T>()?, labels.slice::<L>()?, classes, loss.slice_mut::<T>()?, backprop.slice_mut::<T>()?).map_err(|bad| {
                invalid_argument!("Received a label value of {} which is outside the valid range of [0, {classes}).", bad.label)
            })?;
        }
        ctx.set(0, loss);
        ctx.set(1, backprop);
        Ok(())
    })
}
