//! What went wrong at a store: the address, the cause, and what helps.

use std::error::Error as _;

use object_store::Error;
use tensorfleet_checkpoint::fs;
use tensorfleet_status::{Code, Status};

/// The status of a request that failed; `wanted` is what was to be done: "open", "list".
pub(super) fn status(url: &str, wanted: &str, error: &Error) -> Status {
    let scheme = fs::split_scheme(url).0;
    let (code, remedy) = match error {
        Error::NotFound { .. } => (
            Code::NotFound,
            "does it exist, in this spelling?".to_owned(),
        ),
        Error::PermissionDenied { .. } => (Code::PermissionDenied, credentials(scheme)),
        Error::Unauthenticated { .. } => (Code::Unauthenticated, credentials(scheme)),
        Error::Precondition { .. } => (
            Code::FailedPrecondition,
            "it was written anew while it was read: begin again".to_owned(),
        ),
        Error::NotSupported { .. } | Error::NotImplemented { .. } => {
            (Code::Unimplemented, cannot(scheme))
        }
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => (
            Code::InvalidArgument,
            "write scheme://store/name".to_owned(),
        ),
        _ if wanted == "list" && scheme.starts_with("http") => {
            (Code::Unimplemented, cannot(scheme))
        }
        _ => (Code::Unavailable, reach(scheme)),
    };
    let cause = cause(error);
    Status::new(code, format!("cannot {wanted} {url}: {cause}; {remedy}"))
}

/// The error and what lies behind it, each said once.
fn cause(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

fn credentials(scheme: &str) -> String {
    let remedy = match scheme {
        "s3" => {
            "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION for somebody who may read it, or AWS_SKIP_SIGNATURE=true if everybody may"
        }
        "gs" => {
            "set GOOGLE_APPLICATION_CREDENTIALS to the key file of an account that may read it, or GOOGLE_SKIP_SIGNATURE=true if everybody may"
        }
        _ => "it is not open to everybody: copy it, or register a store that has credentials",
    };
    remedy.to_owned()
}

fn cannot(scheme: &str) -> String {
    if scheme.starts_with("http") {
        return "a web server is read file by file and in parts: name each file without *, ? or [, on a server that knows ranges".to_owned();
    }
    "the store does not offer it".to_owned()
}

fn reach(scheme: &str) -> String {
    match scheme {
        "s3" => format!(
            "is the store reachable, at AWS_ENDPOINT_URL if it is not Amazon's (AWS_ALLOW_HTTP=true for one without TLS)? {}",
            credentials(scheme)
        ),
        "gs" => format!(
            "is the store reachable, at GOOGLE_BASE_URL if it is not Google's? {}",
            credentials(scheme)
        ),
        _ => "is the address right, and the server reachable from here?".to_owned(),
    }
}
