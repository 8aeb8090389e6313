//! `ScalarSummary`: one number per tag.
//!
//! TensorFlow: ScalarSummary(tags: string, values: T) -> summary: string, tags and values of the same shape.

use tensorfleet_graph::example::{ex_err, ex_ref, f32s, i32s, script, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::summary::value;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::TString;

use super::encode::{Entry, summary};
use crate::math::cast::doubles;
use crate::types::REAL_NUMBERS;

pub(crate) static OP: OpDef = OpDef {
    name: "ScalarSummary",
    inputs: &["tags: string", "values: T"],
    outputs: &["summary: string"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
    ],
    infer: infer::scalar,
    gradient: Gradient::Stop("summaries are not differentiated"),
    kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
    exactness: Exactness::Bits,
    scripts: &[script(
        "a tag that is not UTF-8",
        "text = string[]{_w}\ntag = DecodeBase64(text)\nx = float[]{1}\ns = ScalarSummary(tag, x)\ny = EncodeBase64(s)",
        &["fetch y => string[]{CggKAf8VAACAPw}"],
    )],
    examples: &[
        ex_ref("one", &[], &[strs(&[], &["loss"]), f32s(&[], &[0.5])]),
        ex_ref(
            "several",
            &[],
            &[strs(&[2], &["a", "b"]), i32s(&[2], &[1, 2])],
        ),
        ex_err(
            "shapes differ",
            &[],
            &[strs(&[2], &["a", "b"]), f32s(&[3], &[1.0, 2.0, 3.0])],
            Code::InvalidArgument,
            "tags and values",
        ),
    ],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (tags, values) = (ctx.input(0)?, ctx.input(1)?);
        let both_single = tags.elements() == 1 && values.elements() == 1;
        if tags.shape() != values.shape() && !both_single {
            return Err(invalid_argument!(
                "tags and values are not the same shape: {} != {}",
                tags.shape(),
                values.shape()
            ));
        }
        let entries = tags
            .slice::<TString>()?
            .iter()
            .zip(doubles(values)?)
            .map(|(tag, number)| Entry::new(&tag[..], value::Value::SimpleValue(number as f32)));
        let entries: Vec<Entry> = entries.collect();
        ctx.set(0, summary(&entries));
        Ok(())
    })
}
