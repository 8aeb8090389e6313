//! `StringUpper`, `StringLower`, `StringStrip`: every string changed by itself.
//!
//! TensorFlow: (input: string) -> output: string; with encoding '' only ASCII letters change, with 'utf-8' all.

use tensorfleet_graph::example::{ex, ex_attrs, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};

use super::map_strings;

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
        map_strings(ctx, |value, out, _| {
            if unicode {
                let value = String::from_utf8_lossy(value);
                *out = match upper {
                    true => value.to_uppercase().into(),
                    false => value.to_lowercase().into(),
                };
                return Ok(());
            }
            out.assign(value);
            match upper {
                true => out.make_mut().make_ascii_uppercase(),
                false => out.make_mut().make_ascii_lowercase(),
            }
            Ok(())
        })
    })
}

fn build_strip(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        map_strings(ctx, |value, out, _| {
            out.assign_part(value, value.trim_ascii());
            Ok(())
        })
    })
}
