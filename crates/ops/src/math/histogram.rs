//! `HistogramFixedWidth`: how many values fall into each of equal intervals.
//!
//! TensorFlow: HistogramFixedWidth(values: T, value_range: T, nbins: int32) -> out: dtype, T in {int32, int64, float, double}.
//! Values outside of the range count in the first and last interval.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, f64s, i32s, i64s, x};
use tensorfleet_graph::{Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Real;
use tensorfleet_math::segment;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::elementwise::{input_dtype, no_function};
use crate::types::INDEX;

const VALUES: &[f64] = &[-1.0, 0.0, 1.0, 2.0, 5.0, 15.0];

pub(crate) static OP: OpDef = OpDef {
    name: "HistogramFixedWidth",
    inputs: &["values: T", "value_range: T", "nbins: int32"],
    outputs: &["out: dtype"],
    attrs: &[
        "T: {int32, int64, float, double}",
        "dtype: {int32, int64} = DT_INT32",
    ],
    kernels: &[cpu(
        &[
            ("T", &[DType::I32, DType::I64, DType::F32, DType::F64]),
            ("dtype", INDEX),
        ],
        build,
    )],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "five intervals",
            &[x(&[2, 3], VALUES), x(&[2], &[0.0, 5.0]), i32s(&[], &[5])],
            &[i32s(&[5], &[2, 1, 1, 0, 2])],
        ),
        ex_attrs(
            "long counts",
            &[("dtype", "DT_INT64")],
            &[x(&[6], VALUES), x(&[2], &[0.0, 5.0]), i32s(&[], &[2])],
            &[i64s(&[2], &[4, 2])],
        ),
        ex(
            "a range that is no float",
            &[
                f32s(&[4], &[3e38, 100.0, -3e38, 2e38]),
                f32s(&[2], &[-1e38, 3e38]),
                i32s(&[], &[2]),
            ],
            &[i32s(&[2], &[2, 2])],
        ),
        ex(
            "a range that is no double",
            &[
                f64s(&[3], &[1.5e308, -1.5e308, 1.0]),
                f64s(&[2], &[-1.5e308, 1.5e308]),
                i32s(&[], &[3]),
            ],
            &[i32s(&[3], &[1, 1, 1])],
        ),
        ex(
            "a range that is no integer",
            &[
                i32s(&[5], &[-2147483648, 2147483647, 0, -1, 1]),
                i32s(&[2], &[-2147483648, 2147483647]),
                i32s(&[], &[5]),
            ],
            &[i32s(&[5], &[1, 0, 3, 0, 1])],
        ),
        ex(
            "a range without an end",
            &[
                f64s(&[2], &[1.0, -1.0]),
                f64s(&[2], &[0.0, f64::INFINITY]),
                i32s(&[], &[2]),
            ],
            &[i32s(&[2], &[2, 0])],
        ),
        ex(
            "no values",
            &[x(&[0], &[]), x(&[2], &[0.0, 5.0]), i32s(&[], &[2])],
            &[i32s(&[2], &[0, 0])],
        ),
        ex_err(
            "range upside down",
            &[],
            &[x(&[6], VALUES), x(&[2], &[5.0, 0.0]), i32s(&[], &[2])],
            Code::InvalidArgument,
            "value_range[0] < value_range[1]",
        ),
        ex_err(
            "no intervals",
            &[],
            &[x(&[6], VALUES), x(&[2], &[0.0, 5.0]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "nbins should be a positive number, but got '0'",
        ),
        ex_err(
            "not a number",
            &[],
            &[x(&[1], &[f64::NAN]), x(&[2], &[0.0, 5.0]), i32s(&[], &[2])],
            Code::InvalidArgument,
            "must not contain NaN",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let out = node.attrs.dtype("dtype")?;
    match input_dtype(node) {
        DType::I32 => build_of::<i32>(out),
        DType::I64 => build_of::<i64>(out),
        DType::F32 => build_of::<f32>(out),
        DType::F64 => build_of::<f64>(out),
        other => Err(no_function("HistogramFixedWidth", other)),
    }
}

/// Two gigabytes of counts.
const MOST_BINS: usize = 1 << 28;

fn build_of<T: Element + Real + std::fmt::Display>(out: DType) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let bins = bins(ctx)?;
        let (low, high) = match ctx.input(1)?.slice::<T>()? {
            [low, high] if low < high => (*low, *high),
            [low, high] => {
                return Err(invalid_argument!(
                    "value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'"
                ));
            }
            _ => {
                return Err(invalid_argument!(
                    "value_range should be a vector of 2 elements, got shape {}",
                    ctx.input(1)?.shape()
                ));
            }
        };
        let values = ctx.input(0)?.slice::<T>()?;
        ensure!(
            bins <= MOST_BINS,
            resource_exhausted,
            "nbins of {bins} takes more memory than the {MOST_BINS} that are counted at most"
        );
        let Some(counts) = segment::histogram(ctx.par(), values, (low, high), bins) else {
            return Err(invalid_argument!("Histogram values must not contain NaN"));
        };
        let counts = counts.iter().map(|count| *count as i64);
        let counts = match out {
            DType::I64 => Tensor::vector(&counts.collect::<Vec<_>>()),
            _ => Tensor::vector(&counts.map(|count| count as i32).collect::<Vec<_>>()),
        };
        ctx.set(0, counts);
        Ok(())
    })
}

fn bins(ctx: &KernelCtx<'_>) -> Result<usize> {
    let (range, bins) = (ctx.input(1)?, ctx.input(2)?);
    if range.rank() != 1 {
        return Err(invalid_argument!(
            "value_range should be a vector, got shape {}",
            range.shape()
        ));
    }
    if bins.rank() != 0 {
        return Err(invalid_argument!(
            "nbins should be a scalar, got shape {}",
            bins.shape()
        ));
    }
    match ctx.int(2)? {
        count @ 1.. => Ok(Shape::new(&[count])?.elements()),
        count => Err(invalid_argument!(
            "nbins should be a positive number, but got '{count}'"
        )),
    }
}
