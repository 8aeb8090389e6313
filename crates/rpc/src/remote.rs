//! [`RemoteWorker`]: another task's worker behind a channel.

use prost::Message;
use tensorfleet_cluster::{Answer, TaskName, WorkerApi};
use tensorfleet_proto as pb;
use tensorfleet_proto::services::worker as path;
use tensorfleet_status::Status;

use crate::grpc::{CallOptions, Channel};

/// A worker in another process.
pub(crate) struct RemoteWorker {
    task: TaskName,
    channel: Channel,
}

impl RemoteWorker {
    pub(crate) fn new(task: TaskName, channel: Channel) -> RemoteWorker {
        RemoteWorker { task, channel }
    }

    fn call<'a, Q, A>(
        &'a self,
        path: &'static str,
        request: Q,
        wait_for_ready: bool,
    ) -> Answer<'a, A>
    where
        Q: Message + 'a,
        A: Message + Default + 'a,
    {
        Box::pin(async move {
            let options = CallOptions {
                deadline: None,
                wait_for_ready,
            };
            self.channel
                .unary(path, &request, &options)
                .await
                .map_err(|status| self.explain(status, path))
        })
    }

    /// Says where a failed call went, in the words that TensorFlow's coordinator looks for.
    fn explain(&self, status: Status, path: &str) -> Status {
        let detail = format!(
            "\nAdditional GRPC error information from remote target {} while calling {path}:\n:{{\"address\":\"{}\", \"grpc_status\":{}}}",
            self.task,
            self.channel.address(),
            status.code().number()
        );
        status.append(detail)
    }
}

impl WorkerApi for RemoteWorker {
    fn get_status(&self, request: pb::GetStatusRequest) -> Answer<'_, pb::GetStatusResponse> {
        self.call(path::GET_STATUS, request, true)
    }

    fn create_worker_session(
        &self,
        request: pb::CreateWorkerSessionRequest,
    ) -> Answer<'_, pb::CreateWorkerSessionResponse> {
        self.call(path::CREATE_WORKER_SESSION, request, false)
    }

    fn delete_worker_session(
        &self,
        request: pb::DeleteWorkerSessionRequest,
    ) -> Answer<'_, pb::DeleteWorkerSessionResponse> {
        self.call(path::DELETE_WORKER_SESSION, request, false)
    }

    fn register_graph(
        &self,
        request: pb::RegisterGraphRequest,
    ) -> Answer<'_, pb::RegisterGraphResponse> {
        self.call(path::REGISTER_GRAPH, request, false)
    }

    fn deregister_graph(
        &self,
        request: pb::DeregisterGraphRequest,
    ) -> Answer<'_, pb::DeregisterGraphResponse> {
        self.call(path::DEREGISTER_GRAPH, request, false)
    }

    fn run_graph(&self, request: pb::RunGraphRequest) -> Answer<'_, pb::RunGraphResponse> {
        self.call(path::RUN_GRAPH, request, false)
    }

    fn cleanup_graph(
        &self,
        request: pb::CleanupGraphRequest,
    ) -> Answer<'_, pb::CleanupGraphResponse> {
        self.call(path::CLEANUP_GRAPH, request, true)
    }

    fn cleanup_all(&self, request: pb::CleanupAllRequest) -> Answer<'_, pb::CleanupAllResponse> {
        self.call(path::CLEANUP_ALL, request, true)
    }

    fn recv_tensor(&self, request: pb::RecvTensorRequest) -> Answer<'_, pb::RecvTensorResponse> {
        self.call(path::RECV_TENSOR, request, false)
    }

    fn logging(&self, request: pb::LoggingRequest) -> Answer<'_, pb::LoggingResponse> {
        self.call(path::LOGGING, request, false)
    }
}
