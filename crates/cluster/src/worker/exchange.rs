//! [`Exchange`]: the rendezvous a step sees: keys of this task meet here, others are pulled from their task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_exec::resume_here;
use tensorfleet_kernel::{CancelToken, LocalRendezvous, Received, RecvDone, Rendezvous};
use tensorfleet_proto::RecvTensorRequest;
use tensorfleet_status::{Result, Status, internal, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::env::WorkerEnv;
use crate::api::Peers;
use crate::cancelled::cancelled;
use crate::task::TaskName;

/// What a step sends and receives through.
pub(crate) struct Exchange {
    pub(crate) local: Arc<LocalRendezvous>,
    pub(crate) task: TaskName,
    pub(crate) peers: Arc<dyn Peers>,
    pub(crate) step_id: i64,
    pub(crate) cancel: CancelToken,
    pub(crate) env: Arc<WorkerEnv>,
    /// Tensors that other tasks have not sent yet, by request.
    pub(crate) awaited: Arc<Awaited>,
}

/// A step's rendezvous, and what it awaits from other tasks if it may await anything.
pub(crate) type StepRendezvous = (Arc<dyn Rendezvous>, Option<Arc<Awaited>>);

/// Keys and who is asked for them, by request.
#[derive(Default)]
pub(crate) struct Awaited(Mutex<FxHashMap<i64, (String, TaskName)>>);

impl Awaited {
    /// Each tensor and its sender, in words.
    pub(super) fn listed(&self) -> Vec<String> {
        let awaited = self.lock();
        let tensors = awaited
            .values()
            .map(|(key, task)| format!("{key} from {task}"));
        let mut tensors: Vec<String> = tensors.collect();
        tensors.sort();
        tensors
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<i64, (String, TaskName)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parts of `send_device;incarnation;recv_device;name;frame:iteration`.
pub(crate) struct Key<'a> {
    pub(crate) send_device: &'a str,
    pub(crate) incarnation: u64,
}

impl<'a> Key<'a> {
    pub(crate) fn parse(key: &'a str) -> Result<Key<'a>> {
        let mut parts = key.split(';');
        let mut next = || parts.next().filter(|part| !part.is_empty());
        let parsed = (|| {
            let send_device = next()?;
            let incarnation = u64::from_str_radix(next()?, 16).ok()?;
            (next().is_some() && next().is_some() && next().is_some()).then_some(Key {
                send_device,
                incarnation,
            })
        })();
        match parsed {
            Some(parsed) if parts.next().is_none() => Ok(parsed),
            _ => Err(invalid_argument!("Invalid  rendezvous key: {key}")),
        }
    }
}

impl Exchange {
    /// Pulls a tensor from the task that makes it.
    fn pull(&self, sender: TaskName, key: &str, done: RecvDone) {
        let Some(worker) = self.peers.worker(&sender) else {
            return done(Err(internal!("No worker known as {sender}")));
        };
        let request = RecvTensorRequest {
            step_id: self.step_id,
            rendezvous_key: key.to_owned(),
            request_id: self.env.ids.request_id(),
            ..RecvTensorRequest::default()
        };
        let (cancel, awaited, id) = (
            self.cancel.clone(),
            self.awaited.clone(),
            request.request_id,
        );
        awaited.lock().insert(id, (key.to_owned(), sender.clone()));
        self.env.runtime.spawn(async move {
            let answer = tokio::select! {
                biased;
                answer = worker.recv_tensor(request) => answer,
                reason = cancelled(&cancel) => Err(reason.derived()),
            };
            awaited.lock().remove(&id);
            let received = answer.and_then(|answer| {
                let is_dead = answer.is_dead;
                let tensor = match answer.tensor {
                    // A dead tensor is a placeholder of any type.
                    _ if is_dead => Tensor::vector::<f32>(&[]),
                    Some(proto) => Tensor::from_proto(&proto)?,
                    None => return Err(internal!("{sender} sent no tensor")),
                };
                Ok(Received { tensor, is_dead })
            });
            resume_here(|| done(received));
        });
    }
}

impl Rendezvous for Exchange {
    fn send(&self, key: &str, value: Received) -> Result<()> {
        self.local.send(key, value)
    }

    fn recv(&self, key: &str, done: RecvDone) {
        let parsed = match Key::parse(key) {
            Ok(parsed) => parsed,
            Err(status) => return done(Err(status)),
        };
        match TaskName::of_device(parsed.send_device) {
            Some(sender) if sender != self.task => self.pull(sender, key, done),
            _ => self.local.recv(key, done),
        }
    }

    fn abort(&self, status: Status) {
        self.local.abort(status);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_keys_and_refuses_others() {
        let device = "/job:ps/replica:0/task:0/device:CPU:0";
        let key = format!("{device};26cff48e70cfcca4;{device};edge_5_v/read;0:0");
        let parsed = Key::parse(&key).unwrap();
        assert_eq!(parsed.send_device, device);
        assert_eq!(parsed.incarnation, 0x26cf_f48e_70cf_cca4);
        for bad in [
            "",
            ";;;;",
            "a;b",
            "a;1;b;c",
            "a;xyz;b;c;0:0",
            "a;1;b;c;0:0;d",
            "a;1;;c;0:0",
        ] {
            let error = Key::parse(bad)
                .err()
                .map(|status| status.message().to_owned());
            assert_eq!(error, Some(format!("Invalid  rendezvous key: {bad}")));
        }
    }
}
