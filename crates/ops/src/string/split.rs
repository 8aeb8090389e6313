//! `StringSplit`, `StringSplitV2`: strings cut into pieces, as a sparse matrix of them.
//!
//! TensorFlow: StringSplit(input: string[n], delimiter: string) -> (indices, values, shape) cuts at every character of
//! the delimiter; an empty one cuts into bytes. StringSplitV2 cuts at the whole separator like Python's str.split.

use tensorfleet_graph::example::{ex, ex_attrs, i64s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Bytes, Shape, Tensor};

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

fn inputs<'a>(ctx: &'a KernelCtx<'_>) -> Result<(&'a [Bytes], Bytes)> {
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
    Ok((input.slice::<Bytes>()?, delimiter.to_scalar::<Bytes>()?))
}

fn set_pieces(ctx: &mut KernelCtx<'_>, rows: Vec<Vec<Bytes>>) -> Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let shape = Tensor::vector(&[rows.len() as i64, columns as i64]);
    let mut indices = Vec::new();
    let mut values = Vec::new();
    for (row, pieces) in rows.into_iter().enumerate() {
        for (column, piece) in pieces.into_iter().enumerate() {
            indices.extend([row as i64, column as i64]);
            values.push(piece);
        }
    }
    ctx.set(
        0,
        Tensor::from_vec(Shape::matrix(values.len(), 2)?, indices)?,
    );
    ctx.set(1, Tensor::from_vec(Shape::vector(values.len()), values)?);
    ctx.set(2, shape);
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let skip_empty = node.attrs.bool("skip_empty")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (values, delimiter) = inputs(ctx)?;
        let cut = |value: &Bytes| -> Vec<Bytes> {
            let pieces: Vec<Bytes> = if delimiter.is_empty() {
                (0..value.len()).map(|at| value.slice(at..at + 1)).collect()
            } else {
                value
                    .split(|byte| delimiter.contains(byte))
                    .map(|piece| value.slice_ref(piece))
                    .collect()
            };
            pieces
                .into_iter()
                .filter(|piece| !(skip_empty && piece.is_empty()))
                .collect()
        };
        let rows = values.iter().map(cut).collect();
        set_pieces(ctx, rows)
    })
}

fn build_v2(node: &NodeInfo) -> Result<AnyKernel> {
    let max = usize::try_from(node.attrs.int("maxsplit")?).unwrap_or(usize::MAX);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (values, separator) = inputs(ctx)?;
        let rows = values
            .iter()
            .map(|value| {
                if separator.is_empty() {
                    split_space(value, max)
                } else {
                    split_at(value, &separator, max)
                }
            })
            .collect();
        set_pieces(ctx, rows)
    })
}

/// Python's `str.split()`: runs of white space part the pieces.
fn split_space(value: &Bytes, max: usize) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut rest: &[u8] = value.trim_ascii_start();
    while !rest.is_empty() {
        if pieces.len() == max {
            pieces.push(value.slice_ref(rest));
            break;
        }
        let end = rest
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(rest.len());
        pieces.push(value.slice_ref(&rest[..end]));
        rest = rest[end..].trim_ascii_start();
    }
    pieces
}

/// Python's `str.split(separator)`: empty pieces count.
fn split_at(value: &Bytes, separator: &[u8], max: usize) -> Vec<Bytes> {
    if value.is_empty() {
        return vec![Bytes::new()];
    }
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while pieces.len() < max && at + separator.len() <= value.len() {
        if &value[at..at + separator.len()] == separator {
            pieces.push(value.slice(start..at));
            at += separator.len();
            start = at;
        } else {
            at += 1;
        }
    }
    pieces.push(value.slice(start..));
    pieces
}
