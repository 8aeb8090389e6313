//! [`Rendezvous`]: where `_Send` leaves tensors and `_Recv` fetches them, by key, within one step.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_status::{Result, Status};
use tensorfleet_tensor::Tensor;

/// A received tensor; a dead one has no meaningful value.
pub struct Received {
    /// The tensor.
    pub tensor: Tensor,
    /// Whether the branch that should have made it was not taken.
    pub is_dead: bool,
}

/// Called once with what was received.
pub type RecvDone = Box<dyn FnOnce(Result<Received>) + Send>;

/// Hands tensors over by key. Sends and receives of a key pair up one to one, in order.
pub trait Rendezvous: Send + Sync {
    /// Leaves a tensor; never waits.
    fn send(&self, key: &str, value: Received) -> Result<()>;
    /// Calls `done` when the tensor is there, or with the error that ended the step.
    fn recv(&self, key: &str, done: RecvDone);
    /// Fails all waiting and later calls.
    fn abort(&self, status: Status);
}

/// The rendezvous of one process.
#[derive(Default)]
pub struct LocalRendezvous {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    aborted: Option<Status>,
    keys: FxHashMap<String, Meeting>,
}

/// Who came first waits: values for receivers, or receivers for values.
enum Meeting {
    Values(VecDeque<Received>),
    Waiters(VecDeque<RecvDone>),
}

impl LocalRendezvous {
    /// Nothing sent, nobody waiting.
    pub fn new() -> LocalRendezvous {
        LocalRendezvous::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rendezvous for LocalRendezvous {
    fn send(&self, key: &str, value: Received) -> Result<()> {
        let mut state = self.lock();
        if let Some(status) = &state.aborted {
            return Err(status.clone());
        }
        match state.keys.get_mut(key) {
            Some(Meeting::Waiters(waiters)) => {
                let waiter = waiters.pop_front();
                if waiters.is_empty() {
                    state.keys.remove(key);
                }
                drop(state);
                if let Some(done) = waiter {
                    done(Ok(value));
                }
            }
            Some(Meeting::Values(values)) => values.push_back(value),
            None => {
                state
                    .keys
                    .insert(key.to_owned(), Meeting::Values(VecDeque::from([value])));
            }
        }
        Ok(())
    }

    fn recv(&self, key: &str, done: RecvDone) {
        let mut state = self.lock();
        if let Some(status) = state.aborted.clone() {
            drop(state);
            return done(Err(status));
        }
        match state.keys.get_mut(key) {
            Some(Meeting::Values(values)) => {
                let value = values.pop_front();
                if values.is_empty() {
                    state.keys.remove(key);
                }
                drop(state);
                if let Some(value) = value {
                    done(Ok(value));
                }
            }
            Some(Meeting::Waiters(waiters)) => waiters.push_back(done),
            None => {
                state
                    .keys
                    .insert(key.to_owned(), Meeting::Waiters(VecDeque::from([done])));
            }
        }
    }

    fn abort(&self, status: Status) {
        let meetings = {
            let mut state = self.lock();
            if state.aborted.is_some() {
                return;
            }
            state.aborted = Some(status.clone());
            std::mem::take(&mut state.keys)
        };
        for meeting in meetings.into_values() {
            if let Meeting::Waiters(waiters) = meeting {
                for done in waiters {
                    done(Err(status.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tensorfleet_status::aborted;

    fn value(v: f32) -> Received {
        Received {
            tensor: Tensor::scalar(v),
            is_dead: false,
        }
    }

    #[test]
    fn pairs_up_in_order_whoever_comes_first() {
        let rendezvous = LocalRendezvous::new();
        let (tx, rx) = mpsc::channel();
        let receive = |key: &str| {
            let tx = tx.clone();
            rendezvous.recv(
                key,
                Box::new(move |got| {
                    tx.send(got.map(|r| r.tensor.to_scalar::<f32>().unwrap()))
                        .unwrap();
                }),
            );
        };
        receive("a");
        rendezvous.send("a", value(1.0)).unwrap();
        rendezvous.send("a", value(2.0)).unwrap();
        rendezvous.send("a", value(3.0)).unwrap();
        receive("a");
        receive("a");
        let got: Vec<_> = (0..3).map(|_| rx.recv().unwrap().unwrap()).collect();
        assert_eq!(got, [1.0, 2.0, 3.0]);
        receive("b");
        rendezvous.abort(aborted!("step ended"));
        assert_eq!(rx.recv().unwrap().unwrap_err().message(), "step ended");
        assert!(rendezvous.send("c", value(0.0)).is_err());
    }
}
