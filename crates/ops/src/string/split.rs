//! `StringSplit`, `StringSplitV2`: strings cut into pieces, as a sparse matrix of them.
//!
//! TensorFlow: StringSplit(input: string[n], delimiter: string) -> (indices, values, shape) cuts at every character of
//! the delimiter; an empty one cuts into bytes. StringSplitV2 cuts at the whole separator like Python's str.split.

use tensorfleet_graph::example::{ex, ex_attrs, i64s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use super::{Pieces, pieces, push_part};

const SPLIT: OpDef = OpDef {
    outputs: &["indices: int64", "values: string", "shape: int64"],
    gradient: Gradient::Stop("text is not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "StringSplit",
        inputs: &["input: string", "delimiter: string"],
        attrs: &["skip_empty: bool = true"],
        kernels: &[cpu(&[], build)],
        examples: &[
            ex(
                "words",
                &[strs(&[2], &["hello big world", " a "]), strs(&[], &[" "])],
                &[
                    i64s(&[4, 2], &[0, 0, 0, 1, 0, 2, 1, 0]),
                    strs(&[4], &["hello", "big", "world", "a"]),
                    i64s(&[2], &[2, 3]),
                ],
            ),
            ex(
                "bytes",
                &[strs(&[1], &["ab"]), strs(&[], &[""])],
                &[
                    i64s(&[2, 2], &[0, 0, 0, 1]),
                    strs(&[2], &["a", "b"]),
                    i64s(&[2], &[1, 2]),
                ],
            ),
            ex_attrs(
                "empty pieces kept",
                &[("skip_empty", "false")],
                &[strs(&[1], &["a,,b;"]), strs(&[], &[",;"])],
                &[
                    i64s(&[4, 2], &[0, 0, 0, 1, 0, 2, 0, 3]),
                    strs(&[4], &["a", "", "b", ""]),
                    i64s(&[2], &[1, 4]),
                ],
            ),
        ],
        ..SPLIT
    },
    OpDef {
        name: "StringSplitV2",
        inputs: &["input: string", "sep: string"],
        attrs: &["maxsplit: int = -1"],
        kernels: &[cpu(&[], build_v2)],
        examples: &[
            ex(
                "white space",
                &[strs(&[2], &["  a  b ", ""]), strs(&[], &[""])],
                &[
                    i64s(&[2, 2], &[0, 0, 0, 1]),
                    strs(&[2], &["a", "b"]),
                    i64s(&[2], &[2, 2]),
                ],
            ),
            ex_attrs(
                "white space, at most one cut",
                &[("maxsplit", "1")],
                &[strs(&[1], &["  4  5    6  "]), strs(&[], &[""])],
                &[
                    i64s(&[2, 2], &[0, 0, 0, 1]),
                    strs(&[2], &["4", "5    6  "]),
                    i64s(&[2], &[1, 2]),
                ],
            ),
            ex_attrs(
                "separator, at most one cut",
                &[("maxsplit", "1")],
                &[strs(&[1], &["a<>b<>c"]), strs(&[], &["<>"])],
                &[
                    i64s(&[2, 2], &[0, 0, 0, 1]),
                    strs(&[2], &["a", "b<>c"]),
                    i64s(&[2], &[1, 2]),
                ],
            ),
        ],
        ..SPLIT
    },
];

fn inputs<'a>(ctx: &'a KernelCtx<'_>) -> Result<(&'a [TString], TString)> {
    let (input, delimiter) = (ctx.input(0)?, ctx.input(1)?);
    if input.rank() != 1 {
        return Err(invalid_argument!(
            "input must be a vector, got shape: {}",
            input.shape()
        ));
    }
    if delimiter.rank() != 0 {
        return Err(invalid_argument!(
            "delimiter must be a scalar, got shape: {}",
            delimiter.shape()
        ));
    }
    Ok((input.slice::<TString>()?, delimiter.to_scalar::<TString>()?))
}

fn set_pieces(ctx: &mut KernelCtx<'_>, pieces: Pieces) -> Result<()> {
    let Pieces { values, counts } = pieces;
    let columns = counts.iter().copied().max().unwrap_or(0);
    let shape = Tensor::vector(&[counts.len() as i64, columns as i64]);
    let mut indices = Tensor::new(DType::I64, Shape::matrix(values.len(), 2)?)?;
    let rows = counts.iter().enumerate();
    let places = rows.flat_map(|(row, count)| (0..*count).map(move |column| (row, column)));
    let (pairs, _) = indices.slice_mut::<i64>()?.as_chunks_mut::<2>();
    for (pair, (row, column)) in pairs.iter_mut().zip(places) {
        *pair = [row as i64, column as i64];
    }
    ctx.set(0, indices);
    ctx.set(1, Tensor::from_vec(Shape::vector(values.len()), values)?);
    ctx.set(2, shape);
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let skip_empty = node.attrs.bool("skip_empty")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (values, delimiter) = inputs(ctx)?;
        let found = pieces(ctx.par(), values.len(), &|row, out| {
            let value = &values[row];
            if delimiter.is_empty() {
                value.chunks(1).for_each(|byte| push_part(out, value, byte));
                return Ok(());
            }
            let pieces = value.split(|byte| delimiter.contains(byte));
            let pieces = pieces.filter(|piece| !(skip_empty && piece.is_empty()));
            pieces.for_each(|piece| push_part(out, value, piece));
            Ok(())
        })?;
        set_pieces(ctx, found)
    })
}

fn build_v2(node: &NodeInfo) -> Result<AnyKernel> {
    let max = usize::try_from(node.attrs.int("maxsplit")?).unwrap_or(usize::MAX);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (values, separator) = inputs(ctx)?;
        let found = pieces(ctx.par(), values.len(), &|row, out| {
            match separator.split_first() {
                None => split_space(&values[row], max, out),
                Some(separator) => split_at(&values[row], separator, max, out),
            }
            Ok(())
        })?;
        set_pieces(ctx, found)
    })
}

/// Python's `str.split()`: runs of white space part the pieces.
fn split_space(value: &TString, max: usize, out: &mut Vec<TString>) {
    let mut rest: &[u8] = value.trim_ascii_start();
    let mut count = 0;
    while !rest.is_empty() {
        if count == max {
            push_part(out, value, rest);
            break;
        }
        let end = rest
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(rest.len());
        push_part(out, value, &rest[..end]);
        rest = rest[end..].trim_ascii_start();
        count += 1;
    }
}

/// Python's `str.split(separator)`, the separator by its first byte and the others: empty pieces count.
fn split_at(value: &TString, (first, others): (&u8, &[u8]), max: usize, out: &mut Vec<TString>) {
    let (mut start, mut at) = (0, 0);
    let mut count = 0;
    while count < max
        && let Some(found) = value[at..].iter().position(|byte| byte == first)
    {
        let end = at + found;
        at = end + 1;
        if value[at..].starts_with(others) {
            push_part(out, value, &value[start..end]);
            at += others.len();
            start = at;
            count += 1;
        }
    }
    push_part(out, value, &value[start..]);
}
