//! `UnicodeEncode`: rows of code points as texts.
//!
//! TensorFlow: UnicodeEncode(input_values: int32, input_splits: Tsplits) -> output: string. Surrogates and what is above the
//! largest code point are replaced, left out or (errors='strict') INVALID_ARGUMENT.

use tensorfleet_graph::example::{ex_attrs, ex_err, i32s, i64s, script, strs};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::{Repair, UNICODE, Writing};
use crate::types::INDEX;

const UTF8: (&str, &str) = ("output_encoding", "'UTF-8'");

pub(crate) static OP: OpDef = OpDef {
    name: "UnicodeEncode",
    inputs: &["input_values: int32", "input_splits: Tsplits"],
    outputs: &["output: string"],
    attrs: &[
        "errors: {'ignore', 'replace', 'strict'} = 'replace'",
        "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
        "replacement_char: int = 65533",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    kernels: &[cpu(&[("Tsplits", INDEX)], build)],
    examples: &[
        ex_attrs(
            "rows",
            &[UTF8],
            &[i32s(&[3], &[97, 228, 0x1_f600]), i64s(&[4], &[0, 2, 2, 3])],
            &[strs(&[3], &["aä", "", "😀"])],
        ),
        ex_attrs(
            "replaced",
            &[UTF8],
            &[
                i32s(&[4], &[0xd800, 97, -1, 0x11_0000]),
                i32s(&[2], &[0, 4]),
            ],
            &[strs(&[1], &["\u{fffd}a\u{fffd}\u{fffd}"])],
        ),
        ex_attrs(
            "left out",
            &[UTF8, ("errors", "'ignore'")],
            &[i32s(&[2], &[0xd800, 97]), i64s(&[2], &[0, 2])],
            &[strs(&[1], &["a"])],
        ),
        ex_attrs(
            "no rows",
            &[UTF8],
            &[i32s(&[0], &[]), i64s(&[1], &[0])],
            &[strs(&[0], &[])],
        ),
        ex_err(
            "strict",
            &[UTF8, ("errors", "'strict'")],
            &[i32s(&[1], &[0xd800]), i64s(&[2], &[0, 1])],
            Code::InvalidArgument,
            "Code point is out of range for Unicode, or is a surrogate.",
        ),
        ex_err(
            "rank",
            &[UTF8],
            &[i32s(&[1, 1], &[97]), i64s(&[2], &[0, 1])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "no splits",
            &[UTF8],
            &[i32s(&[0], &[]), i64s(&[0], &[])],
            Code::InvalidArgument,
            "Input_splits should contain elements",
        ),
        ex_err(
            "first split",
            &[UTF8],
            &[i32s(&[2], &[97, 98]), i64s(&[2], &[1, 2])],
            Code::InvalidArgument,
            "First value in input_splits must be zero.",
        ),
        ex_err(
            "last split",
            &[UTF8],
            &[i32s(&[2], &[97, 98]), i64s(&[2], &[0, 1])],
            Code::InvalidArgument,
            "Last value in input_splits must be equal to length of input_tensor.",
        ),
        ex_err(
            "splits out of order",
            &[UTF8],
            &[i32s(&[2], &[97, 98]), i64s(&[4], &[0, 2, 1, 2])],
            Code::InvalidArgument,
            "Values in input_splits must be equal or in ascending order.",
        ),
    ],
    scripts: &[script(
        "wide units",
        "codes = int32[3]{97, 128512, -1}
         splits = int64[2]{0, 3}
         two = UnicodeEncode(codes, splits) {output_encoding='UTF-16-BE'}
         four = UnicodeEncode(codes, splits) {output_encoding='UTF-32-BE', replacement_char=55296}
         half = UnicodeEncode(codes, splits) {output_encoding='UTF-16-BE', replacement_char=55296}
         one = UnicodeEncode(codes, splits) {output_encoding='UTF-8', replacement_char=55296}
         a = EncodeBase64(two)
         b = EncodeBase64(four)
         c = EncodeBase64(half)
         d = EncodeBase64(one)",
        &["fetch a, b, c, d => ?"],
    )],
    ..UNICODE
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let writing = Writing::of(&node.attrs)?;
    let repair = Repair::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (values, splits) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            values.rank() == 1 && splits.rank() == 1,
            invalid_argument,
            "Both the input_tensor and input_splits should be of rank 1. "
        );
        let (values, splits) = (values.slice::<i32>()?, ctx.ints(1)?);
        check(&splits, values.len())?;
        let mut texts = Vec::with_capacity(splits.len().saturating_sub(1));
        for bounds in splits.windows(2) {
            let row = values
                .get(bounds[0] as usize..bounds[1] as usize)
                .unwrap_or_default();
            let mut codes = Vec::with_capacity(row.len());
            for value in row {
                let code = u32::try_from(*value).ok().and_then(char::from_u32);
                match code {
                    Some(code) => codes.push(u32::from(code)),
                    None if repair.is_strict => {
                        return Err(invalid_argument!(
                            "Code point is out of range for Unicode, or is a surrogate."
                        ));
                    }
                    None if repair.ignores => {}
                    None => codes.push(repair.replacement),
                }
            }
            texts.push(writing.text(&codes));
        }
        let out = Tensor::from_vec(Shape::vector(texts.len()), texts)?;
        ctx.set(0, out);
        Ok(())
    })
}

/// Splits begin with zero, never fall and end with the number of values.
fn check(splits: &[i64], values: usize) -> Result<()> {
    let (Some(first), Some(last)) = (splits.first(), splits.last()) else {
        return Err(invalid_argument!(
            "Input_splits should contain elements, but given input_values has 0 elements"
        ));
    };
    ensure!(
        *first == 0,
        invalid_argument,
        "First value in input_splits must be zero."
    );
    ensure!(
        *last == values as i64,
        invalid_argument,
        "Last value in input_splits must be equal to length of input_tensor."
    );
    ensure!(
        splits.is_sorted(),
        invalid_argument,
        "Values in input_splits must be equal or in ascending order."
    );
    Ok(())
}
