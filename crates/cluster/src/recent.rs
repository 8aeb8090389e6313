//! [`RecentIds`]: the last ids of something; [`RecentRequests`]: notices requests that came before.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;
use tensorfleet_status::{Result, aborted};

/// The last ids, so many and no more.
pub(crate) struct RecentIds {
    most: usize,
    order: VecDeque<i64>,
    known: FxHashSet<i64>,
}

impl RecentIds {
    /// Remembers up to `most` ids.
    pub(crate) fn new(most: usize) -> RecentIds {
        RecentIds {
            most,
            order: VecDeque::new(),
            known: FxHashSet::default(),
        }
    }

    /// Remembers an id; whether it is new.
    pub(crate) fn insert(&mut self, id: i64) -> bool {
        if !self.known.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    pub(crate) fn contains(&self, id: i64) -> bool {
        self.known.contains(&id)
    }
}

/// The last request ids, so that a retry of something that already happened is refused.
pub(crate) struct RecentRequests(Mutex<RecentIds>);

impl RecentRequests {
    /// Remembers up to `most` ids.
    pub(crate) fn new(most: usize) -> RecentRequests {
        RecentRequests(Mutex::new(RecentIds::new(most)))
    }

    /// Remembers an id; ABORTED if it was here before. Zero is no id.
    pub(crate) fn track(&self, id: i64, method: &str) -> Result<()> {
        if id == 0 {
            return Ok(());
        }
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !ids.insert(id) {
            return Err(aborted!(
                "The same {method} request was received twice. request_id: {id}"
            ));
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
