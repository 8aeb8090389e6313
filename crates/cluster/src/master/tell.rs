//! [`tell`]: orders to other tasks whose answer nobody waits for.

use std::future::Future;
use std::time::Duration;

use tensorfleet_status::Result;
use tokio::runtime::Handle;

use crate::task::TaskName;

/// How long a task may take to answer.
const TELL_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes a call in the background. `order` is what the task is to do, as in "did not …".
pub(super) fn tell<A: Send + 'static>(
    runtime: &Handle,
    task: TaskName,
    order: &'static str,
    call: impl Future<Output = Result<A>> + Send + 'static,
) {
    runtime.spawn(async move {
        match tokio::time::timeout(TELL_TIMEOUT, call).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!("{task} did not {order}: {error}"),
            Err(_) => tracing::debug!("{task} did not {order} within {TELL_TIMEOUT:?}"),
        }
    });
}
