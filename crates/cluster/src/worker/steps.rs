//! [`Steps`]: the rendezvous of every step that has tensors under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_kernel::{LocalRendezvous, Rendezvous};
use tensorfleet_status::aborted;

/// Rendezvous by step. A receive may come before its step starts and after it ended, so a step's
/// rendezvous lives from whoever comes first until its cleanup.
#[derive(Default)]
pub(crate) struct Steps {
    by_id: Mutex<FxHashMap<i64, Arc<LocalRendezvous>>>,
}

impl Steps {
    /// The step's rendezvous, new if nobody asked for it yet.
    pub(crate) fn rendezvous(&self, step_id: i64) -> Arc<LocalRendezvous> {
        self.lock().entry(step_id).or_default().clone()
    }

    /// Ends whatever still waits in the step and forgets it.
    pub(crate) fn cleanup(&self, step_id: i64) {
        let rendezvous = self.lock().remove(&step_id);
        if let Some(rendezvous) = rendezvous {
            rendezvous.abort(aborted!("Cleanup {step_id}").derived());
        }
    }

    /// How many steps are known.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<i64, Arc<LocalRendezvous>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
