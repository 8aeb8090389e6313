//! [`WorkerApi`] for a worker of this process.

use std::sync::{Arc, PoisonError};

use tensorfleet_kernel::{CallFrame, CancelToken, Received, Rendezvous};
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, Status, internal, invalid_argument};
use tensorfleet_tensor::Tensor;
use tokio::sync::oneshot;

use super::exchange::Key;
use super::graph::RegisteredGraph;
use super::session::{SessionSetup, WorkerSession};
use super::step::{StepInput, StepStats};
use super::{Worker, other_incarnation};
use crate::api::{Answer, WorkerApi};
use crate::task::TaskName;

/// A step in progress whose feeds and fetches come in several calls.
pub(super) struct PartialStep {
    rendezvous: Arc<dyn Rendezvous>,
    cancel: CancelToken,
    ended: Option<oneshot::Receiver<Result<StepStats>>>,
}

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
            let rendezvous = self.steps.rendezvous(request.step_id);
            let received = receive(&*rendezvous, &request.rendezvous_key).await?;
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

    fn session_of(&self, opened: bool, handle: &str) -> Result<Arc<WorkerSession>> {
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

    async fn run_request(&self, request: pb::RunGraphRequest) -> Result<pb::RunGraphResponse> {
        self.recent_runs
            .track(request.request_id, "RunGraph (Worker)")?;
        let session = self.session_of(
            request.create_worker_session_called,
            &request.session_handle,
        )?;
        let graph = session.graph(&request.graph_handle)?;
        if request.is_partial {
            return self.run_partial(graph, request).await;
        }
        let options = request.exec_opts.unwrap_or_default();
        let cancel = CancelToken::new();
        let rendezvous = self.rendezvous_for(&graph, request.step_id, &cancel);
        send_all(&*rendezvous, request.send)?;
        let stats = graph
            .clone()
            .run(StepInput {
                step_id: request.step_id,
                call_frame: Arc::new(CallFrame::default()),
                rendezvous: rendezvous.clone(),
                cancel,
                record: options.record_timeline,
            })
            .await?;
        let partition_graph = if options.record_partition_graphs {
            graph.partition_graphs()?
        } else {
            Vec::new()
        };
        Ok(pb::RunGraphResponse {
            recv: receive_all(&*rendezvous, request.recv_key).await?,
            step_stats: options
                .record_timeline
                .then_some(pb::StepStats { dev_stats: stats }),
            partition_graph,
            cost_graph: Some(pb::CostGraphDef::default()),
            ..pb::RunGraphResponse::default()
        })
    }

    /// The first call starts the step, every call feeds and fetches, the last one waits for the end.
    async fn run_partial(
        &self,
        graph: Arc<RegisteredGraph>,
        request: pb::RunGraphRequest,
    ) -> Result<pb::RunGraphResponse> {
        let key = (request.graph_handle.clone(), request.step_id);
        let rendezvous = {
            let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
            let step = partial
                .entry(key.clone())
                .or_insert_with(|| self.start_partial(graph, request.step_id));
            step.rendezvous.clone()
        };
        send_all(&*rendezvous, request.send)?;
        let recv = receive_all(&*rendezvous, request.recv_key).await;
        if request.is_last_partial_run || recv.is_err() {
            let ended = {
                let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
                partial.remove(&key).and_then(|mut step| {
                    if let Err(status) = &recv {
                        step.cancel.cancel(status.clone().derived());
                    }
                    step.ended.take()
                })
            };
            if let Some(ended) = ended {
                let result = ended
                    .await
                    .unwrap_or_else(|_| Err(internal!("the step ended without an answer")));
                if recv.is_ok() {
                    result?;
                }
            }
        }
        Ok(pb::RunGraphResponse {
            recv: recv?,
            ..pb::RunGraphResponse::default()
        })
    }

    fn start_partial(&self, graph: Arc<RegisteredGraph>, step_id: i64) -> PartialStep {
        let cancel = CancelToken::new();
        let (rendezvous, ended) = self.start_stepwise(&graph, step_id, &cancel);
        PartialStep {
            rendezvous,
            cancel,
            ended: Some(ended),
        }
    }
}

fn send_all(rendezvous: &dyn Rendezvous, tensors: Vec<pb::NamedTensorProto>) -> Result<()> {
    for named in tensors {
        let tensor = Tensor::from_proto(&named.tensor.unwrap_or_default())?;
        let value = Received {
            tensor,
            is_dead: false,
        };
        rendezvous.send(&named.name, value)?;
    }
    Ok(())
}

async fn receive_all(
    rendezvous: &dyn Rendezvous,
    keys: Vec<String>,
) -> Result<Vec<pb::NamedTensorProto>> {
    let mut tensors = Vec::with_capacity(keys.len());
    for name in keys {
        let received = receive(rendezvous, &name).await?;
        if received.is_dead {
            return Err(invalid_argument!(
                "The tensor returned for {name} was not valid."
            ));
        }
        let tensor = Some(received.tensor.to_proto()?);
        tensors.push(pb::NamedTensorProto { name, tensor });
    }
    Ok(tensors)
}

/// Waits for a tensor.
pub(crate) async fn receive(rendezvous: &dyn Rendezvous, key: &str) -> Result<Received> {
    let (tell, told) = oneshot::channel();
    rendezvous.recv(
        key,
        Box::new(move |received| {
            // Whoever waited may be gone.
            let _ = tell.send(received);
        }),
    );
    let lost = |_| -> Status { internal!("the step ended without tensor {key}") };
    told.await.map_err(lost)?
}
