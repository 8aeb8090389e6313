//! The 17 canonical codes, numbered as in gRPC and TensorFlow's `error::Code`.

use std::fmt;

/// A canonical status code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Code {
    /// No error.
    Ok = 0,
    /// Asked to stop, or stopped because another part failed.
    Cancelled = 1,
    /// An error of a foreign system that has no better code.
    Unknown = 2,
    /// Wrong whatever the state: shapes, dtypes, bad attrs, malformed graphs.
    InvalidArgument = 3,
    /// A timer ran out.
    DeadlineExceeded = 4,
    /// A named thing does not exist.
    NotFound = 5,
    /// A named thing exists already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// Memory, a queue or a configured limit is used up.
    ResourceExhausted = 8,
    /// Some state must be mended first: an uninitialised variable, a closed session.
    FailedPrecondition = 9,
    /// Retry the whole step, usually in a new session.
    Aborted = 10,
    /// End of input, or an index past the end.
    OutOfRange = 11,
    /// A known operation that this build cannot do.
    Unimplemented = 12,
    /// An invariant of ours is broken.
    Internal = 13,
    /// Retry this call: a peer cannot be reached.
    Unavailable = 14,
    /// Damaged or truncated data.
    DataLoss = 15,
    /// No valid credentials.
    Unauthenticated = 16,
}

/// Every code with its name in TensorFlow's upper-case spelling, in numeric order.
const NAMES: [(Code, &str); 17] = [
    (Code::Ok, "OK"),
    (Code::Cancelled, "CANCELLED"),
    (Code::Unknown, "UNKNOWN"),
    (Code::InvalidArgument, "INVALID_ARGUMENT"),
    (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
    (Code::NotFound, "NOT_FOUND"),
    (Code::AlreadyExists, "ALREADY_EXISTS"),
    (Code::PermissionDenied, "PERMISSION_DENIED"),
    (Code::ResourceExhausted, "RESOURCE_EXHAUSTED"),
    (Code::FailedPrecondition, "FAILED_PRECONDITION"),
    (Code::Aborted, "ABORTED"),
    (Code::OutOfRange, "OUT_OF_RANGE"),
    (Code::Unimplemented, "UNIMPLEMENTED"),
    (Code::Internal, "INTERNAL"),
    (Code::Unavailable, "UNAVAILABLE"),
    (Code::DataLoss, "DATA_LOSS"),
    (Code::Unauthenticated, "UNAUTHENTICATED"),
];

impl Code {
    /// The code with this number; unknown numbers are [`Code::Unknown`], as in gRPC.
    pub fn from_number(number: i32) -> Code {
        usize::try_from(number)
            .ok()
            .and_then(|index| NAMES.get(index))
            .map_or(Code::Unknown, |(code, _)| *code)
    }

    /// The number on the wire.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// TensorFlow's name, e.g. `INVALID_ARGUMENT`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_agree_with_the_table() {
        for (index, (code, name)) in NAMES.iter().enumerate() {
            assert_eq!(code.number() as usize, index);
            assert_eq!(Code::from_number(index as i32), *code);
            assert_eq!(code.name(), *name);
        }
        assert_eq!(Code::from_number(-1), Code::Unknown);
        assert_eq!(Code::from_number(20), Code::Unknown);
    }
}
