//! `StringFormat`: a template filled with short texts of tensors.
//!
//! TensorFlow: StringFormat(inputs: T) -> output: string, with template, placeholder and summarize: so many elements are
//! shown at either end of each dimension, all if it is -1.

use std::fmt::Write as _;

use tensorfleet_graph::example::{Lit, bools, ex_attrs, ex_err, f32s, f64s, i32s, of, ramp, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::poll;
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, TString, Tensor, bf16, f16, write_element};

use super::as_string::shortest;

pub(crate) static OP: OpDef = OpDef {
    name: "StringFormat",
    inputs: &["inputs: T"],
    outputs: &["output: string"],
    attrs: &[
        "T: list(type) >= 0",
        "template: string = '%s'",
        "placeholder: string = '%s'",
        "summarize: int = 3",
    ],
    infer: infer::scalar,
    gradient: Gradient::None("text is not differentiated"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "a number and a string",
            &[("template", "'%s is %s.'")],
            &[i32s(&[], &[-7]), strs(&[], &["n"])],
            &[strs(&[], &["-7 is \"n\"."])],
        ),
        ex_attrs(
            "both ends of a long one",
            &[("template", "'x{}'"), ("placeholder", "'{}'")],
            &[i32s(&[8], &[0, 1, 2, 3, 4, 5, 6, 7])],
            &[strs(&[], &["x[0 1 2 ... 5 6 7]"])],
        ),
        ex_attrs(
            "all",
            &[("summarize", "-1")],
            &[i32s(&[8], &[0, 1, 2, 3, 4, 5, 6, 7])],
            &[strs(&[], &["[0 1 2 3 4 5 6 7]"])],
        ),
        ex_attrs(
            "three dimensions",
            &[("summarize", "1")],
            &[Lit {
                dtype: Some(DType::I64),
                ..ramp(&[4, 4, 4], 0.0, 1.0)
            }],
            &[strs(
                &[],
                &[
                    "[[[0 ... 3]\n  ...\n  [12 ... 15]]\n\n ...\n\n [[48 ... 51]\n  ...\n  [60 ... 63]]]",
                ],
            )],
        ),
        ex_attrs(
            "floats",
            &[],
            &[f32s(&[4], &[1e10, 0.1, 3.25, -1e-10])],
            &[strs(&[], &["[1e+10 0.1 3.25 -1e-10]"])],
        ),
        ex_attrs(
            "doubles and halves",
            &[("template", "'%s %s'")],
            &[f64s(&[2], &[1e10, 0.5]), of(DType::F16, &[1], &[0.25])],
            &[strs(&[], &["[10000000000 0.5] [0.25]"])],
        ),
        ex_attrs(
            "bools and nothing",
            &[("template", "'%s %s'")],
            &[bools(&[2], &[true, false]), f32s(&[0], &[])],
            &[strs(&[], &["[1 0] []"])],
        ),
        ex_attrs(
            "no inputs",
            &[("template", "'abc'")],
            &[],
            &[strs(&[], &["abc"])],
        ),
        ex_err(
            "too few inputs",
            &[("template", "'%s %s'")],
            &[i32s(&[], &[1])],
            Code::InvalidArgument,
            "num placeholders in template and num inputs must match: 2 vs. 1",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let summarize = usize::try_from(attrs.int("summarize")?).unwrap_or(usize::MAX);
    let parts: Vec<String> = match (attrs.str("template")?, attrs.str("placeholder")?) {
        (template, "") => vec![template.to_owned()],
        (template, placeholder) => template.split(placeholder).map(str::to_owned).collect(),
    };
    let wanted = parts.len() - 1;
    ensure!(
        wanted == node.input_types.len(),
        invalid_argument,
        "num placeholders in template and num inputs must match: {wanted} vs. {}",
        node.input_types.len()
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut text = String::new();
        for (index, part) in parts.iter().enumerate() {
            text.push_str(part);
            if index < wanted {
                let tensor = ctx.input(index)?;
                if tensor.is_empty() && tensor.shape().dim(0) == 0 {
                    text.push_str("[]");
                } else {
                    write_dim(tensor, 0, 0, summarize, &mut text)?;
                }
            }
        }
        ctx.set(0, Tensor::string(text));
        Ok(())
    })
}

