//! Vocabularies: text files that fill tables, a key and a value from each line.
//!
//! The file is read to its end before the table is locked. Lines end with `\n`, or `\r\n`; none may be empty.

use std::str::FromStr;

use tensorfleet_status::{Result, Status, invalid_argument, out_of_range};
use tensorfleet_tensor::{DType, Element, Shape, TString, Tensor};

use crate::io::lines::Lines;

/// Where in a line a key or value is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the number of the line.
    LineNumber,
    /// It is the line.
    WholeLine,
    /// It is this column.
    Column(usize),
}

impl Place {
    /// From `key_index` or `value_index`.
    pub(super) fn of(index: i64) -> Result<Place> {
        match index {
            -1 => Ok(Place::LineNumber),
            -2 => Ok(Place::WholeLine),
            index => match usize::try_from(index) {
                Ok(column) if column < i32::MAX as usize => Ok(Place::Column(column)),
                _ => Err(invalid_argument!("there is no column {index} in a line")),
            },
        }
    }

    /// How many columns a line must have for it.
    fn columns(self) -> usize {
        match self {
            Place::Column(column) => column + 1,
            _ => 0,
        }
    }
}

/// How to read a file.
pub(super) struct Format {
    pub(super) key: Place,
    pub(super) value: Place,
    /// The number of lines; more are left out.
    pub(super) lines: Option<u64>,
    pub(super) delimiter: u8,
    /// Added to line numbers, and to int32 columns.
    pub(super) offset: i64,
}

/// What was read.
pub(super) struct Vocabulary {
    pub(super) keys: Tensor,
    pub(super) values: Tensor,
    /// What ended it before its end. The entries before that count all the same.
    pub(super) broken: Option<Status>,
}

/// Reads a file, or only its first line.
pub(super) fn read(
    name: &str,
    format: &Format,
    (key, value): (DType, DType),
    only_first: bool,
) -> Result<Vocabulary> {
    let mut lines = Lines::open(name)?;
    let mut keys = Column::of(key)?;
    let mut values = Column::of(value)?;
    let mut line = Vec::new();
    let mut count = 0;
    let broken = loop {
        match format.next(name, &mut lines, &mut line, count) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(status) => break Some(status),
        }
        let added = format.columns(name, &line, count).and_then(|columns| {
            keys.push(format, format.key, &line, &columns, count)?;
            values.push(format, format.value, &line, &columns, count)
        });
        if let Err(status) = added {
            break Some(status);
        }
        count += 1;
        if only_first {
            break None;
        }
    };
    match broken {
        Some(status) if count == 0 => Err(status),
        broken => Ok(Vocabulary {
            values: values.into_tensor()?,
            // A key whose value was not read is none.
            keys: keys.into_tensor()?.rows(0, count as usize)?,
            broken,
        }),
    }
}

impl Format {
    /// Reads line `count`; `false` after the last one.
    fn next(&self, name: &str, lines: &mut Lines, line: &mut Vec<u8>, count: u64) -> Result<bool> {
        if !lines.read_line(line)? {
            return match self.lines {
                Some(wanted) if wanted != count => Err(invalid_argument!(
                    "Invalid vocab_size in {name}: expected {wanted} but got {count}"
                )),
                _ if count == 0 => Err(out_of_range!("Read less bytes than requested")),
                _ => Ok(false),
            };
        }
        match self.lines {
            Some(0) => Err(out_of_range!("Finished reading 0 of lines from {name}")),
            Some(wanted) if count >= wanted => Ok(false),
            _ if line.is_empty() => Err(invalid_argument!(
                "Invalid content in {name}: empty line found at position {}.",
                lines.position()
            )),
            _ => Ok(true),
        }
    }

    /// The columns of a line, if they are needed.
    fn columns<'a>(&self, name: &str, line: &'a [u8], count: u64) -> Result<Vec<&'a [u8]>> {
        let wanted = self.key.columns().max(self.value.columns());
        if wanted == 0 {
            return Ok(Vec::new());
        }
        let columns: Vec<&[u8]> = line.split(|byte| *byte == self.delimiter).collect();
        if columns.len() >= wanted {
            return Ok(columns);
        }
        Err(invalid_argument!(
            "Invalid number of columns in {name} line {count} ({}) : expected at least {wanted} got {}",
            String::from_utf8_lossy(line),
            columns.len()
        ))
    }
}

/// Keys or values, read.
enum Column {
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Text(Vec<TString>),
}

impl Column {
    fn of(dtype: DType) -> Result<Column> {
        match dtype {
            DType::I32 => Ok(Column::I32(Vec::new())),
            DType::I64 => Ok(Column::I64(Vec::new())),
            DType::F32 => Ok(Column::F32(Vec::new())),
            DType::F64 => Ok(Column::F64(Vec::new())),
            DType::String => Ok(Column::Text(Vec::new())),
            other => Err(invalid_argument!("Data type {other} not supported.")),
        }
    }

