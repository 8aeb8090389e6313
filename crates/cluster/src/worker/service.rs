//! [`WorkerApi`] for a worker of this process.

use std::sync::Arc;

use tensorfleet_proto as pb;
use tensorfleet_status::{Result, invalid_argument};

use super::exchange::Key;
use super::graph::RegisteredGraph;
use super::run_graph::receive;
use super::session::{SessionSetup, WorkerSession};
use super::{Worker, other_incarnation};
use crate::api::{Answer, WorkerApi};
use crate::task::TaskName;

impl WorkerApi for Worker {
    fn get_status(&self, _: pb::GetStatusRequest) -> Answer<'_, pb::GetStatusResponse> {
        let device_attributes = self.env.device_attributes();
        Box::pin(async { Ok(pb::GetStatusResponse { device_attributes }) })
    }

    fn create_worker_session(
        &self,
        request: pb::CreateWorkerSessionRequest,
    ) -> Answer<'_, pb::CreateWorkerSessionResponse> {
        Box::pin(async move {
            self.open_session(&request.session_handle, self.setup(&request)?)?;
            Ok(pb::CreateWorkerSessionResponse {})
        })
    }

    fn delete_worker_session(
        &self,
        request: pb::DeleteWorkerSessionRequest,
    ) -> Answer<'_, pb::DeleteWorkerSessionResponse> {
        Box::pin(async move {
            self.close_session(&request.session_handle);
            Ok(pb::DeleteWorkerSessionResponse {})
        })
    }

    fn register_graph(
        &self,
        request: pb::RegisterGraphRequest,
    ) -> Answer<'_, pb::RegisterGraphResponse> {
        Box::pin(async move {
            let session = self.session_of(
                request.create_worker_session_called,
                &request.session_handle,
            )?;
            let def = request.graph_def.unwrap_or_default();
            let builder = session.clone();
            let graph = self
                .env
                .off_thread(move || RegisteredGraph::import(&builder, &def))
                .await?;
            Ok(pb::RegisterGraphResponse {
                graph_handle: session.register(Arc::new(graph)),
            })
        })
    }

    fn deregister_graph(
        &self,
        request: pb::DeregisterGraphRequest,
    ) -> Answer<'_, pb::DeregisterGraphResponse> {
        Box::pin(async move {
            self.session_of(
                request.create_worker_session_called,
                &request.session_handle,
            )?
            .deregister(&request.graph_handle)?;
            Ok(pb::DeregisterGraphResponse {})
        })
    }

    fn run_graph(&self, request: pb::RunGraphRequest) -> Answer<'_, pb::RunGraphResponse> {
        Box::pin(async move {
            let in_body = request.store_errors_in_response_body;
            match self.run_request(request).await {
                Err(status) if in_body => Ok(pb::RunGraphResponse {
                    status_code: status.code().number(),
                    status_error_message: status.message().to_owned(),
                    ..pb::RunGraphResponse::default()
                }),
                other => other,
            }
        })
    }

    fn cleanup_graph(
        &self,
        request: pb::CleanupGraphRequest,
    ) -> Answer<'_, pb::CleanupGraphResponse> {
        self.cleanup_step(request.step_id);
        Box::pin(async { Ok(pb::CleanupGraphResponse {}) })
    }

    fn cleanup_all(&self, request: pb::CleanupAllRequest) -> Answer<'_, pb::CleanupAllResponse> {
        self.cleanup_containers(&request.container);
        Box::pin(async { Ok(pb::CleanupAllResponse {}) })
    }

    fn recv_tensor(&self, request: pb::RecvTensorRequest) -> Answer<'_, pb::RecvTensorResponse> {
        Box::pin(async move {
            self.recent_receives
                .track(request.request_id, "RecvTensor (GrpcWorker)")?;
            self.check_sender(&Key::parse(&request.rendezvous_key)?)?;
            let waiting = self.steps.receive(request.step_id)?;
            let received = receive(waiting.rendezvous(), &request.rendezvous_key).await?;
            Ok(pb::RecvTensorResponse {
                is_dead: received.is_dead,
                send_start_micros: self.env.clock.wall().as_micros() as i64,
                tensor: Some(received.tensor.to_proto()?),
                ..pb::RecvTensorResponse::default()
            })
        })
    }

    fn logging(&self, _: pb::LoggingRequest) -> Answer<'_, pb::LoggingResponse> {
        // Transfers are not recorded; a master that asks for them gets none and goes on.
        Box::pin(async { Ok(pb::LoggingResponse::default()) })
    }
}

impl Worker {
    fn setup(&self, request: &pb::CreateWorkerSessionRequest) -> Result<SessionSetup> {
        let server = request.server_def.as_ref();
        let propagated = server.filter(|server| server.cluster.is_some());
        let (renamed, peers) = match propagated {
            Some(server) => {
                let index = usize::try_from(server.task_index).map_err(|_| {
                    invalid_argument!("task index {} is negative", server.task_index)
                })?;
                let task = TaskName::new(server.job_name.clone(), index);
                let cluster = server.cluster.clone().unwrap_or_default();
                let peers = self.peers.renamed(&cluster, &task)?;
                (Some(task), peers)
            }
            None => (None, self.peers.clone()),
        };
        Ok(SessionSetup {
            isolated: request.isolate_session_state,
            renamed,
            peers,
            optimize: self.optimize.clone(),
            master: (!request.master_task.is_empty()).then(|| {
                (
                    request.master_task.clone(),
                    request.master_incarnation as u64,
                )
            }),
        })
    }

    pub(super) fn session_of(&self, opened: bool, handle: &str) -> Result<Arc<WorkerSession>> {
        if opened {
            self.session(handle)
        } else {
            Ok(self.legacy.clone())
        }
    }

    /// The sender a key names must be a device of ours, of this life.
    fn check_sender(&self, key: &Key<'_>) -> Result<()> {
        fn local(name: &str) -> Option<&str> {
            name.rsplit('/').next()
        }
        let wanted = local(key.send_device);
        let device = self
            .env
            .devices
            .iter()
            .find(|device| local(&device.name) == wanted)
            .ok_or_else(|| invalid_argument!("{} unknown device.", key.send_device))?;
        if device.incarnation != key.incarnation {
            return Err(other_incarnation(
                key.incarnation,
                device.incarnation,
                &self.env.task,
            ));
        }
        Ok(())
    }
}
