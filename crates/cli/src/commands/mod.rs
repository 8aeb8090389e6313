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

use anyhow::{Context, Result};
use tensorfleet_rpc::MasterClient;
use tensorfleet_rpc::grpc::{CallOptions, Limits};

/// Calls a server and waits at most `timeout` seconds for it.
fn ask<T, F>(
    target: &str,
    token: Option<&str>,
    timeout: f64,
    call: impl FnOnce(MasterClient, CallOptions) -> F,
) -> Result<T>
where
    F: Future<Output = Result<T, tensorfleet_status::Status>>,
{
    let timeout = Duration::try_from_secs_f64(timeout)
        .map_err(|_| crate::output::Misuse(format!("--timeout {timeout} is not a time")))?;
    let client = MasterClient::new(target, Limits::default(), token)
        .map_err(|error| crate::output::Misuse(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime
        .block_on(async {
            let options = CallOptions {
                deadline: tokio::time::Instant::now().checked_add(timeout),
                wait_for_ready: false,
            };
            call(client, options).await
        })
        .with_context(|| format!("{target} did not answer as hoped"))
}
