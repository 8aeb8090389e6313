//! `ClipByValue`: values moved into the range between two limits.
//!
//! TensorFlow: ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> output: T. Each limit is a scalar or has the input's
//! shape. Complex numbers are clipped to the rectangle between their limits; they have no gradient, as they have no order.

use tensorfleet_graph::example::{c64s, ex, ex_err, f32s, i32s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::Par;
use tensorfleet_math::select::{clip, clip_complex};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element};

use super::elementwise::{input_dtype, no_function};
use crate::by_real;
use crate::types::{COMPLEX, FLOATS, SIGNED, dtypes};

pub(crate) static OP: OpDef = OpDef {
    name: "ClipByValue",
    inputs: &["t: T", "clip_value_min: T", "clip_value_max: T"],
    outputs: &["output: T"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
    ],
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(
        &[(
            "T",
            dtypes![FLOATS, SIGNED, COMPLEX, &[DType::U8, DType::U16]],
        )],
        build,
    )],
    examples: &[
        ex(
            "scalar limits",
            &[
                x(&[2, 2], &[0.0, 4.0, 7.0, 100.0]),
                x(&[], &[1.0]),
                x(&[], &[8.0]),
            ],
            &[x(&[2, 2], &[1.0, 4.0, 7.0, 8.0])],
        ),
        ex(
            "limits of each element",
            &[
                x(&[3], &[0.0, 4.0, 9.0]),
                x(&[3], &[1.0, 2.0, 3.0]),
                x(&[3], &[2.0, 3.0, 10.0]),
            ],
            &[x(&[3], &[1.0, 3.0, 9.0])],
        ),
        ex(
            "one of each",
            &[x(&[2], &[0.0, 4.0]), x(&[2], &[1.0, 2.0]), x(&[], &[3.0])],
            &[x(&[2], &[1.0, 3.0])],
        ),
        ex(
            "the lower limit wins",
            &[i32s(&[2], &[0, 4]), i32s(&[], &[3]), i32s(&[], &[2])],
            &[i32s(&[2], &[3, 3])],
        ),
        ex(
            "NaN stays",
            &[
                f32s(&[1], &[f64::NAN]),
                f32s(&[], &[1.0]),
                f32s(&[], &[2.0]),
            ],
            &[f32s(&[1], &[f64::NAN])],
        ),
        ex(
            "complex",
            &[
                c64s(&[3], &[(0.0, 4.0), (9.0, -9.0), (2.0, f64::NAN)]),
                c64s(&[], &[(1.0, 2.0)]),
                c64s(&[3], &[(4.0, 3.0)]),
            ],
            &[c64s(&[3], &[(1.0, 3.0), (4.0, 2.0), (2.0, f64::NAN)])],
        ),
        ex(
            "empty",
            &[x(&[0], &[]), x(&[], &[1.0]), x(&[], &[2.0])],
            &[x(&[0], &[])],
        ),
        ex_err(
            "limits of another shape",
            &[],
            &[x(&[2, 2], &[1.0]), x(&[2], &[1.0]), x(&[], &[3.0])],
            Code::InvalidArgument,
            "clip_value_min shape: [2]",
        ),
    ],
    ..OpDef::BLANK
};

/// The gradient goes to the input inside, to a limit where that limit decides.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (t, low, high, grad) = (g.input(0), g.input(1), g.input(2), g.grad(0)?);
    let zeros = g.apply("ZerosLike", &[grad])?;
    let below = g.apply("Less", &[t, low])?;
    let above = g.apply("Greater", &[t, high])?;
    let outside = g.apply("LogicalOr", &[below, above])?;
    let inner = g.apply("SelectV2", &[outside, zeros, grad])?;
    let shape = g.shape(t)?;
    let mut grads = vec![Some(Grad::Dense(inner))];
    for (limit, mask) in [(low, below), (high, above)] {
        let part = g.apply("SelectV2", &[mask, grad, zeros])?;
        let limit_shape = g.shape(limit)?;
        let args = g.builder().op("BroadcastGradientArgs");
        let args = args.input(shape).input(limit_shape).build()?;
        let sum = g.apply("Sum", &[part, args.output(1)])?;
        let sum = g.apply("Reshape", &[sum, limit_shape])?;
        grads.push(Some(Grad::Dense(sum)));
    }
    Ok(grads)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    match dtype {
        DType::C64 => AnyKernel::sync(|ctx: &mut KernelCtx<'_>| run(ctx, clip_complex::<f32>)),
        DType::C128 => AnyKernel::sync(|ctx: &mut KernelCtx<'_>| run(ctx, clip_complex::<f64>)),
        _ => by_real!(
            dtype,
            T => AnyKernel::sync(|ctx: &mut KernelCtx<'_>| run(ctx, clip::<T>)),
            else => Err(no_function("ClipByValue", dtype))
        ),
    }
}

/// Input, lower limits, upper limits, output.
type Clip<T> = fn(&dyn Par, &[T], &[T], &[T], &mut [T]);

fn run<T: Element>(ctx: &mut KernelCtx<'_>, clip: Clip<T>) -> Result<()> {
    let (t, low, high) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    let fits = |limit: &tensorfleet_tensor::Tensor| limit.rank() == 0 || limit.shape() == t.shape();
    if !fits(low) || !fits(high) {
        return Err(invalid_argument!(
            "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. input shape: {}clip_value_min shape: {}clip_value_max shape: {}",
            t.shape(),
            low.shape(),
            high.shape()
        ));
    }
    let mut out = ctx.allocate(T::DTYPE, t.shape().clone())?;
    let (low, high) = (low.slice::<T>()?, high.slice::<T>()?);
    clip(ctx.par(), t.slice::<T>()?, low, high, out.slice_mut::<T>()?);
    ctx.set(0, out);
    Ok(())
}
