//! `UnicodeDecode`, `UnicodeDecodeWithOffsets`: texts as rows of code points.
//!
//! TensorFlow: (input: string) -> (row_splits: Tsplits, char_values: int32[, char_to_byte_starts: int64]). Malformed places are
//! replaced, left out or (errors='strict') INVALID_ARGUMENT. TensorFlow's own kernel crashes on offsets beside int32 splits,
//! ours gives them.

use tensorfleet_graph::example::{Script, ex_attrs, ex_err, i32s, i64s, script, strs};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::chunks_mut;
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{Element, Shape, TString, Tensor};

use super::encoding::Encoding;
use super::{Repair, UNICODE, malformed};
use crate::math::cast::from_integers;
use crate::string::GRAIN;
use crate::types::INDEX;

const UTF8: (&str, &str) = ("input_encoding", "'UTF-8'");

const ATTRS: &[&str] = &[
    "input_encoding: string",
    "errors: {'strict', 'replace', 'ignore'} = 'replace'",
    "replacement_char: int = 65533",
    "replace_control_characters: bool = false",
    "Tsplits: {int32, int64} = DT_INT64",
];

/// Bytes that are no text are written in base 64.
const SCRIPTS: &[Script] = &[
    script(
        "malformed UTF-8",
        "raw = string[5]{'_2FiAQ', '4oJh', '7aCA', '8J-Y', '9JCAgA'}
         s = DecodeBase64(raw)
         d = UnicodeDecodeWithOffsets(s) {input_encoding='UTF-8'}
         i = UnicodeDecodeWithOffsets(s) {input_encoding='UTF-8', errors='ignore', replace_control_characters=true}
         q = UnicodeDecode(s) {input_encoding='UTF-8', replacement_char=63, replace_control_characters=true}
         strict = UnicodeDecode(s) {input_encoding='UTF-8', errors='strict'}",
        &[
            "fetch d:0, d:1, d:2 => ?",
            "fetch i:0, i:1, i:2 => ?",
            "fetch q:0, q:1 => ?",
            "fetch strict fails INVALID_ARGUMENT Invalid formatting on input string",
        ],
    ),
    script(
        "UTF-16 with and without mark",
        "raw = string[9]{'_v8', '_v8AYQ', '__5hAA', 'AGEAYg', '2D3eAABh', '2D0AYQ', '3gAAYQ', 'AGEA', '2D3e'}
         s = DecodeBase64(raw)
         any = UnicodeDecodeWithOffsets(s) {input_encoding='UTF-16'}
         big = UnicodeDecodeWithOffsets(s) {input_encoding='UTF-16-BE'}
         little = UnicodeDecodeWithOffsets(s) {input_encoding='utf_16le'}",
        &[
            "fetch any:0, any:1, any:2 => ?",
            "fetch big:0, big:1, big:2 => ?",
            "fetch little:0, little:1, little:2 => ?",
        ],
    ),
    script(
        "UTF-32 with and without mark",
        "raw = string[7]{'AAD-_w', 'AAD-_wAAAGE', '__4AAGEAAAA', 'AAAAYQ', 'AADYAA', 'ABEAAA', 'AAAAYQAA'}
         s = DecodeBase64(raw)
         any = UnicodeDecodeWithOffsets(s) {input_encoding='UTF-32'}
         big = UnicodeDecodeWithOffsets(s) {input_encoding='UTF-32BE'}
         little = UnicodeDecodeWithOffsets(s) {input_encoding='UTF-32LE'}",
        &[
            "fetch any:0, any:1, any:2 => ?",
            "fetch big:0, big:1, big:2 => ?",
            "fetch little:0, little:1, little:2 => ?",
        ],
    ),
    script(
        "older encodings",
        "raw = string[3]{'gqBcfmGC', 'sKFhsA', 'gIH_'}
         s = DecodeBase64(raw)
         kana = string[2]{'gqBcfmGC', 'ggBh_WE'}
         k = DecodeBase64(kana)
         jp = UnicodeDecodeWithOffsets(k) {input_encoding='shift_jis'}
         latin = UnicodeDecodeWithOffsets(s) {input_encoding='ISO-8859-1'}
         ascii = UnicodeDecodeWithOffsets(s) {input_encoding='US-ASCII'}
         windows = UnicodeDecodeWithOffsets(s) {input_encoding='windows-1252'}
         escaped = string[1]{'YRskQiQiGyhCYQ'}
         e = DecodeBase64(escaped)
         iso = UnicodeDecodeWithOffsets(e) {input_encoding='iso-2022-jp'}",
        &[
            "fetch jp:0, jp:1, jp:2 => ?",
            "fetch latin:0, latin:1, latin:2 => ?",
            "fetch ascii:0, ascii:1, ascii:2 => ?",
            "fetch windows:0, windows:1, windows:2 => ?",
            "fetch iso:0, iso:1, iso:2 => int64[2]{0, 3}; int32[3]{97, 12354, 97}; int64[3]{0, 1, 6}",
        ],
    ),
];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "UnicodeDecode",
        inputs: &["input: string"],
        outputs: &["row_splits: Tsplits", "char_values: int32"],
        attrs: ATTRS,
        kernels: &[cpu(&[("Tsplits", INDEX)], build)],
        scripts: SCRIPTS,
        examples: &[
            ex_attrs(
                "rows",
                &[UTF8],
                &[strs(&[3], &["aä", "", "😀"])],
                &[i64s(&[4], &[0, 2, 2, 3]), i32s(&[3], &[97, 228, 0x1_f600])],
            ),
            ex_attrs(
                "one, narrow splits",
                &[UTF8, ("Tsplits", "int32")],
                &[strs(&[], &["ab"])],
                &[i32s(&[2], &[0, 2]), i32s(&[2], &[97, 98])],
            ),
            ex_attrs(
                "nothing",
                &[UTF8],
                &[strs(&[0], &[])],
                &[i64s(&[1], &[0]), i32s(&[0], &[])],
            ),
            ex_err(
                "no such encoding",
                &[("input_encoding", "'foo'")],
                &[strs(&[1], &["a"])],
                Code::InvalidArgument,
                "Could not create converter for input encoding: foo",
            ),
            ex_err(
                "replacement that is no character",
                &[UTF8, ("replacement_char", "1114112")],
                &[strs(&[1], &["a"])],
                Code::InvalidArgument,
                "replacement_char out of unicode codepoint range",
            ),
        ],
        ..UNICODE
    },
    OpDef {
        name: "UnicodeDecodeWithOffsets",
        inputs: &["input: string"],
        outputs: &[
            "row_splits: Tsplits",
            "char_values: int32",
            "char_to_byte_starts: int64",
        ],
        attrs: ATTRS,
        kernels: &[cpu(&[("Tsplits", INDEX)], build)],
        scripts: SCRIPTS,
        examples: &[ex_attrs(
            "rows",
            &[UTF8],
            &[strs(&[2], &["aäb", "😀c"])],
            &[
                i64s(&[3], &[0, 3, 5]),
                i32s(&[5], &[97, 228, 98, 0x1_f600, 99]),
                i64s(&[5], &[0, 1, 3, 0, 4]),
            ],
        )],
        ..UNICODE
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let encoding = Encoding::named(node.attrs.str("input_encoding")?)?;
    let repair = Repair::of(&node.attrs)?;
    let splits_type = node.attrs.dtype("Tsplits")?;
    let has_starts = node.op == "UnicodeDecodeWithOffsets";
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let texts = ctx.input(0)?.slice::<TString>()?;
        let mut blocks: Vec<Decoded> = Vec::new();
        blocks.resize_with(texts.len().div_ceil(GRAIN), Decoded::default);
        chunks_mut(ctx.par(), &mut blocks, 1, |first, blocks| {
            let texts = texts[first * GRAIN..].chunks(GRAIN);
            for (block, texts) in blocks.iter_mut().zip(texts) {
                for text in texts {
                    block.add(text, encoding, &repair, has_starts);
                }
            }
        });
        let count: usize = blocks.iter().map(|block| block.codes.len()).sum();
        ensure!(
            count < i32::MAX as usize,
            invalid_argument,
            "char_values size exceeds maximum capacity of SPLITS_TYPE: {count}"
        );
        if repair.is_strict && blocks.iter().any(|block| block.is_malformed) {
            return Err(malformed());
        }
        let counts = blocks.iter().flat_map(|block| &block.counts);
        let ends = counts.scan(0, |end, count| {
            *end += *count as i64;
            Some(*end)
        });
        let splits: Vec<i64> = std::iter::once(0).chain(ends).collect();
        let row_splits = from_integers(&splits, splits_type, Shape::vector(splits.len()))?;
        let codes = joined(blocks.iter().map(|block| &block.codes[..]), count)?;
        let starts = match has_starts {
            true => Some(joined(blocks.iter().map(|block| &block.starts[..]), count)?),
            false => None,
        };
        ctx.set(0, row_splits);
        ctx.set(1, codes);
        if let Some(starts) = starts {
            ctx.set(2, starts);
        }
        Ok(())
    })
}