/// No longer text is made: rows of nothing are no bytes but some characters.
const MAX_TEXT: usize = 1 << 30;

/// Writes dimension `axis` of the part of a tensor that begins at element `start`.
fn write_dim(
    tensor: &Tensor,
    axis: usize,
    start: usize,
    ends: usize,
    text: &mut String,
) -> Result<()> {
    let rank = tensor.rank();
    if axis == rank {
        write_scalar(tensor, start, text);
        return Ok(());
    }
    let count = tensor.shape().dim(axis);
    let inner = tensor.shape().elements_in(axis + 1..rank);
    let space = |text: &mut String| {
        if axis + 1 == rank {
            text.push(' ');
        } else {
            text.extend(std::iter::repeat_n('\n', rank - axis - 1));
            text.extend(std::iter::repeat_n(' ', axis + 1));
        }
    };
    let is_cut = count > ends.saturating_mul(2);
    text.push('[');
    let (first, last) = if is_cut {
        (0..ends, count - ends..count)
    } else {
        (0..count, 0..0)
    };
    // What is not shown is not looked at: there may be any number of rows of nothing.
    if first.is_empty() && is_cut {
        space(text);
        text.push_str("...");
    }
    for index in first.clone().chain(last) {
        poll();
        ensure!(
            text.len() < MAX_TEXT,
            resource_exhausted,
            "a text of more than {MAX_TEXT} bytes"
        );
        if is_cut && index == count - ends {
            space(text);
            text.push_str("...");
        }
        if index > 0 {
            space(text);
        }
        write_dim(tensor, axis + 1, start + index * inner, ends, text)?;
    }
    text.push(']');
    Ok(())
}

fn write_scalar(tensor: &Tensor, index: usize, text: &mut String) {
    fn at<T: tensorfleet_tensor::Element>(tensor: &Tensor, index: usize) -> Option<&T> {
        tensor.slice::<T>().ok()?.get(index)
    }
    let single = match tensor.dtype() {
        DType::F32 => at::<f32>(tensor, index).copied(),
        DType::F16 => at::<f16>(tensor, index).map(|value| value.to_f32()),
        DType::BF16 => at::<bf16>(tensor, index).map(|value| value.to_f32()),
        DType::F64 => {
            if let Some(value) = at::<f64>(tensor, index) {
                text.push_str(&number(*value, [15, 17], |text| {
                    text.parse::<f64>() == Ok(*value)
                }));
            }
            return;
        }
        DType::String => {
            if let Some(value) = at::<TString>(tensor, index) {
                text.push('"');
                escape(value, text);
                text.push('"');
            }
            return;
        }
        DType::C64 | DType::C128 => {
            text.push('?');
            return;
        }
        _ => {
            let _ = write_element(tensor, index, text);
            return;
        }
    };
    if let Some(value) = single {
        text.push_str(&number(f64::from(value), [6, 9], |text| {
            text.parse::<f32>() == Ok(value)
        }));
    }
}

/// As in C, but for characters beyond ASCII, which stay.
fn escape(value: &[u8], text: &mut String) {
    for character in String::from_utf8_lossy(value).chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '"' | '\'' | '\\' => text.extend(['\\', character]),
            '\0'..' ' | '\x7f' => {
                let _ = write!(text, "\\{:03o}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
}

/// As C's `%g` with the first number of digits if that reads back as the same value, else with the second.
fn number(value: f64, digits: [usize; 2], reads_back: impl Fn(&str) -> bool) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let short = shortest(value, digits[0]);
    if reads_back(&short) {
        return short;
    }
    shortest(value, digits[1])
}
