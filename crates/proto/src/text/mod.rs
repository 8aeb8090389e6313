//! The protocol buffer text format (`.pbtxt`): reading and writing any message of this crate.
//!
//! [`print()`] writes what TensorFlow's Python writes, byte for byte, except that a map entry shows
//! its key and value also when they are defaults, as in C++. [`parse`] reads what their parsers
//! read: both block styles, comments, `[a, b]` lists, enum values by name or number, all escapes,
//! optional separators. An expanded `Any` (`[host/name] {…}`) is read, never written.
//!
//! Neither direction touches message types: a text is turned into wire bytes, and wire bytes into
//! text, by the generated tables in `schema`; prost does the rest.
//!
//! ```
//! use tensorfleet_proto::{CheckpointState, text};
//!
//! let state: CheckpointState = text::parse("model_checkpoint_path: 'model-7'  # newest")?;
//! assert_eq!(text::print(&state), "model_checkpoint_path: \"model-7\"\n");
//!
//! let error = text::parse::<CheckpointState>("\n  model_path: 'x'").unwrap_err();
//! assert_eq!(error.to_string(), "2:3: tensorflow.CheckpointState has no field \"model_path\"");
//! # Ok::<(), text::ParseError>(())
//! ```

mod lexer;
mod parser;
mod printer;
mod schema;
#[cfg(test)]
mod tests;

use std::fmt;

use prost::{Message, Name};

/// Why a text could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Reads a message from its text form.
pub fn parse<M: Message + Name + Default>(text: &str) -> Result<M, ParseError> {
    let name = M::full_name();
    let whole = |message: String| ParseError {
        line: 1,
        column: 1,
        message,
    };
    let schema = schema::Message::find(&name)
        .ok_or_else(|| whole(format!("no message type is named {name:?}")))?;
    let wire = parser::parse(schema, text)?;
    M::decode(wire.as_slice()).map_err(|error| whole(format!("cannot decode {name}: {error}")))
}

/// Writes a message in text form, fields in order of their numbers, map entries in order of keys.
pub fn print<M: Message + Name>(message: &M) -> String {
    let mut out = String::new();
    if let Some(schema) = schema::Message::find(&M::full_name()) {
        printer::print(schema, &message.encode_to_vec(), &mut out);
    }
    out
}
