//! [`SimClock`]: virtual time. Reading it takes a moment, so that work seems to take time too.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tensorfleet_kernel::Clock;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::rng::Rng;

/// Where 1970 was: some day in 2025.
const WALL: Duration = Duration::from_secs(1_750_000_000);

/// The runtime's paused clock plus what its readers used up.
pub(super) struct SimClock {
    start: Instant,
    used: Mutex<(Rng, Duration)>,
    runtime: Handle,
}

impl SimClock {
    pub(super) fn new(start: Instant, rng: Rng, runtime: Handle) -> SimClock {
        SimClock {
            runtime,
            start,
            used: Mutex::new((rng, Duration::ZERO)),
        }
    }
}

impl Clock for SimClock {
    fn monotonic(&self) -> Duration {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        // Steps seem quick or slow by chance, which decides whether they start on the pool.
        let micros = if used.0.chance(300) { 120 } else { 2 };
        used.1 += Duration::from_micros(micros);
        self.start.elapsed() + used.1
    }

    fn wall(&self) -> Duration {
        WALL + self.start.elapsed()
    }

    fn after(&self, pause: Duration, call: Box<dyn FnOnce() + Send>) {
        self.runtime.spawn(async move {
            tokio::time::sleep(pause).await;
            call();
        });
    }
}
