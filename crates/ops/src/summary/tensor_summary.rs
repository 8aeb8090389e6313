//! `TensorSummaryV2`: a whole tensor under a tag.
//!
//! TensorFlow: TensorSummaryV2(tag: string, tensor: T, serialized_summary_metadata: string) -> summary: string.

use prost::Message;
use tensorfleet_graph::example::{ex_ref, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::SummaryMetadata;
use tensorfleet_proto::summary::{Value, value};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Bytes, DType, Tensor};

use super::encode::{summary, tag};

pub(crate) static OPS: [OpDef; 1] = [OpDef {
    name: "TensorSummaryV2",
    inputs: &[
        "tag: string",
        "tensor: T",
        "serialized_summary_metadata: string",
    ],
    outputs: &["summary: string"],
    attrs: &["T: type"],
    infer: infer::scalar,
    gradient: Gradient::Stop("summaries are not differentiated"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[ex_ref(
        "text",
        &[],
        &[
            strs(&[], &["t"]),
            strs(&[2], &["hello", "world"]),
            strs(&[], &[""]),
        ],
    )],
    ..OpDef::BLANK
}];

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let value = tensor_value(tag(ctx, 0)?, ctx.input(1)?, &ctx.scalar::<Bytes>(2)?)?;
        ctx.set(0, summary(vec![value]));
        Ok(())
    })
}

/// A summary value that holds a tensor and what its serialised metadata say of it.
pub(super) fn tensor_value(tag: String, tensor: &Tensor, metadata: &Bytes) -> Result<Value> {
    let metadata = SummaryMetadata::decode(metadata.clone())
        .map_err(|error| invalid_argument!("the summary metadata cannot be parsed: {error}"))?;
    // Strings go into the field for strings, where readers of summaries look for them.
    let tensor = if tensor.dtype() == DType::String {
        tensor.to_typed_proto()?
    } else {
        tensor.to_proto()?
    };
    Ok(Value {
        tag,
        metadata: Some(metadata),
        value: Some(value::Value::Tensor(tensor)),
        ..Value::default()
    })
}
