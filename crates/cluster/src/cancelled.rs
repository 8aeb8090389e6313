//! Waiting for a [`CancelToken`] in async code.

use tensorfleet_kernel::CancelToken;
use tensorfleet_status::Status;

/// Waits until the switch is thrown; why it was.
pub(crate) async fn cancelled(cancel: &CancelToken) -> Status {
    let (tell, told) = tokio::sync::oneshot::channel();
    let _guard = cancel.on_cancel(move |reason| {
        // Nobody listens any more once what was waited for came.
        let _ = tell.send(reason.clone());
    });
    match told.await {
        Ok(reason) => reason,
        Err(_) => std::future::pending().await,
    }
}
