//! [`Status`]: code, text, payloads and the derived mark behind one pointer.

use std::fmt;

use bytes::Bytes;

use crate::Code;

/// The payload key TensorFlow uses for the derived mark.
pub const DERIVED_STATUS_URL: &str = "type.googleapis.com/tensorflow.DerivedStatus";

/// A typed extra of a status: type url and serialised bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payload {
    /// The type url, e.g. [`DERIVED_STATUS_URL`].
    pub url: String,
    /// The serialised message.
    pub value: Bytes,
}

/// Why something failed. Boxed so that `Result<T>` stays small on the hot path.
#[derive(Clone, PartialEq, Eq)]
pub struct Status(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    derived: bool,
    message: String,
    payloads: Vec<Payload>,
}

impl Status {
    /// A status with this code and text.
    pub fn new(code: Code, message: impl Into<String>) -> Status {
        Status(Box::new(Inner {
            code,
            derived: false,
            message: message.into(),
            payloads: Vec::new(),
        }))
    }

    /// The canonical code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether this is only the echo of another failure.
    pub fn is_derived(&self) -> bool {
        self.0.derived
    }

    /// The payloads, the derived mark not included.
    pub fn payloads(&self) -> &[Payload] {
        &self.0.payloads
    }

    /// Marks the status as the echo of another failure.
    #[must_use]
    pub fn derived(mut self) -> Status {
        self.0.derived = true;
        self
    }

    /// Adds a payload; the derived url sets the mark instead.
    #[must_use]
    pub fn with_payload(mut self, url: impl Into<String>, value: impl Into<Bytes>) -> Status {
        let url = url.into();
        if url == DERIVED_STATUS_URL {
            return self.derived();
        }
        self.0.payloads.push(Payload {
            url,
            value: value.into(),
        });
        self
    }

    /// Replaces the text, keeping code, mark and payloads.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Status {
        self.0.message = message.into();
        self
    }

    /// Replaces the code, keeping everything else.
    #[must_use]
    pub fn with_code(mut self, code: Code) -> Status {
        self.0.code = code;
        self
    }

    /// Puts `context: ` before the text.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Status {
        let message = format!("{context}: {}", self.0.message);
        self.with_message(message)
    }

    /// Appends to the text.
    #[must_use]
    pub fn append(mut self, text: impl fmt::Display) -> Status {
        use fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(self.0.message, "{text}");
        self
    }

    /// Keeps the more telling of two errors: a root error wins over a derived one, else the first.
    #[must_use]
    pub fn or_root(self, other: Status) -> Status {
        if self.is_derived() && !other.is_derived() {
            other
        } else {
            self
        }
    }

    /// Notes an error beside one that may be there already, as [`or_root`](Status::or_root) chooses.
    pub fn note(self, noted: &mut Option<Status>) {
        *noted = Some(match noted.take() {
            Some(first) => first.or_root(self),
            None => self,
        });
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        if self.0.derived {
            f.write_str(" (derived)")?;
        }
        for payload in &self.0.payloads {
            write!(f, " [{}: {} bytes]", payload.url, payload.value.len())?;
        }
        Ok(())
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Result, invalid_argument};

    #[test]
    fn result_is_one_pointer() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn root_error_wins_over_derived() {
        let root = invalid_argument!("bad shape");
        let echo = Status::new(Code::Cancelled, "step cancelled").derived();
        assert_eq!(echo.clone().or_root(root.clone()), root);
        assert_eq!(root.clone().or_root(echo), root);
    }

    #[test]
    fn derived_payload_becomes_the_mark() {
        let status = Status::new(Code::Aborted, "gone").with_payload(DERIVED_STATUS_URL, "");
        assert!(status.is_derived());
        assert!(status.payloads().is_empty());
    }

    #[test]
    fn context_and_append_wrap_the_text() {
        let status = invalid_argument!("rank {}", 3)
            .context("matmul")
            .append(" here");
        assert_eq!(status.to_string(), "INVALID_ARGUMENT: matmul: rank 3 here");
    }
}
