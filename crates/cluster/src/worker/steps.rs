//! [`Steps`]: the rendezvous of every step that has tensors under way.
//!
//! ```text
//!   RecvTensor ──> awaited ──┐ last receive gone ──> forgotten
//!                            v
//!   RunGraph ────────────> begun ──> CleanupGraph, end of the session ──> cleaned, remembered
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_kernel::{LocalRendezvous, Rendezvous};
use tensorfleet_status::{Result, Status, aborted};

use crate::recent::Recent;

/// How many cleaned steps are remembered. What comes late for a step comes within seconds of its cleanup.
const CLEANED: usize = 10_000;

/// Rendezvous by step. A receive may come before its step begins and after it ended, so a step's
/// rendezvous lives from whoever comes first until its cleanup; one that only receives have asked for
/// lives as long as they wait.
pub(crate) struct Steps(Mutex<State>);

struct State {
    by_id: FxHashMap<i64, Entry>,
    cleaned: Recent<i64>,
}

#[derive(Default)]
struct Entry {
    rendezvous: Arc<LocalRendezvous>,
    /// The session that runs the step; nobody's until it begins.
    session: Option<Arc<str>>,
    /// How many receives of other tasks wait here.
    receives: usize,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps(Mutex::new(State {
            by_id: FxHashMap::default(),
            cleaned: Recent::new(CLEANED),
        }))
    }
}

impl Steps {
    /// The rendezvous of a step that a session begins; ABORTED if the step was cleaned up already.
    pub(super) fn begin(&self, step_id: i64, session: &Arc<str>) -> Result<Arc<LocalRendezvous>> {
        let mut state = self.lock();
        let entry = state.entry(step_id)?;
        entry.session.get_or_insert_with(|| session.clone());
        Ok(entry.rendezvous.clone())
    }

    /// The rendezvous of a step for a receive of another task; ABORTED if the step was cleaned up already.
    pub(super) fn receive(&self, step_id: i64) -> Result<Receiving<'_>> {
        let mut state = self.lock();
        let entry = state.entry(step_id)?;
        entry.receives += 1;
        Ok(Receiving {
            steps: self,
            step_id,
            rendezvous: entry.rendezvous.clone(),
        })
    }

    /// Ends whatever still waits in the step and forgets it.
    pub(crate) fn cleanup(&self, step_id: i64) {
        self.end(step_id, cleaned_up(step_id));
    }

    /// Like [`cleanup`](Self::cleanup), telling who waits another reason.
    pub(super) fn end(&self, step_id: i64, reason: Status) {
        let entry = {
            let mut state = self.lock();
            state.cleaned.insert(step_id);
            state.by_id.remove(&step_id)
        };
        if let Some(entry) = entry {
            entry.rendezvous.abort(reason);
        }
    }

    /// Cleans up all steps of a session.
    pub(super) fn cleanup_session(&self, session: &str) {
        let steps: Vec<i64> = {
            let state = self.lock();
            let of_session = state
                .by_id
                .iter()
                .filter(|(_, entry)| entry.session.as_deref() == Some(session));
            of_session.map(|(step_id, _)| *step_id).collect()
        };
        for step_id in steps {
            self.cleanup(step_id);
        }
    }

    /// How many steps are known.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_id.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn entry(&mut self, step_id: i64) -> Result<&mut Entry> {
        if self.cleaned.contains(&step_id) {
            return Err(cleaned_up(step_id));
        }
        Ok(self.by_id.entry(step_id).or_default())
    }
}

fn cleaned_up(step_id: i64) -> Status {
    aborted!("Cleanup {step_id}").derived()
}

/// A receive that waits in a step. When it is dropped it waits no more.
pub(super) struct Receiving<'a> {
    steps: &'a Steps,
    step_id: i64,
    rendezvous: Arc<LocalRendezvous>,
}

impl Receiving<'_> {
    pub(super) fn rendezvous(&self) -> &LocalRendezvous {
        &self.rendezvous
    }
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        let mut state = self.steps.lock();
        let Some(entry) = state.by_id.get_mut(&self.step_id) else {
            return;
        };
        entry.receives = entry.receives.saturating_sub(1);
        if entry.receives == 0 && entry.session.is_none() {
            // Let go outside the lock: what it holds may have more to drop.
            let forgotten = state.by_id.remove(&self.step_id);
            drop(state);
            drop(forgotten);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_status::Code;

    fn session(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn a_step_that_never_begins_goes_with_the_last_receive() {
        let steps = Steps::default();
        let (first, second) = (steps.receive(1).unwrap(), steps.receive(1).unwrap());
        drop(first);
        assert_eq!(steps.len(), 1);
        drop(second);
        assert_eq!(steps.len(), 0);
        // It was not cleaned up: the step may still begin.
        assert!(steps.begin(1, &session("a")).is_ok());
    }

    #[test]
    fn an_early_receive_meets_the_step() {
        let steps = Steps::default();
        let early = steps.receive(1).unwrap();
        let begun = steps.begin(1, &session("a")).unwrap();
        assert!(Arc::ptr_eq(&early.rendezvous, &begun));
        drop(early);
        // What the step sent stays until its cleanup.
        assert!(Arc::ptr_eq(&steps.receive(1).unwrap().rendezvous, &begun));
        assert_eq!(steps.len(), 1);
    }

    #[test]
    fn what_comes_after_the_cleanup_is_refused() {
        let steps = Steps::default();
        steps.begin(1, &session("a")).unwrap();
        steps.cleanup(1);
        steps.cleanup(2);
        for step_id in [1, 2] {
            let late = steps.receive(step_id).err().unwrap();
            assert_eq!(late.code(), Code::Aborted);
            assert_eq!(late.message(), format!("Cleanup {step_id}"));
            assert!(steps.begin(step_id, &session("a")).is_err());
        }
        assert_eq!(steps.len(), 0);
    }

    #[test]
    fn steps_go_with_their_session() {
        let steps = Steps::default();
        steps.begin(1, &session("a")).unwrap();
        steps.begin(2, &session("b")).unwrap();
        steps.cleanup_session("a");
        assert_eq!(steps.len(), 1);
        assert!(steps.receive(1).is_err() && steps.receive(2).is_ok());
    }
}
