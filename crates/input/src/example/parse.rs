//! Serialized Examples become tensors, one Example at a time or a batch at once.
//!
//! All messages are checked before memory is taken for their values; each value is copied once.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use tensorfleet_proto::Example;
use tensorfleet_proto::feature::Kind;
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{DType, Element as Value, Shape, TString, Tensor};

use super::feature_error;
use super::spec::{ExampleSpec, Feature, Layout};
use crate::element::{Element, Names};

/// Says where record `n` of those that are parsed together comes from.
pub(super) type Place<'a> = &'a dyn Fn(usize) -> String;

/// An [`ExampleSpec`], checked.
#[derive(Clone)]
pub(super) struct Parser {
    spec: Arc<ExampleSpec>,
    names: Names,
}

impl Parser {
    pub(super) fn new(spec: ExampleSpec) -> Result<Parser> {
        spec.check()?;
        Ok(Parser {
            names: spec.components().into(),
            spec: Arc::new(spec),
        })
    }

    /// The element of one Example.
    pub(super) fn parse_one(&self, serialized: &TString, place: Place<'_>) -> Result<Element> {
        self.parse(std::slice::from_ref(serialized), Batch::One, place)
    }

    /// The element of a batch of Examples.
    pub(super) fn parse_batch(&self, serialized: &[TString], place: Place<'_>) -> Result<Element> {
        self.parse(serialized, Batch::Many, place)
    }

    fn parse(&self, serialized: &[TString], batch: Batch, place: Place<'_>) -> Result<Element> {
        let examples = serialized.iter().enumerate();
        let examples = examples.map(|(row, bytes)| decode(bytes, row, place));
        let examples = examples.collect::<Result<Vec<Example>>>()?;
        let mut tensors = Vec::with_capacity(self.names.len());
        for feature in &self.spec.features {
            let column = Column {
                feature,
                examples: &examples,
                batch,
                place,
            };
            match feature.dtype {
                DType::F32 => column.parse::<f32>(&mut tensors)?,
                DType::I64 => column.parse::<i64>(&mut tensors)?,
                _ => column.parse::<TString>(&mut tensors)?,
            }
        }
        Ok(Element::with_names(tensors, Some(self.names.clone())))
    }
}

fn decode(bytes: &TString, row: usize, place: Place<'_>) -> Result<Example> {
    // Decoding shares the bytes of large Examples: their string features are not copied.
    Example::decode(Bytes::from(bytes)).map_err(|error| {
        invalid_argument!(
            "{}: no tf.train.Example: {error}; were the records written as Examples?",
            place(row)
        )
    })
}

/// Whether the result has a dimension for the Examples.
#[derive(Clone, Copy, PartialEq)]
enum Batch {
    One,
    Many,
}

impl Batch {
    /// The shape of a row, with the dimension of the batch before it.
    fn shape(self, rows: usize, row: &[i64]) -> Result<Shape> {
        match self {
            Batch::One => Shape::new(row),
            Batch::Many => Shape::vector(rows).concat(row),
        }
    }
}

/// A type that features have values of.
trait Listed: Value + PartialEq {
    /// The values, if they are of this type.
    fn list(kind: &Kind) -> Option<Cow<'_, [Self]>>;
}

impl Listed for f32 {
    fn list(kind: &Kind) -> Option<Cow<'_, [f32]>> {
        match kind {
            Kind::FloatList(list) => Some(Cow::Borrowed(&list.value)),
            _ => None,
        }
    }
}

impl Listed for i64 {
    fn list(kind: &Kind) -> Option<Cow<'_, [i64]>> {
        match kind {
            Kind::Int64List(list) => Some(Cow::Borrowed(&list.value)),
            _ => None,
        }
    }
}

impl Listed for TString {
    fn list(kind: &Kind) -> Option<Cow<'_, [TString]>> {
        match kind {
            Kind::BytesList(list) => Some(list.value.iter().map(TString::from).collect()),
            _ => None,
        }
    }
}

fn dtype_of(kind: &Kind) -> DType {
    match kind {
        Kind::BytesList(_) => DType::String,
        Kind::FloatList(_) => DType::F32,
        Kind::Int64List(_) => DType::I64,
    }
}

/// One feature of all Examples.
struct Column<'a> {
    feature: &'a Feature,
    examples: &'a [Example],
    batch: Batch,
    place: Place<'a>,
}

impl<'a> Column<'a> {
    fn parse<T: Listed>(&self, out: &mut Vec<Tensor>) -> Result<()> {
        match &self.feature.layout {
            Layout::Fixed { dims, default } => {
                out.push(self.fixed::<T>(dims, default.as_ref())?);
            }
            Layout::Padded => out.push(self.padded::<T>()?),
            Layout::Sparse => out.extend(self.sparse::<T>()?),
        }
        Ok(())
    }

