//! [`CancelToken`]: one switch per step that wakes everything that waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tensorfleet_math::par::Watch;
use tensorfleet_status::{Result, Status, deadline_exceeded};

use crate::clock::Clock;

type Callback = Box<dyn FnOnce(&Status) + Send>;

/// A switch that is thrown once, with the reason. Clones are the same switch.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    next_id: AtomicU64,
    state: Mutex<State>,
    /// Until when it is worth computing, by this clock.
    end: OnceLock<(Arc<dyn Clock>, Duration)>,
}

#[derive(Default)]
struct State {
    reason: Option<Status>,
    callbacks: FxHashMap<u64, Callback>,
}

impl CancelToken {
    /// A switch not yet thrown.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Whether the switch was thrown. One load: cheap enough for inner loops.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// An error with the reason if the switch was thrown.
    pub fn check(&self) -> Result<()> {
        match self
            .is_cancelled()
            .then(|| self.lock().reason.clone())
            .flatten()
        {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    /// Lets computations end by themselves at this time of the clock, even if nobody comes to throw the switch. Only the first
    /// call has an effect.
    pub fn end_at(&self, clock: &Arc<dyn Clock>, end: Duration) {
        // Set before: the first one counts.
        let _ = self.0.end.set((clock.clone(), end));
    }

    /// Whether computing has become pointless: the switch was thrown, or the end has come.
    pub fn is_over(&self) -> bool {
        let late = |(clock, end): &(Arc<dyn Clock>, Duration)| clock.monotonic() >= *end;
        self.is_cancelled() || self.0.end.get().is_some_and(late)
    }

    /// Why a computation was given up that looked at this switch.
    pub fn reason(&self) -> Status {
        self.check()
            .err()
            .unwrap_or_else(|| deadline_exceeded!("the computation was given up at its deadline"))
    }

    /// Throws the switch and runs the callbacks on this thread. Only the first call has an effect.
    pub fn cancel(&self, reason: Status) {
        let callbacks = {
            let mut state = self.lock();
            if state.reason.is_some() {
                return;
            }
            state.reason = Some(reason.clone());
            self.0.cancelled.store(true, Ordering::Release);
            std::mem::take(&mut state.callbacks)
        };
        for callback in callbacks.into_values() {
            callback(&reason);
        }
    }

    /// Runs `callback` when the switch is thrown, at once if it already is. Dropping the guard forgets it.
    #[must_use]
    pub fn on_cancel(&self, callback: impl FnOnce(&Status) + Send + 'static) -> CancelGuard {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        if let Some(reason) = state.reason.clone() {
            drop(state);
            callback(&reason);
        } else {
            state.callbacks.insert(id, Box::new(callback));
        }
        CancelGuard {
            token: self.clone(),
            id,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for CancelToken {
    fn is_over(&self) -> bool {
        CancelToken::is_over(self)
    }
}

/// Keeps a cancellation callback registered.
pub struct CancelGuard {
    token: CancelToken,
    id: u64,
}

/// An id that no callback has.
const DETACHED: u64 = u64::MAX;

impl CancelGuard {
    /// Leaves the callback registered for as long as the token lives: for callbacks that find nothing to
    /// do once what they guard is done.
    pub fn detach(mut self) {
        self.id = DETACHED;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        // The callback may own things whose drop takes locks: let it go outside ours.
        let callback = self.token.lock().callbacks.remove(&self.id);
        drop(callback);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tensorfleet_status::cancelled;

    #[test]
    fn callbacks_run_once_now_or_later() {
        let token = CancelToken::new();
        let runs = Arc::new(AtomicUsize::new(0));
        let count = |runs: &Arc<AtomicUsize>| {
            let runs = runs.clone();
            move |_: &Status| {
                runs.fetch_add(1, Ordering::Relaxed);
            }
        };
        let _kept = token.on_cancel(count(&runs));
        drop(token.on_cancel(count(&runs)));
        token.cancel(cancelled!("stop"));
        token.cancel(cancelled!("again"));
        let _late = token.on_cancel(count(&runs));
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        assert_eq!(token.check().unwrap_err().message(), "stop");
    }
}
