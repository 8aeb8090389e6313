//! One module per command; each takes its arguments and somewhere to print.

pub(crate) mod checkpoint;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod inspect;
pub(crate) mod ops;
pub(crate) mod reset;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod up;

use std::future::Future;
use std::time::Duration;

use anyhow::{Error, Result};
use tensorfleet_rpc::MasterClient;
use tensorfleet_rpc::grpc::{CallOptions, Limits};
use tensorfleet_status::{Code, Status};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::output::Misuse;

/// A runtime for calls, signals, timers and children, on this thread.
pub(crate) fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// The time that a flag gives.
pub(crate) fn seconds(flag: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| Misuse(format!("{flag} {value} is not a time in seconds")).into())
}

/// Calls a server and waits at most `timeout` seconds for it.
fn ask<T, F>(
    target: &str,
    token: Option<&str>,
    timeout: f64,
    call: impl FnOnce(MasterClient, CallOptions) -> F,
) -> Result<T>
where
    F: Future<Output = Result<T, Status>>,
{
    let timeout = seconds("--timeout", timeout)?;
    let client = MasterClient::new(target, Limits::default(), token)
        .map_err(|error| Misuse(error.to_string()))?;
    runtime()?.block_on(async {
        let options = CallOptions {
            deadline: Instant::now().checked_add(timeout),
            wait_for_ready: false,
        };
        match call(client, options).await {
            Ok(answer) => Ok(answer),
            Err(status) => Err(why(target, timeout, status).await),
        }
    })
}

/// Why a call failed, and what to do.
async fn why(target: &str, timeout: Duration, status: Status) -> Error {
    let address = target.strip_prefix("grpc://").unwrap_or(target);
    let words = match status.code() {
        Code::Unavailable if doctor::refuses(address, timeout).await => format!(
            "connection refused: nobody listens on {address}; start a server there with `tensorfleet serve` (or \
             `tensorfleet local --port N`), or correct the address"
        ),
        Code::Unavailable | Code::DeadlineExceeded => {
            format!("asking {target} failed; `tensorfleet doctor {address}` looks closer")
        }
        _ => format!("{target} answered with an error"),
    };
    Error::new(status).context(words)
}
