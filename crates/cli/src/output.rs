//! Printing: tables that line up, tensors, and the error of misuse.

use std::fmt;
use std::io::{self, Write};

use serde_json::Value;
use tensorfleet_tensor::{Tensor, summarize};

/// The user asked for something that makes no sense: exit code 2.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// Prints rows with columns that line up; the last column is not padded.
pub(crate) fn table(out: &mut dyn Write, rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Prints a JSON value, indented.
pub(crate) fn json(out: &mut dyn Write, value: &Value) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// A tensor in one line, at most `limit` elements of it.
pub(crate) fn line(tensor: &Tensor, limit: usize) -> String {
    let mut text = format!("{}{} ", tensor.dtype(), tensor.shape());
    // Writing to a String cannot fail.
    let _ = summarize(tensor, limit, &mut text);
    text
}

/// Bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let mut out = Vec::new();
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        table(&mut out, &[row(&["a", "1"]), row(&["long", "2"])]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a     1\nlong  2\n");
    }

    #[test]
    fn bytes_read_well() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(1536), "1.5 KiB");
    }
}
