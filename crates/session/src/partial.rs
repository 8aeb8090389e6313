//! [`PartialRun`]: one step whose feeds come and whose fetches go in several calls.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use tensorfleet_exec::{StepReport, start};
use tensorfleet_kernel::{CallFrame, CancelToken, LocalRendezvous, Received, Rendezvous};
use tensorfleet_passes::{Boundary, Signature};
use tensorfleet_status::{Result, cancelled, deadline_exceeded, internal, invalid_argument};
use tensorfleet_tensor::Tensor;

use crate::progress::PartialProgress;
use crate::session::Session;

/// A step in progress. Dropping it cancels what is left of it.
pub struct PartialRun {
    rendezvous: Arc<LocalRendezvous>,
    cancel: CancelToken,
    key_prefix: String,
    progress: PartialProgress,
    ended: Mutex<mpsc::Receiver<Result<StepReport>>>,
}

impl Session {
    /// Starts a step with all the feeds, fetches and targets it will ever have.
    pub fn partial_run_setup(
        &self,
        feeds: &[&str],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<PartialRun> {
        let own = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let signature = Signature {
            feeds: own(feeds),
            fetches: own(fetches),
            targets: own(targets),
        };
        let graph = self.graph();
        let boundary = Boundary::Rendezvous {
            device: &self.device.name,
            incarnation: self.device.incarnation,
        };
        let prepared = self.compiler().prepare(&graph, signature, boundary)?;
        let rendezvous = Arc::new(LocalRendezvous::new());
        let env = Arc::new(self.step_env(
            &prepared,
            Arc::new(CallFrame::default()),
            rendezvous.clone(),
        ));
        let cancel = env.cancel.clone();
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = Box::new(move |result| {
            let _ = sender.send(result);
        });
        let names = &prepared.signature;
        let progress =
            PartialProgress::new(graph, &names.feeds, &prepared.feed_types, &names.fetches);
        start(prepared.plan.clone(), env, false, done);
        Ok(PartialRun {
            rendezvous,
            cancel,
            key_prefix: format!(
                "{0};{1:016x};{0}",
                self.device.name, self.device.incarnation
            ),
            progress,
            ended: Mutex::new(receiver),
        })
    }

    /// Gives some of the feeds, gets some of the fetches. Fetches must not need feeds that are still missing.
    pub fn partial_run(
        &self,
        run: &PartialRun,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        run.progress.advance(feeds, fetches)?;
        for (name, tensor) in feeds {
            let value = Received {
                tensor: tensor.clone(),
                is_dead: false,
            };
            run.rendezvous.send(&run.key(name), value)?;
        }
        let mut tensors = Vec::with_capacity(fetches.len());
        for name in fetches {
            tensors.push(run.receive(name, timeout)?);
        }
        run.finish_if_used_up(timeout)?;
        Ok(tensors)
    }
}

impl PartialRun {
    fn key(&self, name: &str) -> String {
        format!("{};{name};0:0", self.key_prefix)
    }

    fn receive(&self, name: &str, timeout: Option<Duration>) -> Result<Tensor> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = Box::new(move |received: Result<Received>| {
            let _ = sender.send(received);
        });
        self.rendezvous.recv(&self.key(name), done);
        let received = match timeout {
            Some(timeout) => receiver
                .recv_timeout(timeout)
                .map_err(|_| deadline_exceeded!("fetch {name} was not there within {timeout:?}"))?,
            None => receiver
                .recv()
                .map_err(|_| internal!("the step ended without fetch {name}"))?,
        }?;
        if received.is_dead {
            return Err(invalid_argument!(
                "The tensor returned for {name} was not valid."
            ));
        }
        Ok(received.tensor)
    }

    /// After the last feed and fetch, waits for the step and passes on its error.
    fn finish_if_used_up(&self, timeout: Option<Duration>) -> Result<()> {
        if !self.progress.is_used_up() {
            return Ok(());
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match timeout {
            Some(timeout) => ended
                .recv_timeout(timeout)
                .map_err(|_| deadline_exceeded!("the step did not end within {timeout:?}"))?,
            None => ended
                .recv()
                .map_err(|_| internal!("the step ended without an answer"))?,
        };
        result.map(|_| ())
    }
}

impl Drop for PartialRun {
    fn drop(&mut self) {
        self.cancel
            .cancel(cancelled!("the partial run was dropped"));
    }
}
