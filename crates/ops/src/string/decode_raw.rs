//! `DecodeRaw`, `DecodePaddedRaw`: the bytes of strings as numbers.
//!
//! TensorFlow: DecodeRaw(bytes: string) -> output: out_type, with one dimension more; DecodePaddedRaw(input_bytes: string,
//! fixed_length: int32) -> output: out_type, each string cut or filled with zero bytes to that length. Attr little_endian.

use tensorfleet_graph::example::{ex_attrs, ex_err, i32s, of, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, TString};

use crate::types::{COMPLEX, FLOATS, SIGNED, SINGLE_AND_DOUBLE, dtypes};

const TYPES: &[DType] = dtypes![
    FLOATS,
    SIGNED,
    &[DType::U8, DType::U16],
    COMPLEX,
    &[DType::Bool]
];

const PADDED: &[DType] = dtypes![
    &[DType::BF16],
    SINGLE_AND_DOUBLE,
    SIGNED,
    &[DType::U8, DType::U16]
];

const U16: (&str, &str) = ("out_type", "uint16");

const RAW: OpDef = OpDef {
    outputs: &["output: out_type"],
    gradient: Gradient::Stop("bytes are not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "DecodePaddedRaw",
        inputs: &["input_bytes: string", "fixed_length: int32"],
        attrs: &[
            "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}",
            "little_endian: bool = true",
        ],
        kernels: &[cpu(&[("out_type", PADDED)], |node| build(node, true))],
        examples: &[
            ex_attrs(
                "filled",
                &[U16],
                &[strs(&[2], &["abcd", "e"]), i32s(&[], &[4])],
                &[of(DType::U16, &[2, 2], &[25185.0, 25699.0, 101.0, 0.0])],
            ),
            ex_attrs(
                "cut, big-endian",
                &[U16, ("little_endian", "false")],
                &[strs(&[1], &["abcd"]), i32s(&[], &[2])],
                &[of(DType::U16, &[1, 1], &[24930.0])],
            ),
            ex_err(
                "no multiple",
                &[U16],
                &[strs(&[1], &["abcd"]), i32s(&[], &[3])],
                Code::InvalidArgument,
                "fixed_length (3) must be a multiple of the size of out_type (2)",
            ),
            ex_err(
                "no length",
                &[U16],
                &[strs(&[1], &["abcd"]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "fixed_length (0) must be greater than zero.",
            ),
        ],
        ..RAW
    },
    OpDef {
        name: "DecodeRaw",
        inputs: &["bytes: string"],
        attrs: &[
            "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}",
            "little_endian: bool = true",
        ],
        kernels: &[cpu(&[("out_type", TYPES)], |node| build(node, false))],
        examples: &[
            ex_attrs(
                "little-endian",
                &[U16],
                &[strs(&[2], &["abcd", "efgh"])],
                &[of(
                    DType::U16,
                    &[2, 2],
                    &[25185.0, 25699.0, 26213.0, 26727.0],
                )],
            ),
            ex_attrs(
                "big-endian",
                &[U16, ("little_endian", "false")],
                &[strs(&[], &["ab"])],
                &[of(DType::U16, &[1], &[24930.0])],
            ),
            ex_attrs(
                "no bytes",
                &[U16],
                &[strs(&[2], &["", ""])],
                &[of(DType::U16, &[2, 0], &[])],
            ),
            ex_err(
                "lengths differ",
                &[U16],
                &[strs(&[2], &["abcd", "ef"])],
                Code::InvalidArgument,
                "DecodeRaw requires input strings to all be the same size, but element 1 has size 4 != 2",
            ),
            ex_err(
                "no multiple",
                &[U16],
                &[strs(&[1], &["abc"])],
                Code::InvalidArgument,
                "Input to DecodeRaw has length 3 that is not a multiple of 2, the size of uint16",
            ),
        ],
        ..RAW
    },
];

fn build(node: &NodeInfo, is_padded: bool) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("out_type")?;
    let Some(size) = dtype.size() else {
        return Err(internal!("{dtype} has no fixed size"));
    };
    // Of complex numbers each half is a number.
    let part = if dtype.is_complex() { size / 2 } else { size };
    let swaps = !node.attrs.bool("little_endian")? && part > 1;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let strings = input.slice::<TString>()?;
        let length = match is_padded {
            true => fixed_length(ctx, size)?,
            false => common_length(strings, size, dtype)?,
        };
        let shape = input.shape().concat(&[(length / size) as i64])?;
        // Room first: there memory that is not to be had is an error.
        let mut out = ctx.allocate(dtype, shape)?;
        if dtype == DType::Bool {
            let rows = out.slice_mut::<bool>()?.chunks_exact_mut(length.max(1));
            for (row, string) in rows.zip(strings) {
                for (at, out) in row.iter_mut().enumerate() {
                    *out = string.get(at).is_some_and(|byte| *byte != 0);
                }
            }
        } else if let Some(bytes) = out.bytes_mut() {
            for (row, string) in bytes.chunks_exact_mut(length.max(1)).zip(strings) {
                let (given, missing) = row.split_at_mut(string.len().min(length));
                given.copy_from_slice(&string[..given.len()]);
                missing.fill(0);
            }
            if swaps {
                bytes.chunks_exact_mut(part).for_each(<[u8]>::reverse);
            }
        }
        ctx.set(0, out);
        Ok(())
    })
}

fn fixed_length(ctx: &KernelCtx<'_>, size: usize) -> Result<usize> {
    let shape = ctx.input(1)?.shape();
    ensure!(
        shape.rank() == 0,
        invalid_argument,
        "k must be scalar, got shape {shape}"
    );
    let length = ctx.int(1)?;
    let fixed = usize::try_from(length).ok().filter(|length| *length > 0);
    let fixed = fixed
        .ok_or_else(|| invalid_argument!("fixed_length ({length}) must be greater than zero."))?;
    ensure!(
        fixed.is_multiple_of(size),
        invalid_argument,
        "fixed_length ({length}) must be a multiple of the size of out_type ({size})"
    );
    Ok(fixed)
}

fn common_length(strings: &[TString], size: usize, dtype: DType) -> Result<usize> {
    let length = strings.first().map_or(0, TString::len);
    for (index, string) in strings.iter().enumerate() {
        ensure!(
            string.len() == length,
            invalid_argument,
            "DecodeRaw requires input strings to all be the same size, but element {index} has size {length} != {}",
            string.len()
        );
    }
    ensure!(
        length.is_multiple_of(size),
        invalid_argument,
        "Input to DecodeRaw has length {length} that is not a multiple of {size}, the size of {dtype}"
    );
    Ok(length)
}