    /// The values of each Example; `None` where it does not have the feature.
    fn rows<T: Listed>(&self) -> Result<Vec<Option<Cow<'a, [T]>>>> {
        let rows = self.examples.iter().enumerate();
        rows.map(|(row, example)| {
            let features = example.features.as_ref();
            let found = features.and_then(|features| features.feature.get(&self.feature.name));
            // A feature without a kind says as much as none.
            let Some(kind) = found.and_then(|found| found.kind.as_ref()) else {
                return Ok(None);
            };
            T::list(kind).map(Some).ok_or_else(|| {
                let (is, asked) = (dtype_of(kind), self.feature.dtype);
                self.error(
                    row,
                    invalid_argument!(
                        "it is {is}, asked for as {asked}: ask for {is} and convert it by map"
                    ),
                )
            })
        })
        .collect()
    }

    fn fixed<T: Listed>(&self, dims: &[i64], default: Option<&Tensor>) -> Result<Tensor> {
        let default = default.map(Tensor::slice::<T>).transpose()?;
        let row_shape = Shape::new(dims)?;
        let rows = self.rows::<T>()?;
        let mut filled = Vec::with_capacity(rows.len());
        for (row, values) in rows.into_iter().enumerate() {
            let Some(values) = values.or(default.map(Cow::Borrowed)) else {
                return Err(self.error(row, self.missing(row)));
            };
            if values.len() != row_shape.elements() {
                return Err(self.error(
                    row,
                    invalid_argument!(
                        "it has {} values, shape {row_shape} takes {}: correct the shape, or ask for it as padded or sparse",
                        values.len(),
                        row_shape.elements()
                    ),
                ));
            }
            filled.push(values);
        }
        let mut out = Tensor::new(T::DTYPE, self.batch.shape(filled.len(), dims)?)?;
        place_rows(out.slice_mut::<T>()?, row_shape.elements(), &filled);
        Ok(out)
    }

    fn padded<T: Listed>(&self) -> Result<Tensor> {
        let rows = self.rows::<T>()?;
        let rows: Vec<Cow<'_, [T]>> = rows.into_iter().map(Option::unwrap_or_default).collect();
        let longest = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let shape = self.batch.shape(rows.len(), &[longest as i64])?;
        let mut out = Tensor::zeros(T::DTYPE, shape)?;
        place_rows(out.slice_mut::<T>()?, longest, &rows);
        Ok(out)
    }

    /// Indices, values and shape.
    fn sparse<T: Listed>(&self) -> Result<[Tensor; 3]> {
        let rows = self.rows::<T>()?;
        let rows: Vec<Cow<'_, [T]>> = rows.into_iter().map(Option::unwrap_or_default).collect();
        let longest = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for (row, row_values) in rows.iter().enumerate() {
            for (column, value) in row_values.iter().enumerate() {
                if self.batch == Batch::Many {
                    indices.push(row as i64);
                }
                indices.push(column as i64);
                values.push(value.clone());
            }
        }
        let shape = match self.batch {
            Batch::One => Tensor::vector(&[longest as i64]),
            Batch::Many => Tensor::vector(&[rows.len() as i64, longest as i64]),
        };
        let index_shape = Shape::matrix(values.len(), shape.elements())?;
        let values = Tensor::from_vec(Shape::vector(values.len()), values)?;
        Ok([Tensor::from_vec(index_shape, indices)?, values, shape])
    }

    fn missing(&self, row: usize) -> Status {
        let features = self.examples.get(row).and_then(|e| e.features.as_ref());
        let mut names: Vec<&str> = features
            .map(|features| features.feature.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let more = if names.len() > 20 { ", …" } else { "" };
        names.truncate(20);
        invalid_argument!(
            "the Example does not have it, but has [{}{more}]: correct the name, or give a default by fixed_or",
            names.join(", ")
        )
    }

    fn error(&self, row: usize, what: Status) -> Status {
        feature_error(&(self.place)(row), &self.feature.name, what)
    }
}

/// Puts each row to the front of its stretch of `len` values.
fn place_rows<T: Clone>(out: &mut [T], len: usize, rows: &[Cow<'_, [T]>]) {
    if len == 0 {
        return;
    }
    for (target, row) in out.chunks_exact_mut(len).zip(rows) {
        for (target, value) in target.iter_mut().zip(row.iter()) {
            target.clone_from(value);
        }
    }
}

#[cfg(test)]
mod tests;
