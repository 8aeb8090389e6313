//! `LinSpace`: evenly spaced numbers from one to another, both included.
//!
//! TensorFlow: LinSpace(start: T, stop: T, num: Tidx) -> output: T, T in {bfloat16, half, float, double}; kernels for float and
//! double, as in TensorFlow.

use tensorfleet_graph::example::{ex, ex_err, ex_ref, i32s, i64s, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::map::fill_by;
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, UNKNOWN_DIM};

use super::elementwise::{input_dtype, no_function};
use crate::types::{INDEX, SINGLE_AND_DOUBLE};

pub(crate) static OP: OpDef = OpDef {
    name: "LinSpace",
    inputs: &["start: T", "stop: T", "num: Tidx"],
    outputs: &["output: T"],
    attrs: &[
        "T: {bfloat16, half, float, double}",
        "Tidx: {int32, int64} = DT_INT32",
    ],
    infer,
    gradient: Gradient::Stop("TensorFlow has none either"),
    kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE), ("Tidx", INDEX)], build)],
    examples: &[
        ex(
            "four numbers",
            &[x(&[], &[1.0]), x(&[], &[10.0]), i32s(&[], &[4])],
            &[x(&[4], &[1.0, 4.0, 7.0, 10.0])],
        ),
        ex(
            "downwards",
            &[x(&[], &[1.0]), x(&[], &[0.0]), i64s(&[], &[3])],
            &[x(&[3], &[1.0, 0.5, 0.0])],
        ),
        ex(
            "one number",
            &[x(&[], &[3.0]), x(&[], &[10.0]), i32s(&[], &[1])],
            &[x(&[1], &[3.0])],
        ),
        ex_ref(
            "rounded steps",
            &[],
            &[x(&[], &[0.0]), x(&[], &[1.0]), i32s(&[], &[7])],
        ),
        ex_err(
            "none",
            &[],
            &[x(&[], &[0.0]), x(&[], &[1.0]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "Requires num > 0: 0",
        ),
        ex_err(
            "no scalar",
            &[],
            &[x(&[], &[0.0]), x(&[2], &[1.0]), i32s(&[], &[2])],
            Code::InvalidArgument,
            "stop must be a scalar, not shape [2]",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let count = match ctx.constant_ints(2).as_deref() {
        Some([count]) => *count,
        _ => UNKNOWN_DIM,
    };
    ctx.set(0, PartialShape::new(&[count]));
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    match input_dtype(node) {
        DType::F32 => AnyKernel::sync(run::<f32>),
        DType::F64 => AnyKernel::sync(run::<f64>),
        other => Err(no_function("LinSpace", other)),
    }
}

fn run<T: Element + Num>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    for (index, name) in ["start", "stop", "num"].into_iter().enumerate() {
        let shape = ctx.input(index)?.shape();
        if shape.rank() != 0 {
            return Err(invalid_argument!(
                "{name} must be a scalar, not shape {shape}"
            ));
        }
    }
    let (start, stop, count) = (ctx.scalar::<T>(0)?, ctx.scalar::<T>(1)?, ctx.int(2)?);
    if count <= 0 {
        return Err(invalid_argument!("Requires num > 0: {count}"));
    }
    let mut out = ctx.allocate(T::DTYPE, Shape::new(&[count])?)?;
    let values = out.slice_mut::<T>()?;
    let step = stop.sub(start).div(T::from_f64((count - 1) as f64));
    fill_by(ctx.par(), values, |index| {
        start.add(step.mul(T::from_f64(index as f64)))
    });
    match values {
        [only] => *only = start,
        [.., last] => *last = stop,
        [] => {}
    }
    ctx.set(0, out);
    Ok(())
}
