//! `MergeSummary`: several summaries as one; the same tag twice is INVALID_ARGUMENT.
//!
//! TensorFlow: MergeSummary(inputs: N * string) -> summary: string.

use std::collections::BTreeSet;

use prost::Message;
use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::Summary;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Bytes, TString};

use super::encode::{Entry, summary};

pub(crate) static OP: OpDef = OpDef {
    name: "MergeSummary",
    inputs: &["inputs: N * string"],
    outputs: &["summary: string"],
    attrs: &["N: int >= 1"],
    infer: infer::scalar,
    gradient: Gradient::Stop("summaries are not differentiated"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    scripts: &[
        script(
            "two tags",
            "a = string[]{a}\nb = string[]{b}\nx = float[]{1}\ns = ScalarSummary(a, x)\nt = ScalarSummary(b, x)\nm = MergeSummary([s, t])",
            &["fetch m => ?"],
        ),
        script(
            "a tag twice",
            "a = string[]{a}\nx = float[]{1}\ns = ScalarSummary(a, x)\nm = MergeSummary([s, s])",
            &["fetch m fails INVALID_ARGUMENT Duplicate tag a found in summary inputs"],
        ),
        script(
            "no summary",
            "s = string[]{nonsense}\nm = MergeSummary([s])",
            &["fetch m fails INVALID_ARGUMENT "],
        ),
    ],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let mut values = Vec::new();
        let mut tags = BTreeSet::new();
        for index in 0..ctx.num_inputs() {
            for bytes in ctx.input(index)?.slice::<TString>()? {
                let part = Summary::decode(Bytes::from(bytes)).map_err(|error| {
                    invalid_argument!("Could not parse one of the summary inputs: {error}")
                })?;
                for value in part.value {
                    if !tags.insert(value.tag.clone()) {
                        return Err(invalid_argument!(
                            "Duplicate tag {} found in summary inputs",
                            value.tag
                        ));
                    }
                    values.push(Entry::of(value.tag.clone(), value));
                }
            }
        }
        ctx.set(0, summary(&values));
        Ok(())
    })
}
