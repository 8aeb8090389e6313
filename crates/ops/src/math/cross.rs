//! `Cross`: the vector product of vectors of three, along the last dimension.
//!
//! TensorFlow: Cross(a: T, b: T) -> product: T for real numbers. Shapes must be equal; nothing is broadcast.

use tensorfleet_graph::example::{ex, ex_err, x};
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, failed_precondition, invalid_argument};
use tensorfleet_tensor::Element;

use super::calculus::both;
use super::elementwise::{input_dtype, no_function};
use crate::by_real;
use crate::types::REAL_NUMBERS;

pub(crate) static OP: OpDef = OpDef {
    name: "Cross",
    inputs: &["a: T", "b: T"],
    outputs: &["product: T"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
    ],
    infer: infer::all_same,
    gradient: Gradient::Rule(|g| {
        let (a, b, grad) = (g.input(0), g.input(1), g.grad(0)?);
        let first = g.apply("Cross", &[b, grad])?;
        let second = g.apply("Cross", &[grad, a])?;
        both(first, second)
    }),
    kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
    examples: &[
        ex(
            "axes",
            &[
                x(&[2, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
                x(&[2, 3], &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
            ],
            &[x(&[2, 3], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0])],
        ),
        ex(
            "signs",
            &[x(&[3], &[1.0, -2.0, 3.0]), x(&[3], &[4.0, 5.0, 6.0])],
            &[x(&[3], &[-27.0, 6.0, 13.0])],
        ),
        ex(
            "empty",
            &[x(&[0, 3], &[]), x(&[0, 3], &[])],
            &[x(&[0, 3], &[])],
        ),
        ex_err(
            "vectors of two",
            &[],
            &[x(&[2], &[1.0]), x(&[2], &[1.0])],
            Code::FailedPrecondition,
            "only defined for 3-element vectors",
        ),
        ex_err(
            "shapes differ",
            &[],
            &[x(&[1, 3], &[1.0]), x(&[3], &[1.0])],
            Code::InvalidArgument,
            "[1,3] vs. [3]",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_real!(dtype, T => AnyKernel::sync(run::<T>), else => Err(no_function("Cross", dtype)))
}

fn run<T: Element + Num>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (a, b) = (ctx.input(0)?, ctx.input(1)?);
    if a.shape() != b.shape() {
        return Err(invalid_argument!(
            "Both inputs must be of same shape: {} vs. {}",
            a.shape(),
            b.shape()
        ));
    }
    if a.rank() == 0 {
        return Err(invalid_argument!("Input must be at least 1D{}", a.shape()));
    }
    if a.shape().last() != Some(&3) {
        return Err(failed_precondition!(
            "Cross-products are only defined for 3-element vectors, got shape {}",
            a.shape()
        ));
    }
    let mut out = ctx.allocate(T::DTYPE, a.shape().clone())?;
    let vectors = a
        .slice::<T>()?
        .chunks_exact(3)
        .zip(b.slice::<T>()?.chunks_exact(3));
    for (out, (u, v)) in out.slice_mut::<T>()?.chunks_exact_mut(3).zip(vectors) {
        for (axis, out) in out.iter_mut().enumerate() {
            let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
            *out = u[next].mul(v[last]).sub(u[last].mul(v[next]));
        }
    }
    ctx.set(0, out);
    Ok(())
}
