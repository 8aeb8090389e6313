//! `Bucketize`: how many boundaries are not above each value.
//!
//! TensorFlow: Bucketize(input: T) -> output: int32, attr boundaries: list(float), T in {int32, int64, float, double}. Integers
//! are compared as floats; NaN is above all.

use tensorfleet_graph::example::{ex_attrs, ex_err, i32s, x};
use tensorfleet_graph::{Exactness, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element};

use super::elementwise::{input_dtype, no_function};

const BOUNDARIES: &[(&str, &str)] = &[("boundaries", "[0, 10, 100]")];

pub(crate) static OP: OpDef = OpDef {
    name: "Bucketize",
    inputs: &["input: T"],
    outputs: &["output: int32"],
    attrs: &[
        "T: {int32, int64, float, double}",
        "boundaries: list(float)",
    ],
    infer: infer::same_as_first,
    kernels: &[cpu(
        &[("T", &[DType::I32, DType::I64, DType::F32, DType::F64])],
        build,
    )],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "a boundary belongs to the bucket above",
            BOUNDARIES,
            &[x(&[2, 2], &[-5.0, 10.0, 150.0, 99.0])],
            &[i32s(&[2, 2], &[0, 2, 3, 2])],
        ),
        ex_attrs(
            "not a number",
            BOUNDARIES,
            &[x(&[2], &[f64::NAN, f64::NEG_INFINITY])],
            &[i32s(&[2], &[3, 0])],
        ),
        ex_attrs(
            "no boundaries",
            &[("boundaries", "[]")],
            &[x(&[2], &[-5.0, 10.0])],
            &[i32s(&[2], &[0, 0])],
        ),
        ex_err(
            "not sorted",
            &[("boundaries", "[0, 100, 10]")],
            &[x(&[1], &[1.0])],
            Code::InvalidArgument,
            "Expected sorted boundaries",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let boundaries = node.attrs.floats("boundaries")?.to_vec();
    if !boundaries.is_sorted() {
        return Err(invalid_argument!("Expected sorted boundaries"));
    }
    match input_dtype(node) {
        DType::I32 => build_of::<i32>(boundaries, |value, limit| (value as f32) < limit),
        DType::I64 => build_of::<i64>(boundaries, |value, limit| (value as f32) < limit),
        DType::F32 => build_of::<f32>(boundaries, |value, limit| value < limit),
        DType::F64 => build_of::<f64>(boundaries, |value, limit| value < f64::from(limit)),
        other => Err(no_function("Bucketize", other)),
    }
}

fn build_of<T: Element + Copy>(
    boundaries: Vec<f32>,
    is_below: fn(T, f32) -> bool,
) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let mut out = ctx.allocate(DType::I32, input.shape().clone())?;
        for (out, value) in out.slice_mut::<i32>()?.iter_mut().zip(input.slice::<T>()?) {
            *out = boundaries.partition_point(|limit| !is_below(*value, *limit)) as i32;
        }
        ctx.set(0, out);
        Ok(())
    })
}
