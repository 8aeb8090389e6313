//! `TensorSummary`, `TensorSummaryV2`: a whole tensor under a tag, or under the name of the node.
//!
//! TensorFlow: TensorSummaryV2(tag: string, tensor: T, serialized_summary_metadata: string) -> summary: string;
//! TensorSummary(tensor: T) -> summary: string, whose attrs description, labels and display_name are not used.

use prost::Message;
use tensorfleet_graph::example::{ex_ref, f32s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::SummaryMetadata;
use tensorfleet_proto::summary::{Value, value};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{TString, Tensor};

use super::encode::{Entry, put_bytes, summary, tag};
use crate::io::tensor_proto::proto;

const SUMMARY: OpDef = OpDef {
    outputs: &["summary: string"],
    infer: infer::scalar,
    gradient: Gradient::Stop("summaries are not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "TensorSummary",
        inputs: &["tensor: T"],
        attrs: &[
            "T: type",
            "description: string = ''",
            "labels: list(string) = []",
            "display_name: string = ''",
        ],
        kernels: &[cpu(&[], build_by_node)],
        examples: &[
            ex_ref("numbers", &[], &[f32s(&[2], &[1.0, 2.0])]),
            ex_ref("text", &[], &[strs(&[3], &["a", "b", "b"])]),
        ],
        ..SUMMARY
    },
    OpDef {
        name: "TensorSummaryV2",
        inputs: &[
            "tag: string",
            "tensor: T",
            "serialized_summary_metadata: string",
        ],
        attrs: &["T: type"],
        kernels: &[cpu(&[], build)],
        examples: &[ex_ref(
            "text",
            &[],
            &[
                strs(&[], &["t"]),
                strs(&[3], &["hello", "world", "world"]),
                strs(&[], &[""]),
            ],
        )],
        ..SUMMARY
    },
];

fn build_by_node(node: &NodeInfo) -> Result<AnyKernel> {
    let name = node.name.clone();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        // Fields in the order of their numbers, as TensorFlow writes them: parts of a message may follow each other.
        let parts = [
            Value {
                node_name: name.clone(),
                ..Value::default()
            },
            Value {
                value: Some(value::Value::Tensor(proto(ctx.input(0)?)?)),
                ..Value::default()
            },
        ];
        let value = parts.map(|part| part.encode_to_vec()).concat();
        // The one field of a summary.
        let mut summary = Vec::new();
        put_bytes(&mut summary, 1, &value);
        ctx.set(0, Tensor::string(summary));
        Ok(())
    })
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let value = tensor_value(&tag(ctx, 0)?, ctx.input(1)?, &ctx.scalar::<TString>(2)?)?;
        ctx.set(0, summary(&[value]));
        Ok(())
    })
}

/// A summary value that holds a tensor and what its serialised metadata say of it.
pub(super) fn tensor_value(tag: &[u8], tensor: &Tensor, metadata: &TString) -> Result<Entry> {
    let metadata = SummaryMetadata::decode(&metadata[..])
        .map_err(|error| invalid_argument!("the summary metadata cannot be parsed: {error}"))?;
    let value = Value {
        metadata: Some(metadata),
        value: Some(value::Value::Tensor(proto(tensor)?)),
        ..Value::default()
    };
    Ok(Entry::of(tag, value))
}
