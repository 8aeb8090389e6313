//! Opening a session on the other tasks, so that none is left open there if its client goes away.

use std::pin::pin;
use std::sync::Arc;

use tensorfleet_proto as pb;
use tensorfleet_status::{Result, aborted, cancelled, internal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::close::CLOSE_TIMEOUT;
use super::session::MasterSession;

/// A session that nobody has taken over yet. If nobody does it is closed in the background.
pub(super) struct Unclaimed {
    session: Arc<MasterSession>,
    claimed: bool,
}

impl Unclaimed {
    /// Takes the session over.
    pub(super) fn claim(mut self) -> Arc<MasterSession> {
        self.claimed = true;
        self.session.clone()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if !self.claimed {
            self.session.start_closing();
        }
    }
}

type Opening = JoinSet<Result<pb::CreateWorkerSessionResponse>>;

/// Opens a session on all its tasks. Dropping the future closes it there.
pub(super) async fn open(session: Arc<MasterSession>) -> Result<Unclaimed> {
    let mut opening = session.start_opening();
    let runtime = session.worker.env().runtime.clone();
    let unclaimed = Unclaimed {
        session,
        claimed: false,
    };
    if opening.is_empty() {
        return Ok(unclaimed);
    }
    let (mut tell, told) = oneshot::channel();
    runtime.spawn(async move {
        let opened = tokio::select! {
            biased;
            opened = all(&mut opening) => opened,
            () = tell.closed() => Err(cancelled!("nobody waits for the session any more")),
        };
        match opened {
            // If it cannot be told, it is dropped here.
            Ok(()) => drop(tell.send(Ok(unclaimed))),
            Err(status) => {
                let _ = tell.send(Err(status));
                // An order to open must not be overtaken by the order to close.
                let rest = pin!(async { while opening.join_next().await.is_some() {} });
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, rest).await;
            }
        }
    });
    told.await
        .unwrap_or_else(|_| Err(internal!("opening the session on its tasks was broken off")))
}

async fn all(opening: &mut Opening) -> Result<()> {
    while let Some(opened) = opening.join_next().await {
        opened.map_err(|error| aborted!("opening a worker session failed: {error}"))??;
    }
    Ok(())
}

impl MasterSession {
    fn start_opening(&self) -> Opening {
        let mut opening = JoinSet::new();
        for task in &self.tasks {
            let Some(worker) = task.remote.clone() else {
                continue;
            };
            let request = pb::CreateWorkerSessionRequest {
                session_handle: self.handle.clone(),
                server_def: Some(pb::ServerDef {
                    job_name: task.name.job.clone(),
                    task_index: task.name.index as i32,
                    protocol: "grpc".to_owned(),
                    cluster: self.view.propagated.clone(),
                    ..pb::ServerDef::default()
                }),
                isolate_session_state: self.view.isolated,
                master_task: self.view.own.to_string(),
                master_incarnation: self.devices.client_incarnation() as i64,
                ..pb::CreateWorkerSessionRequest::default()
            };
            opening.spawn(async move { worker.create_worker_session(request).await });
        }
        opening
    }
}
