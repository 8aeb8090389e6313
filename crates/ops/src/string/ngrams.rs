//! `StringNGrams`: neighbouring strings of each row joined, by twos, threes and so on.
//!
//! TensorFlow: StringNGrams(data: string, data_splits: Tsplits) -> (ngrams: string, ngrams_splits: Tsplits), for each width
//! in turn; rows are padded at both ends, with no more than a width needs less one. A row too short for any n-gram becomes one as a
//! whole if it is to be preserved.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use tensorfleet_graph::example::{ex_attrs, ex_err, i32s, i64s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{Shape, TString, Tensor};

use super::pieces;
use crate::math::cast::from_integers;
use crate::types::INDEX;

type Attrs = &'static [(&'static str, &'static str)];

const PAIRS: Attrs = &[
    ("separator", "'|'"),
    ("ngram_widths", "[2]"),
    ("left_pad", "'<'"),
    ("right_pad", "'>'"),
    ("pad_width", "0"),
    ("preserve_short_sequences", "false"),
];

pub(crate) static OP: OpDef = OpDef {
    name: "StringNGrams",
    inputs: &["data: string", "data_splits: Tsplits"],
    outputs: &["ngrams: string", "ngrams_splits: Tsplits"],
    attrs: &[
        "separator: string",
        "ngram_widths: list(int) >= 0",
        "left_pad: string",
        "right_pad: string",
        "pad_width: int",
        "preserve_short_sequences: bool",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    gradient: Gradient::Stop("text is not differentiated"),
    kernels: &[cpu(&[("Tsplits", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "pairs",
            PAIRS,
            &[
                strs(&[6], &["a", "b", "c", "d", "e", "f"]),
                i64s(&[4], &[0, 3, 4, 6]),
            ],
            &[
                strs(&[3], &["a|b", "b|c", "e|f"]),
                i64s(&[4], &[0, 2, 2, 3]),
            ],
        ),
        ex_attrs(
            "padded as needed, two widths",
            &[
                ("separator", "'|'"),
                ("ngram_widths", "[3, 2]"),
                ("left_pad", "'<'"),
                ("right_pad", "'>'"),
                ("pad_width", "-1"),
                ("preserve_short_sequences", "false"),
            ],
            &[strs(&[3], &["a", "b", "c"]), i32s(&[3], &[0, 2, 3])],
            &[
                strs(
                    &[12],
                    &[
                        "<|<|a", "<|a|b", "a|b|>", "b|>|>", "<|a", "a|b", "b|>", "<|<|c", "<|c|>",
                        "c|>|>", "<|c", "c|>",
                    ],
                ),
                i32s(&[3], &[0, 7, 12]),
            ],
        ),
        ex_attrs(
            "short row kept",
            &[
                ("separator", "'|'"),
                ("ngram_widths", "[6]"),
                ("left_pad", "'<'"),
                ("right_pad", "'>'"),
                ("pad_width", "1"),
                ("preserve_short_sequences", "true"),
            ],
            &[strs(&[2], &["a", "b"]), i64s(&[3], &[0, 2, 2])],
            &[strs(&[1], &["<|a|b|>"]), i64s(&[3], &[0, 1, 1])],
        ),
        ex_attrs(
            "padding alone",
            &[
                ("separator", "'|'"),
                ("ngram_widths", "[2]"),
                ("left_pad", "'<'"),
                ("right_pad", "'>'"),
                ("pad_width", "1"),
                ("preserve_short_sequences", "false"),
            ],
            &[strs(&[1], &["a"]), i64s(&[3], &[0, 0, 1])],
            &[strs(&[3], &["<|>", "<|a", "a|>"]), i64s(&[3], &[0, 1, 3])],
        ),
        ex_attrs(
            "nothing",
            PAIRS,
            &[strs(&[0], &[]), i64s(&[2], &[0, 0])],
            &[strs(&[0], &[]), i64s(&[2], &[0, 0])],
        ),
        ex_err(
            "width",
            &[
                ("separator", "'|'"),
                ("ngram_widths", "[0]"),
                ("left_pad", "''"),
                ("right_pad", "''"),
                ("pad_width", "0"),
                ("preserve_short_sequences", "false"),
            ],
            &[strs(&[1], &["a"]), i64s(&[2], &[0, 1])],
            Code::InvalidArgument,
            "ngram_widths must contain positive values",
        ),
        ex_err(
            "first split",
            PAIRS,
            &[strs(&[1], &["a"]), i64s(&[2], &[1, 1])],
            Code::InvalidArgument,
            "First split value must be 0, got 1",
        ),
        ex_err(
            "last split",
            PAIRS,
            &[strs(&[2], &["a", "b"]), i64s(&[2], &[0, 1])],
            Code::InvalidArgument,
            "Last split value must be data size. Expected 2, got 1",
        ),
        ex_err(
            "splits out of order",
            PAIRS,
            &[strs(&[2], &["a", "b"]), i64s(&[4], &[0, 2, 1, 2])],
            Code::InvalidArgument,
            "Invalid split value 1, must be in [2, 2]",
        ),
        ex_err(
            "width without bound",
            &[
                ("separator", "'|'"),
                ("ngram_widths", "[2147483647]"),
                ("left_pad", "''"),
                ("right_pad", "''"),
                ("pad_width", "-1"),
                ("preserve_short_sequences", "false"),
            ],
            &[strs(&[1], &["a"]), i64s(&[2], &[0, 1])],
            Code::InvalidArgument,
            "Pad width could lead to integer overflow, got pad_width = 2147483646",
        ),
    ],
    ..OpDef::BLANK
};

/// No more bytes are joined in one run: a wrong width must not take all memory.
const MAX_BYTES: usize = 1 << 31;

/// After so many pieces of an n-gram it is asked whether anybody wants it: padding of no bytes may be of any width.
const ROUNDS: i64 = 1 << 12;

/// So many bytes are claimed at once.
const CLAIM: usize = 1 << 16;

/// The part of [`MAX_BYTES`] that a row has claimed and not used; it goes back in the end.
struct Budget<'a> {
    claimed: &'a AtomicUsize,
    left: usize,
    par: &'a dyn Par,
}

impl Budget<'_> {
    fn of<'a>(claimed: &'a AtomicUsize, par: &'a dyn Par) -> Budget<'a> {
        Budget {
            claimed,
            left: 0,
            par,
        }
    }

    fn take(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.left {
            let more = CLAIM.max(bytes - self.left);
            self.left += more;
            ensure!(
                self.claimed.fetch_add(more, Ordering::Relaxed) + more <= MAX_BYTES,
                resource_exhausted,
                "n-grams of more than {MAX_BYTES} bytes"
            );
        }
        self.left -= bytes;
        Ok(())
    }
}

impl Drop for Budget<'_> {
    fn drop(&mut self) {
        self.claimed.fetch_sub(self.left, Ordering::Relaxed);
    }
}

