//! [`RemoteWorker`]: another task's worker behind a channel.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tensorfleet_cluster::{Answer, TaskName, WorkerApi};
use tensorfleet_proto as pb;
use tensorfleet_proto::services::worker as path;
use tensorfleet_status::{Result, Status};

use crate::direct::{Location, Reader};
use crate::grpc::{CallOptions, Channel};
use crate::line::{Lines, Method, ToTask};

/// A sender that takes no notice for so long ends its lease by itself.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Longer requests are sent in a stream of their own, past which others can go.
const ON_LINE: usize = 64 << 10;

/// A worker in another process.
pub(crate) struct RemoteWorker {
    task: TaskName,
    channel: Channel,
    reader: Reader,
    line: ToTask,
}

impl RemoteWorker {
    pub(crate) fn new(
        task: TaskName,
        channel: Channel,
        reader: Reader,
        lines: Option<Arc<Lines>>,
    ) -> RemoteWorker {
        RemoteWorker {
            task,
            line: ToTask::new(channel.clone(), lines),
            channel,
            reader,
        }
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
        Box::pin(async move { self.ask(path, &request, wait_for_ready).await })
    }

    async fn ask<Q: Message, A: Message + Default>(
        &self,
        path: &'static str,
        request: &Q,
        wait_for_ready: bool,
    ) -> Result<A> {
        let options = CallOptions {
            deadline: None,
            wait_for_ready,
        };
        let answer = self.channel.unary(path, request, &options).await;
        answer.map_err(|status| self.explain(status, path))
    }

    /// A call of a step: on the line if there is one.
    fn step_call<'a, Q, A>(
        &'a self,
        method: Method,
        request: Q,
        wait_for_ready: bool,
    ) -> Answer<'a, A>
    where
        Q: Message + 'a,
        A: Message + Default + 'a,
    {
        Box::pin(async move { self.step_ask(method, &request, wait_for_ready).await })
    }

    async fn step_ask<Q: Message, A: Message + Default>(
        &self,
        method: Method,
        request: &Q,
        wait_for_ready: bool,
    ) -> Result<A> {
        match self.line.current() {
            Some(line) if request.encoded_len() <= ON_LINE => {
                let answer = line.call(method, request).await;
                answer.map_err(|status| self.explain(status, method.path()))
            }
            _ => self.ask(method.path(), request, wait_for_ready).await,
        }
    }

    /// Tells the sender that it need not keep a tensor any longer; nobody waits for that.
    fn finished(&self, request_id: i64) {
        let request = pb::MarkRecvFinishedRequest { request_id };
        if let Some(line) = self.line.current()
            && line.tell(Method::MarkRecvFinished, &request).is_ok()
        {
            return;
        }
        let channel = self.channel.clone();
        tokio::spawn(async move {
            let options = CallOptions {
                deadline: Some(tokio::time::Instant::now() + FINISH_TIMEOUT),
                wait_for_ready: false,
            };
            let answer: Result<pb::MarkRecvFinishedResponse> = channel
                .unary(path::MARK_RECV_FINISHED, &request, &options)
                .await;
            if let Err(error) = answer {
                tracing::debug!(
                    "{} was not told of a tensor's end: {error}",
                    channel.address()
                );
            }
        });
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
    fn trouble(&self) -> Option<String> {
        self.channel.trouble()
    }

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
        self.step_call(Method::RunGraph, request, false)
    }

    fn cleanup_graph(
        &self,
        request: pb::CleanupGraphRequest,
    ) -> Answer<'_, pb::CleanupGraphResponse> {
        self.step_call(Method::CleanupGraph, request, true)
    }

    fn cleanup_all(&self, request: pb::CleanupAllRequest) -> Answer<'_, pb::CleanupAllResponse> {
        self.call(path::CLEANUP_ALL, request, true)
    }

    fn recv_tensor(
        &self,
        mut request: pb::RecvTensorRequest,
    ) -> Answer<'_, pb::RecvTensorResponse> {
        Box::pin(async move {
            if self.channel.is_same_host() {
                self.reader.offer(&mut request);
            }
            let mut answer = self.step_ask(Method::RecvTensor, &request, false).await?;
            let Some(location) = Location::of(&answer) else {
                return Ok(answer);
            };
            let id = request.request_id;
            match self.reader.fill(&mut answer, location, id).await {
                Ok(()) => self.finished(id),
                Err(error) => {
                    tracing::debug!("{} sends its tensors in messages: {error}", self.task);
                    request.transport_options = None;
                    answer = self.step_ask(Method::RecvTensor, &request, false).await?;
                }
            }
            Ok(answer)
        })
    }

    fn logging(&self, request: pb::LoggingRequest) -> Answer<'_, pb::LoggingResponse> {
        self.call(path::LOGGING, request, false)
    }
}
