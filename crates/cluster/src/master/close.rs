//! Closing a session: its steps are cancelled, and every task forgets it. No task can hold it up for long.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tensorfleet_proto as pb;
use tensorfleet_status::{Code, cancelled};
use tokio::task::{JoinHandle, JoinSet};

use super::session::MasterSession;
use crate::api::WorkerApi;
use crate::task::TaskName;

/// How long closing waits for steps that were cancelled, and then for other tasks.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first and the last pause between attempts to close a session on a task that cannot be reached.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_secs(512);

/// Closes sessions, all at once.
pub(super) async fn close_all(sessions: Vec<Arc<MasterSession>>) {
    let closing: Vec<JoinHandle<()>> = sessions.iter().map(MasterSession::start_closing).collect();
    for closed in closing {
        if let Err(error) = closed.await {
            tracing::warn!("closing a session was broken off: {error}");
        }
    }
}

impl MasterSession {
    /// Closes the session in the background, to the end even if nobody waits for it.
    pub(super) fn start_closing(self: &Arc<Self>) -> JoinHandle<()> {
        let session = self.clone();
        let runtime = &self.worker.env().runtime;
        runtime.spawn(async move { session.close().await })
    }

    /// Cancels running steps, waits for them, and lets the workers forget the session.
    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.cancel.cancel(cancelled!(
            "Step was cancelled by an explicit call to `Session::Close()`."
        ));
        if tokio::time::timeout(CLOSE_TIMEOUT, self.all_ended())
            .await
            .is_err()
        {
            tracing::warn!(
                "session {} is closed though {} calls still run",
                self.handle,
                self.running.load(Ordering::Acquire)
            );
        }
        for run in self.forget_prepared() {
            self.give_up_partial(&run);
        }
        self.worker.close_session(&self.handle);
        self.close_on_workers().await;
    }

    async fn all_ended(&self) {
        loop {
            let notified = self.ended.notified();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            notified.await;
        }
    }

    async fn close_on_workers(&self) {
        let mut closing = JoinSet::new();
        for task in &self.tasks {
            let Some(worker) = task.remote.clone() else {
                continue;
            };
            let order = CloseOrder {
                worker,
                task: task.name.clone(),
                handle: self.handle.clone(),
            };
            let runtime = self.worker.env().runtime.clone();
            closing.spawn(async move {
                if !order.give().await {
                    runtime.spawn(order.insist());
                }
            });
        }
        while closing.join_next().await.is_some() {}
    }
}

/// Tells a task to forget a session.
struct CloseOrder {
    worker: Arc<dyn WorkerApi>,
    task: TaskName,
    handle: String,
}

impl CloseOrder {
    /// Tells it once; whether that settles it.
    async fn give(&self) -> bool {
        let (task, handle) = (&self.task, &self.handle);
        let request = pb::DeleteWorkerSessionRequest {
            session_handle: handle.clone(),
        };
        let call = self.worker.delete_worker_session(request);
        match tokio::time::timeout(CLOSE_TIMEOUT, call).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => {
                tracing::info!("{task} did not close session {handle}: {error}");
                error.code() != Code::Unavailable
            }
            Err(_) => {
                tracing::warn!(
                    "{task} did not answer within {CLOSE_TIMEOUT:?} to closing session {handle}"
                );
                false
            }
        }
    }

    /// Tells it again and again: a task that was cut off for a while would keep the session otherwise.
    async fn insist(self) {
        let mut pause = RETRY_FIRST;
        while pause <= RETRY_LAST {
            tokio::time::sleep(pause).await;
            if self.give().await {
                return;
            }
            pause *= 2;
        }
        tracing::warn!(
            "{} may keep session {} until this task restarts",
            self.task,
            self.handle
        );
    }
}