struct NGrams {
    separator: TString,
    widths: Vec<i64>,
    left: TString,
    right: TString,
    /// As much as a width needs if negative.
    padding: i64,
    keeps_short: bool,
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let rule = NGrams {
        separator: attrs.bytes("separator")?.into(),
        widths: attrs.ints("ngram_widths")?.to_vec(),
        left: attrs.bytes("left_pad")?.into(),
        right: attrs.bytes("right_pad")?.into(),
        padding: attrs.int("pad_width")?,
        keeps_short: attrs.bool("preserve_short_sequences")?,
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        ensure!(
            rule.widths.iter().all(|width| *width > 0),
            invalid_argument,
            "ngram_widths must contain positive values"
        );
        let (data, splits) = (ctx.input(0)?, ctx.ints(1)?);
        let values = data.slice::<TString>()?;
        check(&splits, values.len())?;
        let split_type = ctx.input(1)?.dtype();
        let shape = ctx.input(1)?.shape().clone();
        if values.is_empty() || splits.is_empty() {
            let out = Tensor::zeros(data.dtype(), data.shape().clone())?;
            ctx.set(0, out);
            ctx.set(1, Tensor::zeros(split_type, shape)?);
            return Ok(());
        }
        let joined = AtomicUsize::new(0);
        let par = ctx.par();
        let found = pieces(par, splits.len() - 1, &|row, out| {
            let row = values
                .get(splits[row] as usize..splits[row + 1] as usize)
                .unwrap_or_default();
            rule.row(row, out, &mut Budget::of(&joined, par))
        })?;
        let mut out_splits = vec![0i64];
        out_splits.extend(found.counts.iter().scan(0, |end, count| {
            *end += *count as i64;
            Some(*end)
        }));
        let out = found.values;
        ctx.set(0, Tensor::from_vec(Shape::vector(out.len()), out)?);
        ctx.set(1, from_integers(&out_splits, split_type, shape)?);
        Ok(())
    })
}

fn check(splits: &[i64], size: usize) -> Result<()> {
    let Some((first, rest)) = splits.split_first() else {
        return Ok(());
    };
    ensure!(
        *first == 0,
        invalid_argument,
        "First split value must be 0, got {first}"
    );
    let mut last = *first;
    for split in rest {
        ensure!(
            (last..=size as i64).contains(split),
            invalid_argument,
            "Invalid split value {split}, must be in [{last}, {size}]"
        );
        last = *split;
    }
    ensure!(
        last == size as i64,
        invalid_argument,
        "Last split value must be data size. Expected {size}, got {last}"
    );
    Ok(())
}

impl NGrams {
    fn row(&self, row: &[TString], out: &mut Vec<TString>, budget: &mut Budget<'_>) -> Result<()> {
        let before = out.len();
        let mut text = Vec::new();
        for width in &self.widths {
            let padding = match self.padding {
                ..0 => width - 1,
                padding => padding.min(width - 1),
            };
            ensure!(
                padding <= i64::from(i32::MAX / 2) - row.len() as i64,
                invalid_argument,
                "Pad width could lead to integer overflow, got pad_width = {padding}"
            );
            let count = (row.len() as i64 + 2 * padding - width + 1).max(0);
            for at in 0..count {
                if at % ROUNDS == 0 {
                    budget.par.poll();
                }
                budget.take(size_of::<TString>())?;
                let begin = at - padding;
                self.join(row, begin..begin + width, &mut text, budget)?;
                out.push(TString::copy_from_slice(&text));
            }
        }
        if self.keeps_short && out.len() == before && !row.is_empty() {
            ensure!(
                self.padding >= 0,
                invalid_argument,
                "Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are not provided, got {}",
                self.padding
            );
            let end = self.padding.saturating_add(row.len() as i64);
            self.join(row, -self.padding..end, &mut text, budget)?;
            out.push(text.into());
        }
        Ok(())
    }

    /// What stands in a range, where padding goes on for ever on both sides of the row.
    fn join(
        &self,
        row: &[TString],
        range: Range<i64>,
        text: &mut Vec<u8>,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        text.clear();
        for at in range.clone() {
            if at.wrapping_sub(range.start) % ROUNDS == ROUNDS - 1 {
                budget.par.poll();
            }
            let before = text.len();
            if at > range.start {
                text.extend_from_slice(&self.separator);
            }
            text.extend_from_slice(match usize::try_from(at) {
                Ok(at) => row.get(at).unwrap_or(&self.right),
                Err(_) => &self.left,
            });
            budget.take(text.len() - before)?;
        }
        Ok(())
    }
}
