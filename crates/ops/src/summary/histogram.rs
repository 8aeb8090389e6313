//! `HistogramSummary`: how values are distributed over TensorFlow's exponential buckets.
//!
//! TensorFlow: HistogramSummary(tag: string, values: T) -> summary: string. Infinities and NaN are INVALID_ARGUMENT.

use tensorfleet_graph::example::{ex_err, ex_ref, f32s, i32s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::HistogramProto;
use tensorfleet_proto::summary::value;
use tensorfleet_status::{Code, Result, invalid_argument};

use super::encode::{Entry, summary, tag};
use crate::math::cast::doubles;
use crate::types::REAL_NUMBERS;

pub(crate) static OP: OpDef = OpDef {
    name: "HistogramSummary",
    inputs: &["tag: string", "values: T"],
    outputs: &["summary: string"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = DT_FLOAT",
    ],
    infer: infer::scalar,
    gradient: Gradient::Stop("summaries are not differentiated"),
    kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_ref(
            "floats",
            &[],
            &[
                strs(&[], &["h"]),
                f32s(&[6], &[-1.5, 0.0, 0.25, 1e-14, 3.0, 1e30]),
            ],
        ),
        ex_ref(
            "integers",
            &[],
            &[strs(&[], &["h"]), i32s(&[4], &[1, 1, 2, -100])],
        ),
        ex_ref("no values", &[], &[strs(&[], &["h"]), f32s(&[0], &[])]),
        ex_err(
            "not finite",
            &[],
            &[strs(&[], &["h"]), f32s(&[1], &[f64::NAN])],
            Code::InvalidArgument,
            "h",
        ),
    ],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let tag = tag(ctx, 0)?;
        let histogram = histogram(&doubles(ctx.input(1)?)?, &tag)?;
        let entry = Entry::new(&tag[..], value::Value::Histo(histogram));
        ctx.set(0, summary(&[entry]));
        Ok(())
    })
}

/// The upper ends of the buckets: 1e-12 growing by a tenth up to 1e20, the same below zero, and the rest.
fn limits() -> Vec<f64> {
    let mut positive = Vec::new();
    let mut limit = 1.0e-12;
    while limit < 1.0e20 {
        positive.push(limit);
        limit *= 1.1;
    }
    positive.push(f64::MAX);
    let negative = positive.iter().rev().map(|limit| -limit);
    negative
        .chain([0.0])
        .chain(positive.iter().copied())
        .collect()
}

/// The histogram of finite values, without the empty buckets at both ends.
pub(super) fn histogram(values: &[f64], tag: &[u8]) -> Result<HistogramProto> {
    let limits = limits();
    let mut counts = vec![0.0; limits.len()];
    let mut out = HistogramProto {
        min: f64::MAX,
        max: -f64::MAX,
        ..HistogramProto::default()
    };
    for value in values {
        if !value.is_finite() {
            return Err(invalid_argument!(
                "{} in summary histogram for: {}",
                if value.is_nan() { "Nan" } else { "Infinity" },
                String::from_utf8_lossy(tag)
            ));
        }
        let bucket = limits
            .partition_point(|limit| limit <= value)
            .min(limits.len() - 1);
        counts[bucket] += 1.0;
        out.min = out.min.min(*value);
        out.max = out.max.max(*value);
        out.num += 1.0;
        out.sum += value;
        out.sum_squares += value * value;
    }
    // Runs of empty buckets become one, as TensorFlow writes them.
    let mut index = 0;
    while index < limits.len() {
        let mut end = limits[index];
        let count = counts[index];
        index += 1;
        if count <= 0.0 {
            while index < limits.len() && counts[index] <= 0.0 {
                end = limits[index];
                index += 1;
            }
        }
        out.bucket_limit.push(end);
        out.bucket.push(count);
    }
    if out.bucket.is_empty() {
        out.bucket_limit.push(f64::MAX);
        out.bucket.push(0.0);
    }
    Ok(out)
}
