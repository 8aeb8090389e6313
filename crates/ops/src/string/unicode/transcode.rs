//! `UnicodeTranscode`: texts of one encoding in another.
//!
//! TensorFlow: UnicodeTranscode(input: string) -> output: string. Malformed places are replaced, left out or
//! (errors='strict') INVALID_ARGUMENT; with replace_control_characters so are control characters.

use tensorfleet_graph::example::{ex_attrs, ex_err, script, strs};
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result};

use super::encoding::Encoding;
use super::{Repair, UNICODE, Writing, malformed};
use crate::string::map;

const FROM_UTF8: (&str, &str) = ("input_encoding", "'UTF-8'");
const TO_UTF8: (&str, &str) = ("output_encoding", "'UTF-8'");

pub(crate) static OP: OpDef = OpDef {
    name: "UnicodeTranscode",
    inputs: &["input: string"],
    outputs: &["output: string"],
    attrs: &[
        "input_encoding: string",
        "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
        "errors: {'strict', 'replace', 'ignore'} = 'replace'",
        "replacement_char: int = 65533",
        "replace_control_characters: bool = false",
    ],
    infer: infer::same_as_first,
    kernels: &[cpu(&[], build)],
    examples: &[
        ex_attrs(
            "as it is",
            &[FROM_UTF8, TO_UTF8],
            &[strs(&[2, 1], &["aä😀", ""])],
            &[strs(&[2, 1], &["aä😀", ""])],
        ),
        ex_attrs(
            "control characters",
            &[
                FROM_UTF8,
                TO_UTF8,
                ("replace_control_characters", "true"),
                ("replacement_char", "63"),
            ],
            &[strs(&[], &["a\u{1}b\u{1f}"])],
            &[strs(&[], &["a?b?"])],
        ),
        ex_attrs(
            "one byte each",
            &[("input_encoding", "'latin-1'"), TO_UTF8],
            &[strs(&[1], &["ä"])],
            &[strs(&[1], &["Ã¤"])],
        ),
        ex_err(
            "strict about control characters",
            &[
                FROM_UTF8,
                TO_UTF8,
                ("errors", "'strict'"),
                ("replace_control_characters", "true"),
            ],
            &[strs(&[1], &["\u{1}"])],
            Code::InvalidArgument,
            "Invalid formatting on input string",
        ),
        ex_err(
            "no such encoding",
            &[("input_encoding", "'foo'"), TO_UTF8],
            &[strs(&[1], &["a"])],
            Code::InvalidArgument,
            "Could not create converter for input encoding: foo",
        ),
    ],
    scripts: &[script(
        "malformed",
        "raw = string[2]{'_2FiAQ', '4oJh'}
         s = DecodeBase64(raw)
         r = UnicodeTranscode(s) {input_encoding='UTF-8', output_encoding='UTF-8', replacement_char=65}
         i = UnicodeTranscode(s) {input_encoding='UTF-8', output_encoding='UTF-8', errors='ignore'}
         strict = UnicodeTranscode(s) {input_encoding='UTF-8', output_encoding='UTF-8', errors='strict'}
         wide = UnicodeTranscode(s) {input_encoding='UTF-8', output_encoding='UTF-16-BE'}
         w = EncodeBase64(wide)",
        &[
            "fetch r, i, w => ?",
            "fetch strict fails INVALID_ARGUMENT Invalid formatting on input string",
        ],
    )],
    ..UNICODE
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let encoding = Encoding::named(node.attrs.str("input_encoding")?)?;
    let writing = Writing::of(&node.attrs)?;
    let repair = Repair::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map(ctx, |text| {
            let mut codes = Vec::with_capacity(text.len());
            let mut is_bad = false;
            encoding.read(text, |symbol| {
                is_bad |= repair.is_bad(&symbol);
                codes.extend(repair.apply(&symbol));
            });
            match is_bad && repair.is_strict {
                true => Err(malformed()),
                false => Ok(writing.text(&codes)),
            }
        })
    })
}
