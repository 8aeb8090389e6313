//! Opening a session on the other tasks, so that none is left open there if its client goes away.

use std::pin::pin;
use std::sync::Arc;

use tensorfleet_proto as pb;
use tensorfleet_status::{Result, aborted, cancelled, deadline_exceeded, internal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::close::CLOSE_TIMEOUT;
use super::deadline::Deadline;
use super::session::MasterSession;
use crate::task::TaskName;

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

type Opening = JoinSet<(TaskName, Result<pb::CreateWorkerSessionResponse>)>;

/// Opens a session on all its tasks. Dropping the future closes it there.
pub(super) async fn open(session: Arc<MasterSession>, deadline: Deadline) -> Result<Unclaimed> {
    let mut opening = session.start_opening();
    let others = session.tasks.iter().filter(|task| task.remote.is_some());
    let missing: Vec<TaskName> = others.map(|task| task.name.clone()).collect();
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
            opened = all(&mut opening, missing, &deadline) => opened,
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

async fn all(opening: &mut Opening, mut missing: Vec<TaskName>, deadline: &Deadline) -> Result<()> {
    loop {
        let opened = tokio::select! {
            biased;
            opened = opening.join_next() => opened,
            () = deadline.passed() => {
                let missing: Vec<String> = missing.iter().map(TaskName::to_string).collect();
                return Err(deadline_exceeded!(
                    "Deadline Exceeded: the session was not opened by {}",
                    missing.join(", ")
                ));
            }
        };
        let Some(opened) = opened else {
            return Ok(());
        };
        let (task, opened) =
            opened.map_err(|error| aborted!("opening a worker session failed: {error}"))?;
        opened?;
        missing.retain(|other| *other != task);
    }
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
            let name = task.name.clone();
            opening.spawn(async move { (name, worker.create_worker_session(request).await) });
        }
        opening
    }
}
