//! [`Clock`]: what time it is, and who is called when it is later.
//!
//! It comes from outside, so that tests can make it up. The machine's clock has a thread for its calls, which starts with the
//! first of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Something to call once.
type Call = Box<dyn FnOnce() + Send>;

/// The time.
pub trait Clock: Send + Sync {
    /// Monotonic time since some fixed moment.
    fn monotonic(&self) -> Duration;
    /// Time since 1970.
    fn wall(&self) -> Duration;
    /// Calls once this much time has passed, on a thread that others wait for, too: what takes long belongs on the pool.
    /// Calls that are still to come when the clock goes are dropped.
    fn after(&self, pause: Duration, call: Box<dyn FnOnce() + Send>);
}

/// The machine's clock.
pub struct SystemClock {
    start: Instant,
    timer: OnceLock<Timer>,
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock {
            start: Instant::now(),
            timer: OnceLock::new(),
        }
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> Duration {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    }

    fn after(&self, pause: Duration, call: Call) {
        self.timer
            .get_or_init(Timer::start)
            .add(Instant::now() + pause.min(LONGEST), call);
    }
}

/// Longer than any server lives: later moments may not exist on the machine's clock.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A thread that sleeps until the next call is due.
struct Timer {
    shared: Arc<Shared>,
    /// Whether the machine gave us a thread.
    runs: bool,
}

#[derive(Default)]
struct Shared {
    calls: Mutex<Calls>,
    changed: Condvar,
}

#[derive(Default)]
struct Calls {
    /// By moment, and in order of their coming.
    due: BTreeMap<(Instant, u64), Call>,
    count: u64,
    stop: bool,
}

impl Timer {
    fn start() -> Timer {
        let shared = Arc::<Shared>::default();
        let theirs = shared.clone();
        let thread = thread::Builder::new().name("clock".to_owned());
        let runs = thread.spawn(move || theirs.work()).is_ok();
        Timer { shared, runs }
    }

    fn add(&self, at: Instant, call: Call) {
        if !self.runs {
            // Too early is better than never.
            return call();
        }
        let mut calls = self.shared.lock();
        let number = calls.count;
        calls.count += 1;
        let sooner = calls
            .due
            .first_key_value()
            .is_none_or(|(first, _)| at < first.0);
        calls.due.insert((at, number), call);
        if sooner {
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // The thread is not waited for: what it calls may hold the last handle of the clock.
        let calls = {
            let mut calls = self.shared.lock();
            calls.stop = true;
            std::mem::take(&mut calls.due)
        };
        self.shared.changed.notify_one();
        drop(calls);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut calls = self.lock();
        while !calls.stop {
            let Some(first) = calls.due.first_entry() else {
                calls = self
                    .changed
                    .wait(calls)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = first.key().0.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let call = first.remove();
                drop(calls);
                // A panic in one call must not take the others' time away.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
                calls = self.lock();
            } else {
                calls = self
                    .changed
                    .wait_timeout(calls, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn calls_come_in_the_order_of_their_moments() {
        let clock = SystemClock::default();
        let (tell, told) = mpsc::channel();
        for millis in [60u64, 20, 40, 0] {
            let tell = tell.clone();
            let pause = Duration::from_millis(millis);
            clock.after(pause, Box::new(move || tell.send(millis).unwrap()));
        }
        let began = clock.monotonic();
        let order: Vec<u64> = told.iter().take(4).collect();
        assert_eq!(order, [0, 20, 40, 60]);
        assert!(clock.monotonic() - began >= Duration::from_millis(50));
    }

    #[test]
    fn a_call_may_panic_and_a_clock_that_goes_forgets_its_calls() {
        let clock = SystemClock::default();
        let (tell, told) = mpsc::channel();
        let late = tell.clone();
        clock.after(Duration::MAX, Box::new(move || late.send(2).unwrap()));
        clock.after(Duration::ZERO, Box::new(|| panic!("a call of a test")));
        clock.after(
            Duration::from_millis(1),
            Box::new(move || tell.send(1).unwrap()),
        );
        assert_eq!(told.recv(), Ok(1));
        drop(clock);
        assert!(told.recv().is_err());
    }
}
