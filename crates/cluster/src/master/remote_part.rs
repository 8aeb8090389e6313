//! [`RemotePart`]: a part of a graph that another task keeps for as long as we hold this.

use std::sync::Arc;

use tensorfleet_kernel::CancelToken;
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, internal};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::left_steps::LeftSteps;
use super::session::MasterSession;
use super::tell::tell;
use crate::api::WorkerApi;
use crate::cancelled::cancelled;
use crate::task::TaskName;

/// A registered part. Dropping it lets its task forget it.
pub(super) struct RemotePart {
    pub(super) task: TaskName,
    pub(super) worker: Arc<dyn WorkerApi>,
    pub(super) graph_handle: String,
    /// Steps that its task may forget.
    pub(super) left: LeftSteps,
    session_handle: String,
    /// Thrown when the session ends, and its parts with it.
    session_end: CancelToken,
    runtime: Handle,
}

impl Drop for RemotePart {
    fn drop(&mut self) {
        if self.session_end.is_cancelled() {
            return;
        }
        let worker = self.worker.clone();
        let request = pb::DeregisterGraphRequest {
            graph_handle: std::mem::take(&mut self.graph_handle),
            session_handle: std::mem::take(&mut self.session_handle),
            create_worker_session_called: true,
        };
        let call = async move { worker.deregister_graph(request).await };
        tell(&self.runtime, self.task.clone(), "forget a graph", call);
    }
}

/// Hands parts to their tasks, all at once. If one is refused, or the future is dropped, the others are
/// forgotten again, those that are still under way too.
pub(super) async fn register(
    session: &MasterSession,
    parts: Vec<(usize, pb::GraphDef)>,
) -> Result<Vec<RemotePart>> {
    let mut registered = Vec::with_capacity(parts.len());
    if parts.is_empty() {
        return Ok(registered);
    }
    let (tell, mut told) = mpsc::channel(parts.len());
    let runtime = &session.worker.env().runtime;
    for (task, graph_def) in parts {
        let task = &session.tasks[task];
        let worker = task
            .remote
            .clone()
            .ok_or_else(|| internal!("{} has no channel to itself", task.name))?;
        let request = pb::RegisterGraphRequest {
            session_handle: session.handle().to_owned(),
            graph_def: Some(graph_def),
            graph_options: session.config.graph_options.clone(),
            config_proto: Some(session.config.clone()),
            create_worker_session_called: true,
            ..pb::RegisterGraphRequest::default()
        };
        let left = LeftSteps::new(task.name.clone(), worker.clone(), runtime.clone());
        let mut part = RemotePart {
            task: task.name.clone(),
            worker,
            left,
            graph_handle: String::new(),
            session_handle: session.handle().to_owned(),
            session_end: session.cancel.clone(),
            runtime: runtime.clone(),
        };
        let tell = tell.clone();
        // Not given up with the caller: whether the task has taken the part is only known by its answer.
        runtime.spawn(async move {
            let answer = tokio::select! {
                biased;
                answer = part.worker.register_graph(request) => answer,
                reason = cancelled(&part.session_end) => Err(reason),
            };
            let answer = answer.map(|answer| {
                part.graph_handle = answer.graph_handle;
                part
            });
            // If nobody is there to take it, it is dropped here.
            let _ = tell.send(answer).await;
        });
    }
    drop(tell);
    while let Some(part) = told.recv().await {
        registered.push(part?);
    }
    Ok(registered)
}
