//! [`Deadline`]: until when a call is worth answering.

use std::sync::Arc;
use std::time::Duration;

use tensorfleet_kernel::{CancelToken, Clock};

/// So long after a deadline computations end by themselves: who waits says better what was awaited.
const SELF_RESTRAINT: Duration = Duration::from_millis(20);

/// A point in time, or none.
#[derive(Clone)]
pub(super) struct Deadline {
    at: Option<Duration>,
    clock: Arc<dyn Clock>,
}

impl Deadline {
    /// When to give up, given how long the client waits for the call and how long its config lets it take.
    ///
    /// The client hears nothing that is said after it gave up, so it is said `ahead` of that, or less if
    /// there is little time.
    pub(super) fn new(
        clock: &Arc<dyn Clock>,
        time: Option<Duration>,
        config: Option<Duration>,
        ahead: Duration,
    ) -> Deadline {
        let time = time.map(|time| time - ahead.min(time / 20));
        let least = time.into_iter().chain(config).min();
        Deadline {
            at: least.and_then(|least| clock.monotonic().checked_add(least)),
            clock: clock.clone(),
        }
    }

    /// Lets computations under this switch end soon after it by themselves, even if they keep the thread that waits for it.
    pub(super) fn bind(&self, cancel: &CancelToken) {
        if let Some(end) = self.at.and_then(|at| at.checked_add(SELF_RESTRAINT)) {
            cancel.end_at(&self.clock, end);
        }
    }

    /// Waits for it; for ever if there is none.
    pub(super) async fn passed(&self) {
        match self.at {
            Some(at) => tokio::time::sleep(at.saturating_sub(self.clock.monotonic())).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_kernel::SystemClock;

    #[test]
    fn the_shorter_time_counts_and_the_client_s_is_cut_a_little() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let left = |time: Option<u64>, config: Option<u64>| {
            let millis = |millis: Option<u64>| millis.map(Duration::from_millis);
            let before = clock.monotonic();
            let ahead = Duration::from_millis(50);
            let deadline = Deadline::new(&clock, millis(time), millis(config), ahead);
            Some((deadline.at? - before).as_millis() as u64)
        };
        let near = |left: Option<u64>, wanted: u64| {
            left.is_some_and(|left| (wanted..wanted + 5000).contains(&left))
        };
        assert_eq!(left(None, None), None);
        assert!(near(left(Some(100_000), None), 99_950));
        assert!(near(left(Some(100_000), Some(20_000)), 20_000));
        assert!(near(left(Some(20_000), Some(100_000)), 19_950));
        assert!(near(left(Some(100), None), 95));
    }
}
