//! `DecodeJSONExample`: Examples out of JSON, as protocol buffers map it.
//!
//! TensorFlow: DecodeJSONExample(json_examples: string) -> binary_examples: string, of the same shape. Names of fields may be
//! `int64List` or `int64_list`, int64 is a number or a string, bytes are base64, null is as good as nothing.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use tensorfleet_checkpoint::coding::put_varint;
use tensorfleet_graph::example::{ex, ex_err, strs};
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{TString, Tensor};

use super::PARSE;

pub(crate) static OP: OpDef = OpDef {
    name: "DecodeJSONExample",
    inputs: &["json_examples: string"],
    outputs: &["binary_examples: string"],
    infer: infer::same_as_first,
    kernels: &[cpu(&[], build)],
    examples: &[
        ex(
            "each kind of feature, and none",
            &[strs(
                &[2, 2],
                &[
                    r#"{"features": {"feature": {"i": {"int64List": {"value": ["7", 1]}}}}}"#,
                    r#"{"features": {"feature": {"f": {"float_list": {"value": [2.0, "3"]}}}}}"#,
                    r#"{"features": {"feature": {"s": {"bytesList": {"value": ["eHk=", ""]}}}}}"#,
                    r#"{"features": null}"#,
                ],
            )],
            &[strs(
                &[2, 2],
                &[
                    "\n\r\n\x0b\n\x01i\x12\x06\x1a\x04\x08\x07\x08\x01",
                    "\n\x13\n\x11\n\x01f\x12\x0c\x12\n\r\x00\x00\x00@\r\x00\x00@@",
                    "\n\x0f\n\r\n\x01s\x12\x08\n\x06\n\x02xy\n\x00",
                    "",
                ],
            )],
        ),
        ex_err(
            "no JSON",
            &[],
            &[strs(&[1], &["{]"])],
            Code::InvalidArgument,
            "Error while parsing JSON: ",
        ),
        ex_err(
            "no such field",
            &[],
            &[strs(&[1], &[r#"{"feature": {}}"#])],
            Code::InvalidArgument,
            "Error while parsing JSON: ",
        ),
        ex_err(
            "no such number",
            &[],
            &[strs(
                &[],
                &[r#"{"features": {"feature": {"i": {"int64List": {"value": [1.5]}}}}}"#],
            )],
            Code::InvalidArgument,
            "Error while parsing JSON: ",
        ),
    ],
    ..PARSE
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let encoded = input.slice::<TString>()?.iter().map(|text| {
            let example = example(text)
                .map_err(|what| invalid_argument!("Error while parsing JSON: {what}"))?;
            Ok(TString::from(example))
        });
        let encoded = encoded.collect::<Result<Vec<TString>>>()?;
        let output = Tensor::from_vec(input.shape().clone(), encoded)?;
        ctx.set(0, output);
        Ok(())
    })
}

/// The bytes of a message, or what is wrong, in words. Numbers are not packed, as TensorFlow leaves them.
type Encoded = std::result::Result<Vec<u8>, String>;

fn example(text: &[u8]) -> Encoded {
    let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    message(&value, |name, value| match name {
        "features" => Ok((1, features(value)?)),
        other => Err(unknown(other)),
    })
}

fn features(value: &Value) -> Encoded {
    let mut out = Vec::new();
    for (name, map) in fields(value)? {
        if name != "feature" {
            return Err(unknown(name));
        }
        let Value::Object(map) = map else {
            return Err(format!("expected an object, got {map}"));
        };
        for (key, value) in map {
            let mut entry = Vec::new();
            put(&mut entry, 1, key.as_bytes());
            if !value.is_null() {
                put(&mut entry, 2, &feature(value)?);
            }
            put(&mut out, 1, &entry);
        }
    }
    Ok(out)
}

fn feature(value: &Value) -> Encoded {
    if fields(value)?.count() > 1 {
        return Err("a feature has two kinds of values".to_owned());
    }
    message(value, |name, value| match name {
        "bytesList" | "bytes_list" => Ok((1, list(value, bytes)?)),
        "floatList" | "float_list" => Ok((2, list(value, float)?)),
        "int64List" | "int64_list" => Ok((3, list(value, int)?)),
        other => Err(unknown(other)),
    })
}

/// A message whose fields are messages.
fn message(
    value: &Value,
    field: impl Fn(&str, &Value) -> std::result::Result<(u8, Vec<u8>), String>,
) -> Encoded {
    let mut out = Vec::new();
    for (name, value) in fields(value)? {
        let (number, bytes) = field(name, value)?;
        put(&mut out, number, &bytes);
    }
    Ok(out)
}

/// A list of values; `read` writes one with its tag.
fn list(value: &Value, read: fn(&Value, &mut Vec<u8>) -> Option<()>) -> Encoded {
    let mut out = Vec::new();
    for (name, value) in fields(value)? {
        if name != "value" {
            return Err(unknown(name));
        }
        let items = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for item in items {
            read(item, &mut out).ok_or_else(|| format!("invalid value: {item}"))?;
        }
    }
    Ok(out)
}

/// The fields of a message that are not null.
fn fields(value: &Value) -> std::result::Result<impl Iterator<Item = (&String, &Value)>, String> {
    match value {
        Value::Object(map) => Ok(map.iter().filter(|(_, value)| !value.is_null())),
        other => Err(format!("expected an object, got {other}")),
    }
}

fn unknown(name: &str) -> String {
    format!("no such field: '{name}'")
}

/// Appends a field of bytes.
fn put(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn int(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    let int = match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            // 1e3 and 2.0 are integers, too.
            let float = number.as_f64()?;
            (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }?;
    out.push(1 << 3);
    put_varint(out, int as u64);
    Some(())
}

fn float(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    let float = match value {
        Value::Number(number) => number.as_f64().map(|float| float as f32),
        // Only what is written as infinite may be so.
        Value::String(text) => match text.as_str() {
            "Infinity" => return fixed(f32::INFINITY, out),
            "-Infinity" => return fixed(f32::NEG_INFINITY, out),
            "NaN" => return fixed(f32::NAN, out),
            text => text.parse().ok(),
        },
        _ => None,
    };
    fixed(float.filter(|float| float.is_finite())?, out)
}

fn fixed(float: f32, out: &mut Vec<u8>) -> Option<()> {
    out.push(1 << 3 | 5);
    out.extend_from_slice(&float.to_le_bytes());
    Some(())
}

fn bytes(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    const EITHER: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, EITHER);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, EITHER);
    let text = value.as_str()?;
    let decoded = STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text));
    put(out, 1, &decoded.ok()?);
    Some(())
}
