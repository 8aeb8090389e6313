//! [`StopOrders`]: until when running steps may go on, once a server is told to stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// As good as never: no clock goes much further.
const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// How a server is told to stop. Clones tell the same server.
#[derive(Clone)]
pub(crate) struct StopOrders {
    /// When the grace period ends; `None` while nobody said stop.
    end: Arc<watch::Sender<Option<Instant>>>,
    grace: Duration,
}

impl StopOrders {
    /// `grace` is for orders that say none.
    pub(crate) fn new(grace: Duration) -> StopOrders {
        StopOrders {
            end: Arc::new(watch::Sender::new(None)),
            grace,
        }
    }

    /// Tells the server to stop. A further order can shorten the grace period, not lengthen it.
    pub(crate) fn stop(&self, grace: Option<Duration>) {
        let now = Instant::now();
        let grace = grace.unwrap_or(self.grace).min(FAR);
        let end = now.checked_add(grace).unwrap_or(now);
        self.end
            .send_modify(|ends| *ends = Some(ends.map_or(end, |before| before.min(end))));
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.end.borrow().is_some()
    }

    /// Waits until the server is told to stop.
    pub(crate) async fn told(&self) {
        let mut end = self.end.subscribe();
        // It fails only if there is no sender, which we hold.
        let _ = end.wait_for(Option::is_some).await;
    }

    /// Waits for the end of the grace period, which may come nearer meanwhile.
    pub(crate) async fn end_of_grace(&self) {
        let mut end = self.end.subscribe();
        loop {
            let Some(until) = *end.borrow_and_update() else {
                return;
            };
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                changed = end.changed() => if changed.is_err() { return },
            }
        }
    }
}
