//! [`Recent`]: the last of something; [`RecentRequests`]: notices requests that came before.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;
use tensorfleet_status::{Result, aborted};

/// The last ids, so many and no more.
pub(crate) struct Recent<Id> {
    most: usize,
    order: VecDeque<Id>,
    known: FxHashSet<Id>,
}

impl<Id: Clone + Eq + Hash> Recent<Id> {
    /// Remembers up to `most` ids.
    pub(crate) fn new(most: usize) -> Recent<Id> {
        Recent {
            most,
            order: VecDeque::new(),
            known: FxHashSet::default(),
        }
    }

    /// Remembers an id; whether it is new.
    pub(crate) fn insert(&mut self, id: Id) -> bool {
        if !self.known.insert(id.clone()) {
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

    pub(crate) fn contains<Q: Eq + Hash + ?Sized>(&self, id: &Q) -> bool
    where
        Id: Borrow<Q>,
    {
        self.known.contains(id)
    }
}

/// The last request ids, so that a retry of something that already happened is refused.
pub(crate) struct RecentRequests(Mutex<Recent<i64>>);

impl RecentRequests {
    /// Remembers up to `most` ids.
    pub(crate) fn new(most: usize) -> RecentRequests {
        RecentRequests(Mutex::new(Recent::new(most)))
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
