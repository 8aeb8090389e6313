//! Fields into tensors: which field is which column, and what its text means.

use std::sync::Arc;

use tensorfleet_status::{Result, Status, invalid_argument, not_found};
use tensorfleet_tensor::{DType, TString, Tensor};

use super::fields::Record;
use super::{Column, Csv};
use crate::element::{Element, Names};

/// Refuses dtypes that no field is read as.
pub(super) fn check_dtype(column: &str, dtype: DType) -> Result<()> {
    match dtype {
        DType::F32 | DType::F64 | DType::I32 | DType::I64 | DType::Bool | DType::String => Ok(()),
        other => Err(invalid_argument!(
            "column \"{column}\" is asked for as {other}: fields are read as float, double, int32, int64, bool or string; convert by map"
        )),
    }
}

/// The columns of one file.
pub(super) struct Columns {
    csv: Arc<Csv>,
    path: String,
    names: Names,
    /// For each wanted column, which one of the description it is and which field.
    wanted: Vec<(usize, usize)>,
    /// How many fields each record has.
    fields: usize,
}

impl Columns {
    /// `header` is the record with the names; `None` if there is none, or the file is empty.
    pub(super) fn new(csv: Arc<Csv>, path: &str, header: Option<&Record>) -> Result<Columns> {
        let mut wanted = Vec::new();
        let mut names = Vec::new();
        for (index, column) in csv.columns.iter().enumerate() {
            let Some(name) = &column.name else { continue };
            let field = match header {
                Some(header) => find(header, name).map_err(|status| {
                    status.context(format!("{path}:{}: column \"{name}\"", header.line))
                })?,
                None => index,
            };
            wanted.push((index, field));
            names.push(name.clone());
        }
        Ok(Columns {
            fields: header.map_or(csv.columns.len(), Record::len),
            names: names.into(),
            path: path.to_owned(),
            wanted,
            csv,
        })
    }

    /// The element of a record.
    pub(super) fn element(&self, record: &Record) -> Result<Element> {
        if record.len() != self.fields {
            let expected = if self.csv.header {
                "the header has"
            } else {
                "the Csv describes"
            };
            return Err(invalid_argument!(
                "{}:{}: the record has {} fields, {expected} {}; put fields with delimiters into quotes, and leave missing ones empty",
                self.path,
                record.line,
                record.len(),
                self.fields
            ));
        }
        let tensors = self.wanted.iter().map(|(column, field)| {
            let text = record.field(*field).unwrap_or_default();
            let Some(column) = self.csv.columns.get(*column) else {
                return Err(invalid_argument!("column {column} is not described"));
            };
            self.tensor(column, text)
                .map_err(|status| self.at(record.line, *field, column, status))
        });
        let tensors = tensors.collect::<Result<Vec<Tensor>>>()?;
        Ok(Element::with_names(tensors, Some(self.names.clone())))
    }

    fn tensor(&self, column: &Column, field: &[u8]) -> Result<Tensor> {
        if field.is_empty() || field == self.csv.na_value.as_bytes() {
            return column.default.clone().ok_or_else(|| {
                invalid_argument!("the field is empty; fill it, or give a default by column_or")
            });
        }
        if column.dtype == DType::String {
            return Ok(Tensor::string(TString::copy_from_slice(field)));
        }
        let text = std::str::from_utf8(field).unwrap_or("\u{fffd}").trim();
        let parsed = match column.dtype {
            DType::F32 => text.parse().ok().map(Tensor::scalar::<f32>),
            DType::F64 => text.parse().ok().map(Tensor::scalar::<f64>),
            DType::I32 => text.parse().ok().map(Tensor::scalar::<i32>),
            DType::I64 => text.parse().ok().map(Tensor::scalar::<i64>),
            _ => parse_bool(text).map(Tensor::scalar::<bool>),
        };
        parsed.ok_or_else(|| {
            invalid_argument!(
                "{} is no {}; correct the field, or ask for the column as string",
                shown(field),
                column.dtype
            )
        })
    }

    fn at(&self, line: u64, field: usize, column: &Column, what: Status) -> Status {
        let name = column.name.as_deref().unwrap_or_default();
        what.context(format!(
            "{}:{line}: column {} (\"{name}\")",
            self.path,
            field + 1
        ))
    }
}

/// Which field of the header has this name.
fn find(header: &Record, name: &str) -> Result<usize> {
    let matching = |(_, field): &(usize, &[u8])| *field == name.as_bytes();
    let mut found = header.fields().enumerate().filter(matching);
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (Some(_), Some(_)) => Err(invalid_argument!("the header has it twice; rename one")),
        _ => {
            let names: Vec<String> = header.fields().take(50).map(shown).collect();
            Err(not_found!(
                "the header does not have it, but has {}; correct the name, or say .without_header()",
                names.join(", ")
            ))
        }
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// A field as an error shows it.
fn shown(field: &[u8]) -> String {
    const MOST: usize = 60;
    let text = String::from_utf8_lossy(field.get(..MOST).unwrap_or(field));
    let more = if field.len() > MOST { "…" } else { "" };
    format!("\"{text}{more}\"")
}
