//! Tensors from and to JSON, and the values of `--feed`.

use std::borrow::Cow;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};
use serde_json::{Number, Value, json};
use tensorfleet_graph::text::parse_literal;
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

/// The tensor that a `--feed` value stands for, in the dtype that the graph wants.
pub(crate) fn parse_feed(text: &str, dtype: DType) -> Result<Tensor> {
    let tensor = if let Some(file) = text.strip_prefix('@') {
        let path = Path::new(file);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("npy") => crate::npy::read(path)?,
            Some("json") => {
                let source =
                    std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
                let value = serde_json::from_str(&quote_specials(&source, dtype));
                from_json(&value.with_context(|| format!("{file} is no JSON"))?, dtype)?
            }
            _ => bail!("{file}: only .npy and .json files can be fed"),
        }
    } else if let Ok(tensor) = parse_literal(text) {
        tensor
    } else {
        match serde_json::from_str::<Value>(&quote_specials(text, dtype)) {
            Ok(value) => from_json(&value, dtype)?,
            Err(_) if dtype == DType::String => Tensor::string(text.to_owned()),
            Err(error) => bail!(
                "'{text}' is neither JSON ({error}) nor a literal such as float[2]{{1, 2}} nor @file.npy"
            ),
        }
    };
    ensure!(
        tensor.dtype() == dtype,
        "the value is {}, the graph wants {dtype}",
        tensor.dtype()
    );
    Ok(tensor)
}

/// A tensor of nested arrays.
pub(crate) fn from_json(value: &Value, dtype: DType) -> Result<Tensor> {
    let mut dims = Vec::new();
    let mut inner = value;
    while let Value::Array(items) = inner {
        dims.push(items.len() as i64);
        match items.first() {
            Some(first) => inner = first,
            None => break,
        }
    }
    let mut leaves = Vec::new();
    flatten(value, &dims, &mut leaves)?;
    let shape = Shape::new(&dims)?;
    macro_rules! collect {
        ($convert:expr) => {
            Tensor::from_vec(
                shape,
                leaves
                    .iter()
                    .map(|leaf| $convert(leaf))
                    .collect::<Result<_>>()?,
            )?
        };
    }
    let float = |leaf: &&Value| {
        leaf.as_f64()
            .or_else(|| special(leaf))
            .with_context(|| format!("{leaf} is no number"))
    };
    let int = |leaf: &&Value| match (leaf.as_i64(), leaf.as_u64(), leaf.as_f64()) {
        (Some(value), _, _) => Ok(i128::from(value)),
        (None, Some(value), _) => Ok(i128::from(value)),
        // Whole, and beyond what JSON's integers are read into.
        (None, None, Some(value)) if value.abs() >= 2f64.powi(63) => Ok(value as i128),
        _ => bail!("{leaf} is no integer"),
    };
    macro_rules! ints {
        ($type:ty) => {
            collect!(|leaf| {
                let value = int(leaf)?;
                <$type>::try_from(value).with_context(|| {
                    format!(
                        "{value} is out of range: {dtype} is {} to {}",
                        <$type>::MIN,
                        <$type>::MAX
                    )
                })
            })
        };
    }
    Ok(match dtype {
        DType::F32 => collect!(|leaf| float(leaf).map(|value| value as f32)),
        DType::F64 => collect!(float),
        DType::F16 => collect!(|leaf| float(leaf).map(f16::from_f64)),
        DType::BF16 => collect!(|leaf| float(leaf).map(bf16::from_f64)),
        DType::I8 => ints!(i8),
        DType::I16 => ints!(i16),
        DType::I32 => ints!(i32),
        DType::I64 => ints!(i64),
        DType::U8 => ints!(u8),
        DType::U16 => ints!(u16),
        DType::U32 => ints!(u32),
        DType::U64 => ints!(u64),
        DType::Bool => {
            collect!(|leaf: &&Value| leaf.as_bool().with_context(|| format!("{leaf} is no bool")))
        }
        DType::String => collect!(|leaf: &&Value| leaf
            .as_str()
            .map(|text| TString::copy_from_slice(text.as_bytes()))
            .with_context(|| format!("{leaf} is no string"))),
        other => bail!("tensors of {other} cannot be given as JSON"),
    })
}

/// JSON has no NaN and no infinities: they are written as strings.
fn special(leaf: &Value) -> Option<f64> {
    special_word(leaf.as_str()?)
}

fn special_word(word: &str) -> Option<f64> {
    match word.to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "inf" | "infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// On a command line they may stand without quotes, as `[1, nan]`.
fn quote_specials(text: &str, dtype: DType) -> Cow<'_, str> {
    if !dtype.is_floating() || text.contains('"') {
        return Cow::Borrowed(text);
    }
    let is_edge = |c: char| c == '[' || c == ']' || c == ',' || c.is_whitespace();
    text.split_inclusive(is_edge)
        .map(|piece| match piece.trim_end_matches(is_edge) {
            word if special_word(word).is_some() => format!("\"{word}\"{}", &piece[word.len()..]),
            _ => piece.to_owned(),
        })
        .collect::<String>()
        .into()
}

