//! `Softmax`, `LogSoftmax`: over the last dimension.
//!
//! TensorFlow: Softmax(logits: T) -> softmax: T; LogSoftmax(logits: T) -> logsoftmax: T.

use tensorfleet_graph::example::{ex, ex_err, ex_ref, f32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::Par;
use tensorfleet_math::softmax::{SoftmaxElement, log_softmax, softmax};
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{Element, Tensor};

use crate::by_float;
use crate::types::FLOATS;

const ROWS: OpDef = OpDef {
    inputs: &["logits: T"],
    attrs: &["T: {half, bfloat16, float, double}"],
    infer: infer::same_as_first,
    exactness: Exactness::Relative(2e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Softmax",
        outputs: &["softmax: T"],
        gradient: Gradient::Rule(softmax_gradient),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, false))],
        examples: &[
            ex(
                "even",
                &[x(&[1, 4], &[3.0, 3.0, 3.0, 3.0])],
                &[x(&[1, 4], &[0.25, 0.25, 0.25, 0.25])],
            ),
            ex_ref("rows", &[], &[ramp(&[2, 2, 3], -1.0, 0.5)]),
            ex(
                "large",
                &[f32s(&[2], &[1000.0, 1000.0])],
                &[f32s(&[2], &[0.5, 0.5])],
            ),
            ex_err(
                "scalar",
                &[],
                &[x(&[], &[1.0])],
                Code::InvalidArgument,
                "logits must have >= 1 dimension",
            ),
        ],
        ..ROWS
    },
    OpDef {
        name: "LogSoftmax",
        outputs: &["logsoftmax: T"],
        gradient: Gradient::Rule(log_softmax_gradient),
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, true))],
        examples: &[
            ex(
                "even",
                &[f32s(&[1, 2], &[3.0, 3.0])],
                &[f32s(
                    &[1, 2],
                    &[-std::f64::consts::LN_2, -std::f64::consts::LN_2],
                )],
            ),
            ex_ref("rows", &[], &[ramp(&[2, 3], -1.0, 0.5)]),
        ],
        ..ROWS
    },
];

/// The sum over the last dimension, kept.
fn row_sum(g: &mut GradCtx<'_>, value: Output) -> Result<Output> {
    let axis = g.ints(&[-1])?;
    g.builder()
        .op("Sum")
        .input(value)
        .input(axis)
        .attr("keep_dims", true)
        .output()
}

/// (dy - Σ dy y) y
fn softmax_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (dy, y) = (g.grad(0)?, g.output(0));
    let product = g.apply("Mul", &[dy, y])?;
    let sum = row_sum(g, product)?;
    let difference = g.apply("Sub", &[dy, sum])?;
    dense(g.apply("Mul", &[difference, y])?)
}

/// dy - e^y Σ dy
fn log_softmax_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (dy, y) = (g.grad(0)?, g.output(0));
    let probabilities = g.apply("Exp", &[y])?;
    let sum = row_sum(g, dy)?;
    let product = g.apply("Mul", &[sum, probabilities])?;
    dense(g.apply("Sub", &[dy, product])?)
}

fn build(node: &NodeInfo, log: bool) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    by_float!(dtype, T => rows::<T>(if log { log_softmax::<T> } else { softmax::<T> }), else => Err(internal!("no softmax of {dtype}")))
}

fn rows<T: Element + SoftmaxElement>(
    apply: fn(&dyn Par, &[T], usize, &mut [T]),
) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let logits = ctx.input(0)?;
        if logits.rank() == 0 {
            return Err(invalid_argument!("logits must have >= 1 dimension, got []"));
        }
        let mut out: Tensor = ctx.allocate(T::DTYPE, logits.shape().clone())?;
        if !out.is_empty() {
            apply(
                ctx.par(),
                logits.slice::<T>()?,
                logits.shape().dim(logits.rank() - 1),
                out.slice_mut::<T>()?,
            );
        }
        ctx.set(0, out);
        Ok(())
    })
}
