//! [`Load`]: the calls that a server answers on its lines, and whether it takes more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tensorfleet_status::{Result, unavailable};
use tokio::sync::Notify;

use super::record::Method;

/// Counts calls. Clones count together.
#[derive(Clone, Default)]
pub(super) struct Load(Arc<Inner>);

#[derive(Default)]
struct Inner {
    calls: AtomicUsize,
    is_stopping: AtomicBool,
    ended: Notify,
}

/// A call being answered; it ends with this.
pub(super) struct Taken(Load);

impl Load {
    /// Counts a call until what is returned is dropped; a server that stops begins no more steps.
    pub(super) fn take(&self, method: Method) -> Result<Taken> {
        if method == Method::RunGraph && self.0.is_stopping.load(Ordering::Relaxed) {
            return Err(unavailable!("Socket closed (the server is stopping)"));
        }
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        Ok(Taken(self.clone()))
    }

    /// Begins no more steps; returns when all calls were answered.
    pub(super) async fn drain(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
        loop {
            // Before the look, so that no end is missed.
            let ended = self.0.ended.notified();
            if self.0.calls.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let inner = &self.0.0;
        if inner.calls.fetch_sub(1, Ordering::Release) == 1
            && inner.is_stopping.load(Ordering::Relaxed)
        {
            inner.ended.notify_waiters();
        }
    }
}