fn flatten<'a>(value: &'a Value, dims: &[i64], leaves: &mut Vec<&'a Value>) -> Result<()> {
    match (value, dims) {
        (Value::Array(items), [dim, rest @ ..]) => {
            ensure!(
                items.len() as i64 == *dim,
                "the arrays are ragged: {} items where {dim} were expected",
                items.len()
            );
            items
                .iter()
                .try_for_each(|item| flatten(item, rest, leaves))
        }
        (Value::Array(_), []) | (_, [_, ..]) => bail!("the arrays are nested unevenly"),
        (leaf, []) => {
            leaves.push(leaf);
            Ok(())
        }
    }
}

/// A tensor as nested arrays.
pub(crate) fn to_json(tensor: &Tensor) -> Result<Value> {
    macro_rules! leaves {
        ($type:ty, $convert:expr) => {
            tensor
                .slice::<$type>()?
                .iter()
                .map($convert)
                .collect::<Vec<Value>>()
        };
    }
    let leaves = match tensor.dtype() {
        DType::F32 => leaves!(f32, |v| number(f64::from(*v))),
        DType::F64 => leaves!(f64, |v| number(*v)),
        DType::F16 => leaves!(f16, |v| number(v.to_f64())),
        DType::BF16 => leaves!(bf16, |v| number(v.to_f64())),
        DType::I8 => leaves!(i8, |v| json!(v)),
        DType::I16 => leaves!(i16, |v| json!(v)),
        DType::I32 => leaves!(i32, |v| json!(v)),
        DType::I64 => leaves!(i64, |v| json!(v)),
        DType::U8 => leaves!(u8, |v| json!(v)),
        DType::U16 => leaves!(u16, |v| json!(v)),
        DType::U32 => leaves!(u32, |v| json!(v)),
        DType::U64 => leaves!(u64, |v| json!(v)),
        DType::Bool => leaves!(bool, |v| json!(v)),
        DType::String => leaves!(TString, |v| json!(String::from_utf8_lossy(v))),
        DType::C64 => leaves!(Complex32, |v| json!([
            number(f64::from(v.re)),
            number(f64::from(v.im))
        ])),
        DType::C128 => leaves!(Complex64, |v| json!([number(v.re), number(v.im)])),
        other => bail!("tensors of {other} cannot be shown as JSON"),
    };
    let mut leaves = leaves.into_iter();
    Ok(nest(tensor.shape(), &mut leaves))
}

fn number(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => json!("NaN"),
        None if value > 0.0 => json!("Infinity"),
        None => json!("-Infinity"),
    }
}

fn nest(dims: &[i64], leaves: &mut impl Iterator<Item = Value>) -> Value {
    match dims {
        [] => leaves.next().unwrap_or(Value::Null),
        [dim, rest @ ..] => Value::Array((0..*dim).map(|_| nest(rest, leaves)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips() {
        let tensor = parse_feed("[[1, 2.5], [3, 4]]", DType::F32).unwrap();
        assert_eq!(tensor.shape().dims(), &[2, 2]);
        assert_eq!(to_json(&tensor).unwrap(), json!([[1.0, 2.5], [3.0, 4.0]]));
        assert_eq!(
            parse_feed("hello", DType::String)
                .unwrap()
                .to_scalar::<TString>()
                .unwrap(),
            TString::from("hello")
        );
        assert_eq!(
            parse_feed("int32[2]{1, 2}", DType::I32)
                .unwrap()
                .slice::<i32>()
                .unwrap(),
            &[1, 2]
        );
        assert_eq!(
            to_json(&Tensor::scalar(f32::INFINITY)).unwrap(),
            json!("Infinity")
        );
    }

    #[test]
    fn nan_and_infinities_need_no_quotes() {
        let values = |text: &str| {
            parse_feed(text, DType::F32)
                .unwrap()
                .slice::<f32>()
                .unwrap()
                .to_vec()
        };
        assert!(values("nan")[0].is_nan());
        assert_eq!(values("-inf"), [f32::NEG_INFINITY]);
        let mixed = values("[[1, NaN],[Infinity , -2]]");
        assert!(mixed[1].is_nan());
        assert_eq!((mixed[0], mixed[2], mixed[3]), (1.0, f32::INFINITY, -2.0));
        assert!(values("[\"NaN\", 1]")[0].is_nan());
        assert!(parse_feed("nan", DType::I32).is_err());
    }

    #[test]
    fn wrong_values_say_why() {
        let wrong = |text: &str, dtype| format!("{:#}", parse_feed(text, dtype).unwrap_err());
        assert!(wrong("[[1], [2, 3]]", DType::F32).contains("ragged"));
        assert!(wrong("[1, [2]]", DType::F32).contains("unevenly"));
        assert!(wrong("1.5", DType::I32).contains("no integer"));
        assert!(wrong("300", DType::U8).contains("300 is out of range: uint8 is 0 to 255"));
        assert!(wrong("99999999999999999999", DType::I64).contains("out of range: int64"));
        assert!(wrong("-1", DType::U64).contains("-1 is out of range"));
        assert!(wrong("18446744073709551615", DType::I64).contains("out of range: int64"));
        assert!(wrong("float[]{1}", DType::I32).contains("the graph wants int32"));
        assert!(wrong("what", DType::F32).contains("neither JSON"));
    }
}
