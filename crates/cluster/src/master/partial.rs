//! Partial runs: a step whose feeds come and whose fetches go in several calls.

use std::sync::{Arc, Mutex, PoisonError};

use tensorfleet_kernel::{CancelGuard, CancelToken, Received, Rendezvous};
use tensorfleet_passes::Signature;
use tensorfleet_proto as pb;
use tensorfleet_session::PartialProgress;
use tensorfleet_status::{
    Result, Status, cancelled, deadline_exceeded, internal, invalid_argument,
};
use tensorfleet_tensor::Tensor;
use tokio::sync::oneshot;
use tokio::task::JoinError;

use super::executable::Executable;
use super::run::{Parts, Step, from_task, named};
use super::session::MasterSession;
use crate::task::TaskName;
use crate::worker::step::StepStats;

/// A step in progress. Dropping it cancels what is left of it.
pub(super) struct PartialRun {
    progress: PartialProgress,
    rendezvous: Arc<dyn Rendezvous>,
    cancel: CancelToken,
    step_id: i64,
    executable: Arc<Executable>,
    /// The parts of other tasks; they end with the step.
    remote: tokio::sync::Mutex<Parts>,
    ended: Mutex<Option<oneshot::Receiver<Result<StepStats>>>>,
    _ends_with_session: CancelGuard,
}

impl Drop for PartialRun {
    fn drop(&mut self) {
        self.cancel
            .cancel(cancelled!("the partial run was given up").derived());
    }
}

/// Lets everybody forget a run when it is dropped, unless the run goes on.
struct EndPartial<'a> {
    session: &'a MasterSession,
    handle: &'a str,
    run: &'a PartialRun,
    goes_on: bool,
}

impl Drop for EndPartial<'_> {
    fn drop(&mut self) {
        if !self.goes_on {
            self.session.forget_partial(self.handle);
            self.session.give_up_partial(self.run);
        }
    }
}

impl MasterSession {
    /// Starts a step with all the feeds, fetches and targets it will ever have; its handle.
    pub(super) async fn partial_run_setup(
        &self,
        request: pb::PartialRunSetupRequest,
    ) -> Result<String> {
        let _running = self.begin()?;
        let signature = Signature {
            feeds: request.feed,
            fetches: request.fetch,
            targets: request.target,
        };
        let executable = Executable::build(self, signature, true).await?;
        let step_id = self.worker.env().ids.step_id();
        let cancel = CancelToken::new();
        let step = Step {
            id: step_id,
            record: false,
            graphs: false,
            cancel: cancel.clone(),
        };
        let remote = tokio::sync::Mutex::new(self.start_remote(&executable, &step));
        let ends_with_session = self.cancel.on_cancel({
            let cancel = cancel.clone();
            move |reason| cancel.cancel(reason.clone())
        });
        let stepwise = self
            .worker
            .stepwise(executable.local.clone(), step_id, &cancel)?;
        (stepwise.start)();
        let progress = PartialProgress::new(
            executable.graph.clone(),
            &executable.signature.feeds,
            &executable.feed_types,
            &executable.signature.fetches,
        );
        Ok(self.keep_partial(PartialRun {
            progress,
            rendezvous: stepwise.rendezvous,
            cancel,
            step_id,
            executable,
            remote,
            ended: Mutex::new(Some(stepwise.ended)),
            _ends_with_session: ends_with_session,
        }))
    }

    /// Lets every task forget a run that was not run to its end.
    pub(super) fn give_up_partial(&self, run: &PartialRun) {
        self.clean_up(&run.executable, run.step_id, false);
    }

    /// Gives some of the feeds, gets some of the fetches.
    pub(super) async fn partial_step(
        &self,
        handle: &str,
        names: Vec<String>,
        tensors: Vec<Tensor>,
        fetches: Vec<String>,
        options: &pb::RunOptions,
    ) -> Result<Vec<pb::NamedTensorProto>> {
        let run = self.partial_run(handle)?;
        let feeds: Vec<(&str, Tensor)> = names.iter().map(String::as_str).zip(tensors).collect();
        let wanted: Vec<&str> = fetches.iter().map(String::as_str).collect();
        run.progress.advance(&feeds, &wanted)?;
        // An error ends the run, and so does a client that goes away in the middle.
        let mut end = EndPartial {
            session: self,
            handle,
            run: &run,
            goes_on: false,
        };
        let step = self.exchange(&run, feeds, &wanted);
        let result = match self.timeout(options) {
            None => step.await,
            Some(timeout) => tokio::time::timeout(timeout, step)
                .await
                .unwrap_or_else(|_| {
                    Err(deadline_exceeded!(
                        "Deadline Exceeded: the partial run did not hand over {} within {timeout:?}",
                        wanted.join(", ")
                    ))
                }),
        };
        end.goes_on = result.is_ok() && !run.progress.is_used_up();
        drop(end);
        named(&fetches, &result?)
    }

    async fn exchange(
        &self,
        run: &PartialRun,
        feeds: Vec<(&str, Tensor)>,
        fetches: &[&str],
    ) -> Result<Vec<Tensor>> {
        let here = async {
            let tensors = self.feed_and_fetch(run, feeds, fetches).await;
            tensors.map_err(|status| from_task(status, &self.view.own))
        };
        let tensors = tokio::select! {
            biased;
            tensors = here => tensors?,
            // What that part was to send will never come.
            status = failed_part(run) => return Err(status),
        };
        if run.progress.is_used_up() {
            let mut remote = run.remote.lock().await;
            while let Some(joined) = remote.join_next().await {
                part_ended(joined)?;
            }
        }
        Ok(tensors)
    }

    async fn feed_and_fetch(
        &self,
        run: &PartialRun,
        feeds: Vec<(&str, Tensor)>,
        fetches: &[&str],
    ) -> Result<Vec<Tensor>> {
        for (name, tensor) in feeds {
            let value = Received {
                tensor,
                is_dead: false,
            };
            run.rendezvous.send(&self.client_key(name), value)?;
        }
        let mut tensors = Vec::with_capacity(fetches.len());
        for name in fetches {
            let received = crate::worker::receive(&*run.rendezvous, &self.client_key(name)).await?;
            if received.is_dead {
                return Err(invalid_argument!(
                    "The tensor returned for {name} was not valid."
                ));
            }
            tensors.push(received.tensor);
        }
        if run.progress.is_used_up() {
            let ended = run
                .ended
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(ended) = ended {
                ended
                    .await
                    .unwrap_or_else(|_| Err(internal!("the step ended without an answer")))?;
            }
        }
        Ok(tensors)
    }

    /// The rendezvous key of a feed or fetch.
    pub(super) fn client_key(&self, name: &str) -> String {
        let device = self.devices.client();
        let incarnation = self.devices.client_incarnation();
        format!("{device};{incarnation:016x};{device};{name};0:0")
    }
}

/// Waits for the part of another task to fail; why it did.
async fn failed_part(run: &PartialRun) -> Status {
    let mut remote = run.remote.lock().await;
    while let Some(joined) = remote.join_next().await {
        if let Err(status) = part_ended(joined) {
            return status;
        }
    }
    std::future::pending().await
}

fn part_ended(joined: Result<(TaskName, Result<pb::RunMetadata>), JoinError>) -> Result<()> {
    let (_, ended) = joined.map_err(|error| internal!("a part's run was lost: {error}"))?;
    ended.map(drop)
}
