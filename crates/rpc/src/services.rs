//! The calls a server answers: TensorFlow's master and worker services, and our own administration.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prost::Message;
use tensorfleet_cluster::{Master, Worker, WorkerApi};
use tensorfleet_proto as pb;
use tensorfleet_proto::services::{master, worker};
use tensorfleet_status::{Code, Result, Status, unimplemented};
use tensorfleet_tensor::Segments;
use tokio::time::Instant;

use crate::admin::{self, Admin};
use crate::direct::Leases;
use crate::grpc::{Call, Frames, Service, message};
use crate::line::{self, Lines};

/// Everything behind one port.
pub(crate) struct Services {
    pub(crate) master: Arc<Master>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) admin: Admin,
    pub(crate) leases: Leases,
    /// `None` if tasks on this machine are called as all others.
    pub(crate) lines: Option<Arc<Lines>>,
    pub(crate) max_message_bytes: usize,
    /// How many calls there were.
    pub(crate) calls: AtomicU64,
}

impl Service for Services {
    fn call(
        self: &Arc<Self>,
        call: Call,
    ) -> impl Future<Output = Result<Segments>> + Send + 'static {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let services = self.clone();
        async move { services.dispatch(call).await }
    }
}

impl Services {
    /// How many calls there were so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    async fn dispatch(&self, call: Call) -> Result<Segments> {
        let (m, w) = (&self.master, &*self.worker);
        let time = call
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let body = call.message;
        match &*call.path {
            master::RUN_STEP => {
                self.answer(body, |request| m.run_step_within(request, time))
                    .await
            }
            worker::RUN_GRAPH => self.answer(body, |request| w.run_graph(request)).await,
            worker::RECV_TENSOR => self.answer(body, |request| self.recv_tensor(request)).await,
            worker::CLEANUP_GRAPH => {
                self.answer(body, |request: pb::CleanupGraphRequest| {
                    self.leases.end_step(request.step_id);
                    w.cleanup_graph(request)
                })
                .await
            }
            worker::MARK_RECV_FINISHED => {
                self.answer(body, |request: pb::MarkRecvFinishedRequest| async move {
                    self.leases.end(request.request_id);
                    Ok(pb::MarkRecvFinishedResponse {})
                })
                .await
            }

            master::CREATE_SESSION => {
                self.answer(body, |request| m.create_session_within(request, time))
                    .await
            }
            master::EXTEND_SESSION => self.answer(body, |request| m.extend_session(request)).await,
            master::PARTIAL_RUN_SETUP => {
                self.answer(body, |request| m.partial_run_setup(request))
                    .await
            }
            master::CLOSE_SESSION => self.answer(body, |request| m.close_session(request)).await,
            master::LIST_DEVICES => {
                self.answer(body, |request| m.list_devices_within(request, time))
                    .await
            }
            master::RESET => {
                self.answer(body, |request| m.reset_within(request, time))
                    .await
            }
            master::MAKE_CALLABLE => self.answer(body, |request| m.make_callable(request)).await,
            master::RUN_CALLABLE => {
                self.answer(body, |request| m.run_callable_within(request, time))
                    .await
            }
            master::RELEASE_CALLABLE => {
                self.answer(body, |request| m.release_callable(request))
                    .await
            }

            worker::GET_STATUS => self.answer(body, |request| w.get_status(request)).await,
            worker::CREATE_WORKER_SESSION => {
                self.answer(body, |request| w.create_worker_session(request))
                    .await
            }
            worker::DELETE_WORKER_SESSION => {
                self.answer(body, |request| w.delete_worker_session(request))
                    .await
            }
            worker::REGISTER_GRAPH => self.answer(body, |request| w.register_graph(request)).await,
            worker::DEREGISTER_GRAPH => {
                self.answer(body, |request| w.deregister_graph(request))
                    .await
            }
            worker::CLEANUP_ALL => self.answer(body, |request| w.cleanup_all(request)).await,
            worker::LOGGING => self.answer(body, |request| w.logging(request)).await,

            line::OPEN => {
                self.answer(body, |request| async move {
                    let lines = self.lines.as_ref();
                    lines
                        .ok_or_else(|| unimplemented!("lines are switched off"))?
                        .offer(&request)
                })
                .await
            }
            admin::STATUS => {
                let lines = self.lines.as_ref().map_or(0, |lines| lines.count());
                let status = self.admin.status(m, w, &self.leases, lines);
                self.answer(body, |_: admin::StatusRequest| async { Ok(status) })
                    .await
            }
            admin::STOP => {
                let allowed = self.admin.check(&call.headers, call.peer);
                self.answer(body, |request| async {
                    allowed?;
                    self.admin.stop(request)
                })
                .await
            }
            // As TensorFlow answers: it knows the name but cannot do it.
            worker::TRACING => Err(unimplemented!("Tracing")),
            path => {
                tracing::debug!("{} called unknown method {path}", call.peer);
                Err(Status::new(Code::Unimplemented, ""))
            }
        }
    }

    /// A tensor in the answer, or where it is if the receiver can read our memory.
    async fn recv_tensor(&self, request: pb::RecvTensorRequest) -> Result<pb::RecvTensorResponse> {
        let (id, step_id) = (request.request_id, request.step_id);
        let offered = self.leases.is_offer(&request);
        if !offered && let Some(kept) = self.leases.end(id) {
            // It could not read our memory after all.
            return Ok(kept);
        }
        let answer = self.worker.recv_tensor(request).await?;
        Ok(if offered {
            self.leases.lend(id, step_id, answer)
        } else {
            answer
        })
    }

    async fn answer<Q, A, F>(&self, body: Frames, call: impl FnOnce(Q) -> F) -> Result<Segments>
    where
        Q: Message + Default,
        A: Message,
        F: Future<Output = Result<A>>,
    {
        let answer = call(message::decode(body)?).await?;
        message::encode(&answer, self.max_message_bytes)
    }
}
