//! `StringLength`: the number of bytes or characters of every string.
//!
//! TensorFlow: StringLength(input: string) -> output: int32, with unit BYTE or UTF8_CHAR.

use tensorfleet_graph::example::{ex, ex_attrs, i32s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

use super::map;

pub(crate) static OP: OpDef = OpDef {
    name: "StringLength",
    inputs: &["input: string"],
    outputs: &["output: int32"],
    attrs: &["unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("lengths are integers"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "bytes",
            &[strs(&[3], &["", "abc", "ä"])],
            &[i32s(&[3], &[0, 3, 2])],
        ),
        ex_attrs(
            "characters",
            &[("unit", "'UTF8_CHAR'")],
            &[strs(&[3], &["", "abc", "äö"])],
            &[i32s(&[3], &[0, 3, 2])],
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let characters = node.attrs.str("unit")? == "UTF8_CHAR";
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map(ctx, |value| {
            // Every byte that does not continue a character begins one.
            let count = if characters {
                value.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
            } else {
                value.len()
            };
            Ok(i32::try_from(count).unwrap_or(i32::MAX))
        })
    })
}
