//! `AsString`: numbers and bools as text, formatted as C's printf does.
//!
//! TensorFlow: AsString(input: T) -> output: string, with precision, scientific, shortest, width, fill.

use tensorfleet_graph::example::{bools, c64s, ex, ex_attrs, ex_err, f32s, i32s, script, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument, unimplemented};
use tensorfleet_tensor::{Complex32, Complex64, DType, TString, Tensor, Variant, bf16, f16};

use super::{digits, texts};
use crate::data_flow::variant_number;

pub(crate) static OP: OpDef = OpDef {
    name: "AsString",
    inputs: &["input: T"],
    outputs: &["output: string"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, complex128, bool, variant, string}",
        "precision: int = -1",
        "scientific: bool = false",
        "shortest: bool = false",
        "width: int = -1",
        "fill: string = ''",
    ],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("text is not differentiated"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "integers",
            &[i32s(&[2], &[1, -42])],
            &[strs(&[2], &["1", "-42"])],
        ),
        ex(
            "floats",
            &[f32s(&[2], &[1.5, -0.1])],
            &[strs(&[2], &["1.500000", "-0.100000"])],
        ),
        ex(
            "bools",
            &[bools(&[2], &[true, false])],
            &[strs(&[2], &["true", "false"])],
        ),
        ex(
            "complex",
            &[c64s(&[1], &[(1.0, -2.5)])],
            &[strs(&[1], &["(1.000000,-2.500000)"])],
        ),
        ex(
            "strings",
            &[strs(&[1], &["as it is"])],
            &[strs(&[1], &["as it is"])],
        ),
        ex_attrs(
            "precision",
            &[("precision", "2")],
            &[f32s(&[1], &[2.71875])],
            &[strs(&[1], &["2.72"])],
        ),
        ex_attrs(
            "scientific",
            &[("scientific", "true")],
            &[f32s(&[2], &[1234.5, 0.0])],
            &[strs(&[2], &["1.234500e+03", "0.000000e+00"])],
        ),
        ex_attrs(
            "shortest",
            &[("shortest", "true")],
            &[f32s(&[4], &[0.5, 1e10, 100000.0, 0.00001])],
            &[strs(&[4], &["0.5", "1e+10", "100000", "1e-05"])],
        ),
        ex_attrs(
            "width and fill",
            &[("width", "5"), ("fill", "'0'")],
            &[i32s(&[2], &[42, -7])],
            &[strs(&[2], &["00042", "-0007"])],
        ),
        ex_attrs(
            "to the left",
            &[("width", "4"), ("fill", "'-'")],
            &[i32s(&[2], &[42, -7])],
            &[strs(&[2], &["42  ", "-7  "])],
        ),
        ex_attrs(
            "signs",
            &[("width", "4"), ("fill", "'+'")],
            &[i32s(&[3], &[42, -7, 0])],
            &[strs(&[3], &[" +42", "  -7", "  +0"])],
        ),
        ex_err(
            "digits of integers",
            &[("precision", "2")],
            &[i32s(&[1], &[1])],
            Code::InvalidArgument,
            "precision not supported for datatype int32",
        ),
        ex_err(
            "style of integers",
            &[("shortest", "true")],
            &[i32s(&[1], &[1])],
            Code::InvalidArgument,
            "scientific and shortest format not supported for datatype int32",
        ),
        ex_err(
            "fill",
            &[("fill", "'x'")],
            &[i32s(&[1], &[1])],
            Code::InvalidArgument,
            "Fill argument not supported",
        ),
        ex_err(
            "two styles",
            &[("scientific", "true"), ("shortest", "true")],
            &[f32s(&[1], &[1.0])],
            Code::InvalidArgument,
            "both",
        ),
    ],
    scripts: &[script(
        "variants",
        "shape = int32[]{-1}
         list = EmptyTensorList(shape, shape) {element_dtype=DT_FLOAT}
         map = EmptyTensorMap()
         none = OptionalNone()
         one = float[]{1}
         some = OptionalFromValue([one])
         a = AsString(list)\nb = AsString(map)\nc = AsString(none)\nd = AsString(some)",
        &["fetch a, b, c, d => ?"],
    )],
    ..OpDef::BLANK
};

#[derive(Clone, Copy)]
enum Style {
    Fixed,
    Scientific,
    Shortest,
}

#[derive(Clone)]
struct Format {
    style: Style,
    precision: Option<usize>,
    width: usize,
    /// One of printf's flags, or none.
    fill: u8,
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let dtype = attrs.dtype("T")?;
    let (scientific, shortest) = (attrs.bool("scientific")?, attrs.bool("shortest")?);
    if scientific && shortest {
        return Err(invalid_argument!(
            "Cannot select both scientific and shortest notation"
        ));
    }
    let fill = attrs.bytes("fill")?;
    ensure!(
        fill.len() <= 1,
        invalid_argument,
        "Fill string must be one or fewer characters"
    );
    let fill = fill.first().copied().unwrap_or(0);
    ensure!(
        b"\0 +-0#".contains(&fill),
        invalid_argument,
        "Fill argument not supported: \"{}\"",
        char::from(fill)
    );
    if !(dtype == DType::String || dtype.is_floating() || dtype.is_complex()) {
        ensure!(
            !(scientific || shortest),
            invalid_argument,
            "scientific and shortest format not supported for datatype {dtype}"
        );
        ensure!(
            attrs.int("precision")? < 0,
            invalid_argument,
            "precision not supported for datatype {dtype}"
        );
    }
    let format = Format {
        style: if scientific {
            Style::Scientific
        } else if shortest {
            Style::Shortest
        } else {
            Style::Fixed
        },
        precision: usize::try_from(attrs.int("precision")?).ok(),
        width: usize::try_from(attrs.int("width")?).unwrap_or(0),
        fill,
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let write = writer(input, &format)?;
        let out = texts(ctx.par(), input.shape().clone(), &|at, text| {
            write(at, text);
            Ok(())
        })?;
        drop(write);
        ctx.set(0, out);
        Ok(())
    })
}

