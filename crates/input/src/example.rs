//! `tf.train.Example`: messages of named features, read into elements and written from them.

mod parse;
mod spec;
mod write;

use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{DType, TString, Tensor};

pub use spec::ExampleSpec;
pub use write::{encode_example, write_examples};

use crate::dataset::Dataset;
use crate::element::Element;
use crate::files::{Compression, Paths, open_records};
use parse::Parser;

impl Dataset {
    /// The Examples in TFRecord files, one element each. Errors name the file, the record and the feature.
    ///
    /// ```
    /// use tensorfleet_input::{Dataset, Element, ExampleSpec, write_examples};
    /// use tensorfleet_tensor::{DType, Tensor};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("some.tfrecord").display().to_string();
    ///
    /// let examples = (0..3).map(|i| Ok(Element::named([
    ///     ("x", Tensor::vector(&[i as f32, 0.5])),
    ///     ("label", Tensor::scalar(i as i64)),
    /// ])));
    /// write_examples(&path, examples)?;
    ///
    /// let spec = ExampleSpec::new().fixed("x", DType::F32, &[2]).fixed("label", DType::I64, &[]);
    /// for example in &Dataset::from_examples(&path, spec)? {
    ///     let example = example?;
    ///     assert_eq!(example.get("x")?.shape().dims(), [2]);
    /// }
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    ///
    /// For many small Examples it is faster to parse whole batches: [`from_records`](Dataset::from_records), then
    /// [`batch`](Dataset::batch), then [`parse_examples`](Dataset::parse_examples).
    pub fn from_examples(paths: impl Into<Paths>, spec: ExampleSpec) -> Result<Dataset> {
        let paths = paths.into().resolve()?;
        let parser = Parser::new(spec)?;
        Ok(Dataset::of_files(paths, move |path| {
            let records = open_records(path, Compression::ByName)?;
            let (parser, path) = (parser.clone(), path.to_owned());
            Ok(Box::new(records.enumerate().map(
                move |(number, record)| {
                    let place = |_| format!("{path}: record {number}");
                    parser.parse_one(&record?.into(), &place)
                },
            )))
        }))
    }

    /// Parses the Examples in the first component: a string, or a vector of strings for a whole batch. The features
    /// take the place of the components.
    pub fn parse_examples(self, spec: ExampleSpec) -> Result<Dataset> {
        let parser = Parser::new(spec)?;
        Ok(self.then(move |stream| {
            let parser = parser.clone();
            stream.enumerate().map(move |(number, element)| {
                let element = element?;
                let serialized = strings(&element).map_err(|status| {
                    status.context(format!("parse_examples: element {number}"))
                })?;
                match serialized.rank() {
                    0 => {
                        let place = |_| format!("record {number}");
                        parser.parse_one(&serialized.to_scalar::<TString>()?, &place)
                    }
                    _ => {
                        let place = |row| format!("batch {number}, record {row} of it");
                        parser.parse_batch(serialized.slice::<TString>()?, &place)
                    }
                }
            })
        }))
    }
}

/// The component that holds serialized Examples.
fn strings(element: &Element) -> Result<&Tensor> {
    let first = element.at(0)?;
    if first.dtype() != DType::String || first.rank() > 1 {
        return Err(invalid_argument!(
            "its first component is {} of shape {}: a string or a vector of strings was expected, such as from_records gives",
            first.dtype(),
            first.shape()
        ));
    }
    Ok(first)
}

/// What an error is about.
fn feature_error(place: &str, feature: &str, what: Status) -> Status {
    what.context(format!("{place}: feature \"{feature}\""))
}
