//! Elements written as Examples.

use bytes::Bytes;
use prost::Message;
use tensorfleet_checkpoint::fs;
use tensorfleet_checkpoint::record::RecordWriter;
use tensorfleet_proto::feature::Kind;
use tensorfleet_proto::{BytesList, Example, Feature, Features, FloatList, Int64List};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, TString, Tensor};

use crate::element::Element;

/// The bytes of a `tf.train.Example` with the components of an element as features. Integers and bools become int64;
/// shapes are not kept.
///
/// ```
/// use tensorfleet_input::{Element, encode_example};
/// use tensorfleet_tensor::Tensor;
///
/// let bytes = encode_example(&Element::named([("label", Tensor::scalar(3i64))]))?;
/// assert!(bytes.windows(5).any(|part| part == b"label"));
/// # Ok::<(), tensorfleet_tensor::Status>(())
/// ```
pub fn encode_example(element: &Element) -> Result<Bytes> {
    let mut features = Features::default();
    for (name, tensor) in element.pairs() {
        if name.is_empty() {
            return Err(invalid_argument!(
                "a component without a name cannot be a feature: make the element by Element::named"
            ));
        }
        let kind = kind(tensor).map_err(|status| status.context(format!("feature \"{name}\"")))?;
        let feature = Feature { kind: Some(kind) };
        if features.feature.insert(name.to_owned(), feature).is_some() {
            return Err(invalid_argument!("feature \"{name}\" is there twice"));
        }
    }
    let example = Example {
        features: Some(features),
    };
    Ok(example.encode_to_vec().into())
}

/// Writes elements as Examples into a TFRecord file; gives their number.
pub fn write_examples(
    path: &str,
    elements: impl IntoIterator<Item = Result<Element>>,
) -> Result<u64> {
    let mut writer = RecordWriter::create(&*fs::for_path(path)?, path)?;
    let mut written = 0;
    for element in elements {
        let bytes = encode_example(&element?)
            .map_err(|status| status.context(format!("{path}: record {written}")))?;
        writer.write(&bytes)?;
        written += 1;
    }
    writer.close()?;
    Ok(written)
}

fn kind(tensor: &Tensor) -> Result<Kind> {
    let integers = |value: Vec<i64>| Ok(Kind::Int64List(Int64List { value }));
    match tensor.dtype() {
        DType::F32 => Ok(Kind::FloatList(FloatList {
            value: tensor.slice::<f32>()?.to_vec(),
        })),
        DType::String => Ok(Kind::BytesList(BytesList {
            value: tensor.slice::<TString>()?.iter().map(Bytes::from).collect(),
        })),
        DType::I64 => integers(tensor.slice::<i64>()?.to_vec()),
        DType::I32 => integers(
            tensor
                .slice::<i32>()?
                .iter()
                .map(|v| i64::from(*v))
                .collect(),
        ),
        DType::U8 => integers(
            tensor
                .slice::<u8>()?
                .iter()
                .map(|v| i64::from(*v))
                .collect(),
        ),
        DType::Bool => integers(
            tensor
                .slice::<bool>()?
                .iter()
                .map(|v| i64::from(*v))
                .collect(),
        ),
        other => Err(invalid_argument!(
            "Examples have no {other}: convert it to float, int64 or string by map"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_has_no_place_in_an_example() {
        let check = |element: Element, word: &str| {
            let error = encode_example(&element).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        };
        check(Tensor::scalar(1i64).into(), "without a name");
        check(
            Element::named([("x", Tensor::scalar(1.0f64))]),
            "feature \"x\": Examples have no double",
        );
        let twice = [("x", Tensor::scalar(1i64)), ("x", Tensor::scalar(2i64))];
        check(Element::named(twice), "twice");
    }
}