/// What appends an element as text.
type Writer<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + Sync + 'a>;

fn writer<'a>(input: &'a Tensor, format: &'a Format) -> Result<Writer<'a>> {
    macro_rules! each {
        ($type:ty, $write:expr) => {{
            let values = input.slice::<$type>()?;
            Box::new(move |at, text| {
                let write: fn(&Format, $type, &mut Vec<u8>) = $write;
                write(format, values[at].clone(), text);
            })
        }};
    }
    Ok(match input.dtype() {
        DType::Variant => each!(Variant, |_, v, text| {
            text.extend_from_slice(variant_number::text(&v).as_bytes());
        }),
        DType::F32 => each!(f32, |f, v, text| f.float(f64::from(v), text)),
        DType::F64 => each!(f64, Format::float),
        DType::F16 => each!(f16, |f, v, text| f.float(v.to_f64(), text)),
        DType::BF16 => each!(bf16, |f, v, text| f.float(v.to_f64(), text)),
        DType::I8 => each!(i8, |f, v, text| f.int(v < 0, v.unsigned_abs().into(), text)),
        DType::I16 => each!(i16, |f, v, text| f.int(
            v < 0,
            v.unsigned_abs().into(),
            text
        )),
        DType::I32 => each!(i32, |f, v, text| f.int(
            v < 0,
            v.unsigned_abs().into(),
            text
        )),
        DType::I64 => each!(i64, |f, v, text| f.int(v < 0, v.unsigned_abs(), text)),
        DType::U8 => each!(u8, |f, v, text| f.int(false, v.into(), text)),
        DType::U16 => each!(u16, |f, v, text| f.int(false, v.into(), text)),
        DType::U32 => each!(u32, |f, v, text| f.int(false, v.into(), text)),
        DType::U64 => each!(u64, |f, v, text| f.int(false, v, text)),
        DType::Bool => each!(bool, |_, v, text| {
            text.extend_from_slice(if v { b"true" } else { b"false" });
        }),
        DType::C64 => each!(Complex32, |f, v, text| {
            f.complex(f64::from(v.re), f64::from(v.im), text);
        }),
        DType::C128 => each!(Complex64, |f, v, text| f.complex(v.re, v.im, text)),
        DType::String => each!(TString, |f, v, text| {
            text.extend_from_slice(String::from_utf8_lossy(&v).as_bytes());
            f.pad(0, text);
        }),
        other => {
            return Err(unimplemented!(
                "tensors of {other} cannot be written as text"
            ));
        }
    })
}

impl Format {
    fn int(&self, is_negative: bool, value: u64, text: &mut Vec<u8>) {
        if is_negative {
            text.push(b'-');
        }
        digits::integer(value, text);
        self.pad(0, text);
    }

    fn complex(&self, re: f64, im: f64, text: &mut Vec<u8>) {
        text.push(b'(');
        self.float(re, text);
        text.push(b',');
        self.float(im, text);
        text.push(b')');
    }

    fn float(&self, value: f64, text: &mut Vec<u8>) {
        let start = text.len();
        let precision = self.precision.unwrap_or(6);
        if value.is_nan() {
            text.extend_from_slice(b"nan");
        } else if value.is_infinite() {
            text.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
        } else {
            match self.style {
                Style::Fixed => digits::fixed(value, precision, text),
                Style::Scientific => {
                    text.extend_from_slice(scientific(value, precision).as_bytes());
                }
                Style::Shortest => {
                    text.extend_from_slice(shortest(value, precision.max(1)).as_bytes());
                }
            }
        }
        self.pad(start, text);
    }

    /// Sign and width of what begins at `start`, as printf's flags want them.
    fn pad(&self, start: usize, text: &mut Vec<u8>) {
        let first = text.get(start).copied().unwrap_or(0);
        if first.is_ascii_digit() && matches!(self.fill, b'+' | b' ') {
            text.insert(start, self.fill);
        }
        let missing = self.width.saturating_sub(text.len() - start);
        if missing == 0 {
            return;
        }
        let (at, filler) = match self.fill {
            b'0' => (start + usize::from(first == b'-'), b'0'),
            b'-' => (text.len(), b' '),
            _ => (start, b' '),
        };
        text.splice(at..at, std::iter::repeat_n(filler, missing));
    }
}

/// `%e`: the exponent has a sign and two digits at least.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(rest) => ('-', rest),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

/// As [`shortest`], with C's names for what is no number.
pub(crate) fn general(value: f64, precision: usize) -> String {
    match value {
        value if value.is_nan() => "nan".to_owned(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        value => shortest(value, precision),
    }
}

/// `%g`: whichever of the two forms is shorter, without trailing zeros.
pub(super) fn shortest(value: f64, precision: usize) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let rounded = format!("{value:.*e}", precision - 1);
    let exponent: i32 = rounded
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if exponent < -4 || exponent >= precision as i32 {
        let text = scientific(value, precision - 1);
        let (digits, rest) = text.split_at(text.find('e').unwrap_or(text.len()));
        return format!("{}{rest}", trim(digits));
    }
    let decimals = usize::try_from(precision as i32 - 1 - exponent).unwrap_or(0);
    trim(&format!("{value:.decimals$}"))
}