    fn push(
        &mut self,
        format: &Format,
        place: Place,
        line: &[u8],
        columns: &[&[u8]],
        count: u64,
    ) -> Result<()> {
        let token = match place {
            Place::LineNumber => {
                if let Column::I64(numbers) = self {
                    numbers.push((count as i64).wrapping_add(format.offset));
                }
                return Ok(());
            }
            Place::WholeLine => line,
            Place::Column(column) => columns.get(column).copied().unwrap_or_default(),
        };
        match self {
            Column::I32(numbers) => {
                let number: i32 = parse(token, count, "int32")?;
                numbers.push(i64::from(number).wrapping_add(format.offset) as i32);
            }
            Column::I64(numbers) => numbers.push(parse(token, count, "int64")?),
            Column::F32(numbers) => numbers.push(parse(token, count, "float")?),
            Column::F64(numbers) => numbers.push(parse(token, count, "double")?),
            Column::Text(texts) => texts.push(TString::copy_from_slice(token)),
        }
        Ok(())
    }

    fn into_tensor(self) -> Result<Tensor> {
        fn vector<T: Element>(values: Vec<T>) -> Result<Tensor> {
            Tensor::from_vec(Shape::vector(values.len()), values)
        }
        match self {
            Column::I32(numbers) => vector(numbers),
            Column::I64(numbers) => vector(numbers),
            Column::F32(numbers) => vector(numbers),
            Column::F64(numbers) => vector(numbers),
            Column::Text(texts) => vector(texts),
        }
    }
}

/// The number in a field, which ends at the first zero byte; white space around it is skipped.
fn parse<T: FromStr>(token: &[u8], count: u64, kind: &str) -> Result<T> {
    let field = token.split(|byte| *byte == 0).next().unwrap_or_default();
    let number = std::str::from_utf8(field)
        .ok()
        .and_then(|text| text.trim_ascii().parse().ok());
    number.ok_or_else(|| {
        invalid_argument!(
            "Field {} in line {count} is not a valid {kind}.",
            String::from_utf8_lossy(token)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Format = Format {
        key: Place::WholeLine,
        value: Place::LineNumber,
        lines: None,
        delimiter: b'\t',
        offset: 0,
    };

    /// What comes of such a file, as text.
    fn read_text(test: &str, text: &[u8], format: &Format, value: DType) -> String {
        let path = std::env::temp_dir().join(format!("vocabulary_{test}_{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let read = read(
            path.to_str().unwrap(),
            format,
            (DType::String, value),
            false,
        );
        std::fs::remove_file(&path).unwrap();
        match read {
            Ok(found) => {
                let mut shown = String::new();
                tensorfleet_tensor::summarize(&found.keys, 9, &mut shown).unwrap();
                tensorfleet_tensor::summarize(&found.values, 9, &mut shown).unwrap();
                let broken = found.broken.map(|status| status.message().to_owned());
                shown + &broken.unwrap_or_default()
            }
            Err(status) => status.message().to_owned(),
        }
    }

    #[test]
    fn lines_end_as_tensorflows_do() {
        let shown = |text| read_text("ends", text, &WORDS, DType::I64);
        assert_eq!(shown(b"a\r\nb\rc\n\rd\r"), "[a b\rc \rd][0 1 2]");
        assert_eq!(shown(b"a\n\r"), "[a][0]");
        assert!(shown(b"a\n\nb\n").contains("empty line found at position 3."));
        assert_eq!(shown(b""), "Read less bytes than requested");
    }

    #[test]
    fn columns_are_numbers_and_words() {
        let columns = Format {
            key: Place::Column(0),
            value: Place::Column(1),
            offset: 5,
            ..WORDS
        };
        let shown = |text, dtype| read_text("columns", text, &columns, dtype);
        assert_eq!(shown(b"a\t 1 \nc\t+2\tx\n", DType::I32), "[a c][6 7]");
        assert_eq!(shown(b"a\t1\0zz\n", DType::I64), "[a][1]");
        assert!(shown(b"a\t1\nb\n", DType::I64).contains("line 1 (b) : expected at least 2 got 1"));
        assert!(
            shown(b"a\t0x1\n", DType::I64).contains("Field 0x1 in line 0 is not a valid int64.")
        );
        assert!(shown(b"a\t1\n", DType::Bool).contains("Data type bool not supported."));
    }

    #[test]
    fn a_vocabulary_may_be_shorter_than_its_file() {
        let some = |lines| Format {
            lines: Some(lines),
            ..WORDS
        };
        let shown = |lines| read_text("sizes", b"a\nb\n", &some(lines), DType::I64);
        assert_eq!(shown(1), "[a][0]");
        assert_eq!(shown(2), "[a b][0 1]");
        assert!(shown(3).contains("expected 3 but got 2"));
        assert!(shown(0).contains("Finished reading 0 of lines from"));
    }
}
