//! RunGraph: a step of a graph that another task's master registered here.

use std::sync::Arc;
use std::time::Duration;

use tensorfleet_kernel::{CallFrame, CancelToken, Received, Rendezvous};
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, Status, aborted, internal, invalid_argument};
use tensorfleet_tensor::Tensor;
use tokio::sync::oneshot;

use super::Worker;
use super::exchange::Key;
use super::graph::RegisteredGraph;
use super::session::WorkerSession;
use super::step::StepInput;
use super::steps::Steps;

/// After a step was given up its tensors can still be had for so long: whoever waits for one elsewhere
/// should hear first why it was, which is not here.
const END_AFTER: Duration = Duration::from_secs(1);

impl Worker {
    pub(super) async fn run_request(
        &self,
        request: pb::RunGraphRequest,
    ) -> Result<pb::RunGraphResponse> {
        self.recent_runs
            .track(request.request_id, "RunGraph (Worker)")?;
        let session = self.session_of(
            request.create_worker_session_called,
            &request.session_handle,
        )?;
        let graph = session.graph(&request.graph_handle)?;
        let mut given_up = GivenUp::new(self, request.step_id);
        let result = if request.is_partial {
            self.run_partial(&session, graph, request).await
        } else {
            self.run_whole(&session, graph, request).await
        };
        given_up.step_id = None;
        result
    }

    async fn run_whole(
        &self,
        session: &WorkerSession,
        graph: Arc<RegisteredGraph>,
        request: pb::RunGraphRequest,
    ) -> Result<pb::RunGraphResponse> {
        let options = request.exec_opts.unwrap_or_default();
        let cancel = CancelToken::new();
        let _ends_with_session = session.cancel.on_cancel({
            let cancel = cancel.clone();
            move |reason| cancel.cancel(reason.clone())
        });
        let (rendezvous, awaited) = self.rendezvous_for(&graph, request.step_id, &cancel)?;
        send_all(&*rendezvous, request.send)?;
        let stats = graph
            .clone()
            .begin(StepInput {
                step_id: request.step_id,
                call_frame: Arc::new(CallFrame::default()),
                rendezvous: rendezvous.clone(),
                awaited,
                cancel,
                record: options.record_timeline,
            })
            .ended()
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
}

/// Ends a step whose caller went away before its end: it may be gone for good and never clean up.
struct GivenUp {
    /// `None` once the step answered.
    step_id: Option<i64>,
    steps: Arc<Steps>,
    runtime: tokio::runtime::Handle,
}

impl GivenUp {
    fn new(worker: &Worker, step_id: i64) -> GivenUp {
        GivenUp {
            step_id: Some(step_id),
            steps: worker.steps.clone(),
            runtime: worker.env.runtime.clone(),
        }
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        let Some(step_id) = self.step_id else {
            return;
        };
        let steps = self.steps.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(END_AFTER).await;
            let reason = aborted!("Step {step_id} cancelled.  Cancelling rendezvous.");
            steps.end(step_id, reason.derived());
        });
    }
}

pub(super) fn send_all(
    rendezvous: &dyn Rendezvous,
    tensors: Vec<pb::NamedTensorProto>,
) -> Result<()> {
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

pub(super) async fn receive_all(
    rendezvous: &dyn Rendezvous,
    keys: Vec<String>,
) -> Result<Vec<pb::NamedTensorProto>> {
    let mut tensors = Vec::with_capacity(keys.len());
    for name in keys {
        // Nothing is ever sent under what is no key.
        Key::parse(&name)
            .map_err(|status| internal!("Failed to fetch outputs: {}", status.message()))?;
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
