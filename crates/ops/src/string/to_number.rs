//! `StringToNumber`: text to numbers.
//!
//! TensorFlow: StringToNumber(string_tensor: string) -> output: out_type. White space around a number is skipped.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, TString};

use super::map;

const TYPES: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::I32,
    DType::I64,
    DType::U32,
    DType::U64,
];

pub(crate) static OP: OpDef = OpDef {
    name: "StringToNumber",
    inputs: &["string_tensor: string"],
    outputs: &["output: out_type"],
    attrs: &["out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("text is not differentiated"),
    kernels: &[cpu(&[("out_type", TYPES)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "floats",
            &[strs(&[4], &["1.5", " -2 ", "1e3", "inf"])],
            &[f32s(&[4], &[1.5, -2.0, 1000.0, f64::INFINITY])],
        ),
        ex(
            "sixteen digits",
            &[strs(&[2], &["0xF", "-0x10"])],
            &[f32s(&[2], &[15.0, -16.0])],
        ),
        ex_attrs(
            "integers",
            &[("out_type", "int32")],
            &[strs(&[2], &["12", "-7"])],
            &[i32s(&[2], &[12, -7])],
        ),
        ex_err(
            "no number",
            &[],
            &[strs(&[1], &["12x"])],
            Code::InvalidArgument,
            "StringToNumberOp could not correctly convert string: 12x",
        ),
        ex_err(
            "too large",
            &[("out_type", "int32")],
            &[strs(&[1], &["3000000000"])],
            Code::InvalidArgument,
            "3000000000",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    match node.attrs.dtype("out_type")? {
        DType::F32 => parse(|text| text.parse().ok().or(hexadecimal(text).map(|n| n as f32))),
        DType::F64 => parse(|text| text.parse().ok().or(hexadecimal(text))),
        DType::I32 => parse::<i32>(|text| text.parse().ok()),
        DType::I64 => parse::<i64>(|text| text.parse().ok()),
        DType::U32 => parse::<u32>(|text| text.parse().ok()),
        DType::U64 => parse::<u64>(|text| text.parse().ok()),
        other => Err(internal!("numbers of {other} are not read")),
    }
}

fn parse<T: Element>(read: fn(&str) -> Option<T>) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map(ctx, |value: &TString| {
            let text = String::from_utf8_lossy(value);
            read(text.trim()).ok_or_else(|| {
                invalid_argument!("StringToNumberOp could not correctly convert string: {text}")
            })
        })
    })
}

/// `0xF`, which only floats may be written as.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, text),
    };
    let digits = digits.strip_prefix("0x").or(digits.strip_prefix("0X"))?;
    let is_number = digits.starts_with(|first: char| first.is_ascii_hexdigit());
    let number = u64::from_str_radix(digits, 16).ok().filter(|_| is_number)?;
    Some(sign * number as f64)
}
