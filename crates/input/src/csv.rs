//! CSV files: fields as RFC 4180 writes them, columns as [`Csv`] describes them.
//!
//! | file | |
//! |---|---|
//! | this one | the description, and [`Dataset::from_csv`] |
//! | `fields` | bytes into records of fields |
//! | `columns` | fields into tensors |

mod columns;
mod fields;

use std::sync::Arc;

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Element as Value, Tensor};

use crate::dataset::Dataset;
use crate::files::{Compression, Paths, open_stream};
use columns::Columns;
use fields::{Fields, Record};

/// What CSV files look like and which columns to take. By default fields are parted by commas and the first line
/// names the columns, which may then stand in any order; without such a line they are told in their order.
///
/// ```
/// use tensorfleet_input::Csv;
/// use tensorfleet_tensor::DType;
///
/// let people = Csv::new()
///     .column("name", DType::String)
///     .column_or("age", -1i64); // where the field is empty
/// let matrix = Csv::new()
///     .without_header()
///     .delimiter(';')
///     .column("x", DType::F32)
///     .ignored() // the second field
///     .column("y", DType::F32);
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    header: bool,
    delimiter: char,
    na_value: String,
    compression: Compression,
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    /// `None` for a column that is there and not wanted.
    name: Option<String>,
    dtype: DType,
    default: Option<Tensor>,
}

impl Default for Csv {
    fn default() -> Csv {
        Csv {
            header: true,
            delimiter: ',',
            na_value: String::new(),
            compression: Compression::ByName,
            columns: Vec::new(),
        }
    }
}

impl Csv {
    /// No columns yet.
    pub fn new() -> Csv {
        Csv::default()
    }

    /// A column whose fields must not be empty: float, double, int32, int64, bool or string.
    #[must_use]
    pub fn column(self, name: impl Into<String>, dtype: DType) -> Csv {
        self.with(Some(name.into()), dtype, None)
    }

    /// A column of the dtype of `default`, which stands where a field is empty.
    #[must_use]
    pub fn column_or<T: Value>(self, name: impl Into<String>, default: T) -> Csv {
        self.with(Some(name.into()), T::DTYPE, Some(Tensor::scalar(default)))
    }

    /// In files without a header: a column that is not wanted.
    #[must_use]
    pub fn ignored(self) -> Csv {
        self.with(None, DType::String, None)
    }

    /// The first line is a record like the others.
    #[must_use]
    pub fn without_header(mut self) -> Csv {
        self.header = false;
        self
    }

    /// What stands between fields.
    #[must_use]
    pub fn delimiter(mut self, delimiter: char) -> Csv {
        self.delimiter = delimiter;
        self
    }

    /// A text that means the same as an empty field, such as `NA`.
    #[must_use]
    pub fn na_value(mut self, text: impl Into<String>) -> Csv {
        self.na_value = text.into();
        self
    }

    /// How the files are packed, if their names do not tell.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Csv {
        self.compression = compression;
        self
    }

    fn with(mut self, name: Option<String>, dtype: DType, default: Option<Tensor>) -> Csv {
        self.columns.push(Column {
            name,
            dtype,
            default,
        });
        self
    }

    fn check(&self) -> Result<()> {
        let delimiter = self.delimiter;
        if !delimiter.is_ascii() || matches!(delimiter, '"' | '\r' | '\n') {
            return Err(invalid_argument!(
                "{delimiter:?} cannot part fields: use an ASCII character other than a quote or a line's end"
            ));
        }
        if !self.columns.iter().any(|column| column.name.is_some()) {
            return Err(invalid_argument!("the Csv names no columns"));
        }
        if self.header && self.columns.iter().any(|column| column.name.is_none()) {
            return Err(invalid_argument!(
                "with a header, columns that are not named are ignored: leave .ignored() out, or say .without_header()"
            ));
        }
        for column in &self.columns {
            columns::check_dtype(column.name.as_deref().unwrap_or_default(), column.dtype)?;
        }
        Ok(())
    }
}

impl Dataset {
    /// The records of CSV files, one file after the other: one scalar for each column of `csv`, under its name.
    /// Lines without any character are left out. Errors name the file, the line and the column.
    ///
    /// ```
    /// use tensorfleet_input::{Csv, Dataset};
    /// use tensorfleet_tensor::{DType, TString};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("some.csv").display().to_string();
    /// std::fs::write(&path, "name,height,age\n\"Ada, Countess\",1.6,36\nAlan,1.8,\n").unwrap();
    ///
    /// let csv = Csv::new().column("name", DType::String).column_or("age", -1i64);
    /// let people: Vec<_> = Dataset::from_csv(&path, csv)?.iter().collect::<Result<_, _>>()?;
    /// assert_eq!(people[0].get("name")?.to_scalar::<TString>()?, "Ada, Countess");
    /// assert_eq!(people[1].get("age")?.to_scalar::<i64>()?, -1);
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    pub fn from_csv(paths: impl Into<Paths>, csv: Csv) -> Result<Dataset> {
        csv.check()?;
        let paths = paths.into().resolve()?;
        let csv = Arc::new(csv);
        Ok(Dataset::of_files(paths, move |path| {
            let stream = open_stream(path, csv.compression)?;
            let mut fields = Fields::new(stream, path, csv.delimiter as u8);
            let mut record = Record::default();
            let header = csv.header && fields.read(&mut record)?;
            let columns = Columns::new(csv.clone(), path, header.then_some(&record))?;
            Ok(Box::new(std::iter::from_fn(move || {
                match fields.read(&mut record) {
                    Ok(true) => Some(columns.element(&record)),
                    Ok(false) => None,
                    Err(status) => Some(Err(status)),
                }
            })))
        }))
    }
}

#[cfg(test)]
mod tests;
