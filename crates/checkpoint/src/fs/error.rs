//! io::Error to Status, naming the path.

use std::io::{Error, ErrorKind};

use tensorfleet_status::{Code, Status};

/// Too many open files, in the system and in this process: they have no kind of their own.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// The status of a failed file operation, as TensorFlow words it: `<path>; <reason>`.
pub fn io_status(path: &str, error: &Error) -> Status {
    let code = match error.raw_os_error() {
        Some(ENFILE | EMFILE) => Code::ResourceExhausted,
        _ => code(error.kind()),
    };
    Status::new(code, format!("{path}; {}", reason(error)))
}

fn code(kind: ErrorKind) -> Code {
    use ErrorKind as Kind;
    match kind {
        Kind::NotFound => Code::NotFound,
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Code::PermissionDenied,
        Kind::AlreadyExists => Code::AlreadyExists,
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge | Kind::OutOfMemory => {
            Code::ResourceExhausted
        }
        Kind::UnexpectedEof => Code::OutOfRange,
        Kind::InvalidInput | Kind::InvalidData | Kind::InvalidFilename => Code::InvalidArgument,
        Kind::NotADirectory
        | Kind::IsADirectory
        | Kind::DirectoryNotEmpty
        | Kind::ResourceBusy
        | Kind::ExecutableFileBusy => Code::FailedPrecondition,
        Kind::Unsupported | Kind::CrossesDevices => Code::Unimplemented,
        Kind::StaleNetworkFileHandle | Kind::NetworkDown | Kind::HostUnreachable => {
            Code::Unavailable
        }
        Kind::Deadlock => Code::Aborted,
        Kind::TimedOut => Code::DeadlineExceeded,
        _ => Code::Unknown,
    }
}

/// The system's words without Rust's "(os error 2)".
fn reason(error: &Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text.get(..end).unwrap_or(&text).to_owned(),
        None => text,
    }
}