/// What some neighbouring texts consist of.
#[derive(Default)]
struct Decoded {
    codes: Vec<i32>,
    /// Where in its text each begins, if that is asked for.
    starts: Vec<i64>,
    /// How many each text has.
    counts: Vec<usize>,
    is_malformed: bool,
}

impl Decoded {
    fn add(&mut self, text: &[u8], encoding: Encoding, repair: &Repair, has_starts: bool) {
        let (before, mut start) = (self.codes.len(), 0);
        encoding.read(text, |symbol| {
            self.is_malformed |= symbol.is_malformed;
            if let Some(code) = repair.apply(&symbol) {
                self.codes.push(code as i32);
                if has_starts {
                    self.starts.push(start as i64);
                }
            }
            start += symbol.bytes;
        });
        self.counts.push(self.codes.len() - before);
    }
}

/// A vector of all parts.
fn joined<'a, T: Element + Copy>(
    parts: impl Iterator<Item = &'a [T]>,
    count: usize,
) -> Result<Tensor> {
    let mut out = Tensor::new(T::DTYPE, Shape::vector(count))?;
    let mut rest = out.slice_mut::<T>()?;
    for part in parts {
        let (to, behind) = rest.split_at_mut(part.len());
        to.copy_from_slice(part);
        rest = behind;
    }
    Ok(out)
}
