//! [`RecentRequests`]: notices requests that came before.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;
use tensorfleet_status::{Result, aborted};

/// The last request ids, so that a retry of something that already happened is refused.
pub(crate) struct RecentRequests {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    order: VecDeque<i64>,
    known: FxHashSet<i64>,
}

impl RecentRequests {
    /// Remembers up to `most` ids.
    pub(crate) fn new(most: usize) -> RecentRequests {
        RecentRequests {
            most,
            state: Mutex::default(),
        }
    }

    /// Remembers an id; ABORTED if it was here before. Zero is no id.
    pub(crate) fn track(&self, id: i64, method: &str) -> Result<()> {
        if id == 0 {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.known.insert(id) {
            return Err(aborted!(
                "The same {method} request was received twice. request_id: {id}"
            ));
        }
        state.order.push_back(id);
        if state.order.len() > self.most
            && let Some(oldest) = state.order.pop_front()
        {
            state.known.remove(&oldest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_repeated_ids_and_forgets_old_ones() {
        let recent = RecentRequests::new(2);
        assert!(recent.track(1, "RunStep (Master)").is_ok());
        let error = recent.track(1, "RunStep (Master)").unwrap_err();
        assert!(
            error
                .message()
                .contains("The same RunStep (Master) request")
        );
        assert!(recent.track(2, "m").is_ok() && recent.track(3, "m").is_ok());
        assert!(recent.track(1, "m").is_ok());
        assert!(recent.track(0, "m").is_ok() && recent.track(0, "m").is_ok());
    }
}
