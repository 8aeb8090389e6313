//! `StringUpper`, `StringLower`, `StringStrip`: every string changed by itself.
//!
//! TensorFlow: (input: string) -> output: string; with encoding '' only ASCII letters change, with 'utf-8' all.

use tensorfleet_graph::example::{ex, ex_attrs, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::Bytes;

use super::map;

const CASE: OpDef = OpDef {
    inputs: &["input: string"],
    outputs: &["output: string"],
    attrs: &["encoding: string = ''"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("text is not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "StringUpper",
        kernels: &[cpu(&[], |node| build(node, true))],
        examples: &[
            ex(
                "ascii",
                &[strs(&[2], &["Hello", "ä1"])],
                &[strs(&[2], &["HELLO", "ä1"])],
            ),
            ex_attrs(
                "utf-8",
                &[("encoding", "'utf-8'")],
                &[strs(&[1], &["ä1b"])],
                &[strs(&[1], &["Ä1B"])],
            ),
        ],
        ..CASE
    },
    OpDef {
        name: "StringLower",
        kernels: &[cpu(&[], |node| build(node, false))],
        examples: &[ex(
            "ascii",
            &[strs(&[2], &["Hello", "Ä1"])],
            &[strs(&[2], &["hello", "Ä1"])],
        )],
        ..CASE
    },
    OpDef {
        name: "StringStrip",
        attrs: &[],
        kernels: &[cpu(&[], build_strip)],
        examples: &[ex(
            "blanks",
            &[strs(&[3], &["  a b ", "\tx\n", ""])],
            &[strs(&[3], &["a b", "x", ""])],
        )],
        ..CASE
    },
];

fn build(node: &NodeInfo, upper: bool) -> Result<AnyKernel> {
    let unicode = match node.attrs.str("encoding")? {
        "" => false,
        "utf-8" => true,
        other => {
            return Err(invalid_argument!(
                "only utf-8 or '' (no encoding) is supported, received {other}"
            ));
        }
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map::<Bytes>(ctx, |value| {
            Ok(match (unicode, upper) {
                (false, true) => value.to_ascii_uppercase().into(),
                (false, false) => value.to_ascii_lowercase().into(),
                (true, true) => String::from_utf8_lossy(value).to_uppercase().into(),
                (true, false) => String::from_utf8_lossy(value).to_lowercase().into(),
            })
        })
    })
}

fn build_strip(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        map(ctx, |value| Ok(Bytes::copy_from_slice(value.trim_ascii())))
    })
}
