//! Bytes into records of fields, as RFC 4180 has it.
//!
//! A field may stand in quotes; then it may hold delimiters, line ends and, doubled, quotes. Lines end in LF, CRLF or
//! CR. Memory is bounded by the longest record, and that by [`MOST_BYTES`]: a quote that is never closed must not
//! swallow a whole file.

use std::io::Read;

use tensorfleet_status::{Result, Status, invalid_argument, resource_exhausted};

use crate::files::as_status;

/// The longest record.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// What some programs put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One record: its fields without their quotes.
#[derive(Default)]
pub(super) struct Record {
    /// The fields, one behind the other.
    text: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// The line it begins in, counted from 1.
    pub(super) line: u64,
}

impl Record {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn field(&self, index: usize) -> Option<&[u8]> {
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text.get(start..*self.ends.get(index)?)
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.field(index))
    }
}

/// Where in a field the reader is.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Start,
    Plain,
    /// Inside quotes, which were opened in this line.
    Quoted(u64),
    /// Behind a quote that ends the field, or is the first of two.
    Closed,
}

/// Reads the records of a file.
pub(super) struct Fields {
    stream: Box<dyn Read + Send>,
    path: String,
    delimiter: u8,
    buffer: Vec<u8>,
    at: usize,
    line: u64,
    /// The byte before was a CR that ended a line: an LF belongs to it.
    after_cr: bool,
}

impl Fields {
    pub(super) fn new(stream: Box<dyn Read + Send>, path: &str, delimiter: u8) -> Fields {
        Fields {
            stream,
            path: path.to_owned(),
            delimiter,
            buffer: Vec::new(),
            at: 0,
            line: 0,
            after_cr: false,
        }
    }

    /// Reads the next record; `false` at the end.
    pub(super) fn read(&mut self, record: &mut Record) -> Result<bool> {
        if self.line == 0 {
            self.line = 1;
            self.skip_byte_order_mark()?;
        }
        record.text.clear();
        record.ends.clear();
        record.line = self.line;
        let mut state = State::Start;
        while let Some(byte) = self.next_byte()? {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                continue;
            }
            let line_ends = matches!(byte, b'\n' | b'\r') && !matches!(state, State::Quoted(_));
            if line_ends {
                self.after_cr = byte == b'\r';
                self.line += 1;
                if state == State::Start && record.ends.is_empty() {
                    // A line without any character.
                    record.line = self.line;
                    continue;
                }
                record.ends.push(record.text.len());
                return Ok(true);
            }
            state = self.step(state, byte, record)?;
        }
        match state {
            State::Quoted(line) => Err(self.error(
                line,
                record.len(),
                "the quote that begins here is never closed; close it, or double quotes inside a field",
            )),
            State::Start if record.ends.is_empty() => Ok(false),
            _ => {
                record.ends.push(record.text.len());
                Ok(true)
            }
        }
    }

    /// Takes a byte that does not end the record.
    fn step(&mut self, state: State, byte: u8, record: &mut Record) -> Result<State> {
        if record.text.len() + record.len() >= MOST_BYTES {
            return Err(resource_exhausted!(
                "{}:{}: the record has more than {MOST_BYTES} bytes; is a quote not closed, or a line's end missing?",
                self.path,
                record.line
            ));
        }
        let quoted = matches!(state, State::Quoted(_));
        if byte == self.delimiter && !quoted {
            record.ends.push(record.text.len());
            return Ok(State::Start);
        }
        let next = match (state, byte) {
            (State::Start, b'"') => return Ok(State::Quoted(self.line)),
            (State::Quoted(_), b'"') => return Ok(State::Closed),
            (State::Closed, b'"') => State::Quoted(self.line),
            (State::Closed, _) => {
                return Err(self.error(
                    self.line,
                    record.len(),
                    "text behind a closing quote; double quotes inside a field",
                ));
            }
            (State::Plain, b'"') => {
                return Err(self.error(
                    self.line,
                    record.len(),
                    "a quote inside a field that is not quoted; put the field into quotes and double those inside",
                ));
            }
            (State::Quoted(_), _) => state,
            (State::Start | State::Plain, _) => State::Plain,
        };
        if byte == b'\n' {
            self.line += 1;
        }
        record.text.push(byte);
        Ok(next)
    }

    fn next_byte(&mut self) -> Result<Option<u8>> {
        if self.at == self.buffer.len() && !self.fill()? {
            return Ok(None);
        }
        let byte = self.buffer.get(self.at).copied();
        self.at += 1;
        Ok(byte)
    }

    /// Reads more; `false` at the end.
    fn fill(&mut self) -> Result<bool> {
        self.buffer.resize(64 << 10, 0);
        let read = loop {
            match self.stream.read(&mut self.buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.at = 0;
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        read.map_err(|error| as_status(&self.path, &error))?;
        Ok(!self.buffer.is_empty())
    }

    fn skip_byte_order_mark(&mut self) -> Result<()> {
        if self.fill()? && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.at = BYTE_ORDER_MARK.len();
        }
        Ok(())
    }

    fn error(&self, line: u64, column: usize, what: &str) -> Status {
        invalid_argument!("{}:{line}: column {}: {what}", self.path, column + 1)
    }
}
