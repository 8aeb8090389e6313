//! Partial steps of other tasks' masters: RunGraph calls that feed and fetch bit by bit.
//!
//! A step goes with its last call, with an error, with a call that was given up, with CleanupGraph and
//! with its session, whichever comes first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_kernel::{CancelGuard, CancelToken, Rendezvous};
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, cancelled, internal};
use tokio::sync::oneshot;

use super::Worker;
use super::graph::RegisteredGraph;
use super::run_graph::{receive_all, send_all};
use super::session::WorkerSession;
use super::step::StepStats;

/// The partial steps in progress.
#[derive(Default)]
pub(super) struct PartialSteps(Mutex<FxHashMap<i64, PartialStep>>);

/// A step in progress. Dropping it cancels what is left of it.
struct PartialStep {
    session: Arc<str>,
    rendezvous: Arc<dyn Rendezvous>,
    cancel: CancelToken,
    ended: Option<oneshot::Receiver<Result<StepStats>>>,
    _ends_with_session: CancelGuard,
}

impl Drop for PartialStep {
    fn drop(&mut self) {
        self.cancel
            .cancel(cancelled!("the partial run was given up").derived());
    }
}

impl PartialSteps {
    /// Gives up a step, if there is one.
    pub(super) fn end(&self, step_id: i64) {
        let step = self.lock().remove(&step_id);
        drop(step);
    }

    /// Gives up the steps of a session.
    pub(super) fn end_session(&self, session: &str) {
        let mut steps = self.lock();
        let ended: Vec<PartialStep> = steps
            .extract_if(|_, step| *step.session == *session)
            .map(|(_, step)| step)
            .collect();
        drop(steps);
        drop(ended);
    }

    /// What tells of the end of a step, once.
    fn take_end(&self, step_id: i64) -> Option<oneshot::Receiver<Result<StepStats>>> {
        self.lock().get_mut(&step_id)?.ended.take()
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<i64, PartialStep>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives up a step when it is dropped.
struct EndOnDrop<'a> {
    steps: &'a PartialSteps,
    step_id: Option<i64>,
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(step_id) = self.step_id {
            self.steps.end(step_id);
        }
    }
}

impl Worker {
    /// The first call starts the step, every call feeds and fetches, the last one waits for the end.
    pub(super) async fn run_partial(
        &self,
        session: &WorkerSession,
        graph: Arc<RegisteredGraph>,
        request: pb::RunGraphRequest,
    ) -> Result<pb::RunGraphResponse> {
        let step_id = request.step_id;
        let rendezvous = self.partial_rendezvous(session, graph, step_id)?;
        let mut end = EndOnDrop {
            steps: &self.partial,
            step_id: Some(step_id),
        };
        send_all(&*rendezvous, request.send)?;
        let recv = receive_all(&*rendezvous, request.recv_key).await?;
        if request.is_last_partial_run {
            let ended = self.partial.take_end(step_id);
            if let Some(ended) = ended {
                ended
                    .await
                    .unwrap_or_else(|_| Err(internal!("the step ended without an answer")))?;
            }
        } else {
            end.step_id = None;
        }
        Ok(pb::RunGraphResponse {
            recv,
            ..pb::RunGraphResponse::default()
        })
    }

    /// What a step's calls meet in; the first one starts it.
    fn partial_rendezvous(
        &self,
        session: &WorkerSession,
        graph: Arc<RegisteredGraph>,
        step_id: i64,
    ) -> Result<Arc<dyn Rendezvous>> {
        let mut steps = self.partial.lock();
        if let Some(step) = steps.get(&step_id) {
            return Ok(step.rendezvous.clone());
        }
        let cancel = CancelToken::new();
        let stepwise = self.stepwise(graph, step_id, &cancel)?;
        let rendezvous = stepwise.rendezvous.clone();
        let ends_with_session = session.cancel.on_cancel({
            let cancel = cancel.clone();
            move |reason| cancel.cancel(reason.clone())
        });
        steps.insert(
            step_id,
            PartialStep {
                session: session.handle.clone(),
                rendezvous: rendezvous.clone(),
                cancel,
                ended: Some(stepwise.ended),
                _ends_with_session: ends_with_session,
            },
        );
        // Kernels may take their time: others' calls must not wait for them.
        drop(steps);
        (stepwise.start)();
        Ok(rendezvous)
    }
}
