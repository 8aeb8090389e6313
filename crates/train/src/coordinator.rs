//! [`Coordinator`]: several threads that stop together.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tensorfleet_status::{Code, Result, Status, deadline_exceeded};

/// Tells threads to stop, and the first error of any of them. Clones are handles of the same one.
///
/// ```
/// use std::time::Duration;
/// use tensorfleet_train::Coordinator;
///
/// let coordinator = Coordinator::new();
/// let worker = coordinator.clone();
/// coordinator.spawn("worker", move || {
///     while !worker.should_stop() {
///         worker.wait_for_stop(Duration::from_millis(10));
///     }
///     Ok(())
/// })?;
/// coordinator.request_stop();
/// coordinator.join(Duration::from_secs(5))?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone, Default)]
pub struct Coordinator {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: bool,
    error: Option<Status>,
    running: Vec<String>,
    threads: Vec<JoinHandle<()>>,
}

impl Coordinator {
    /// A coordinator without threads.
    pub fn new() -> Coordinator {
        Coordinator::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks all threads to stop.
    pub fn request_stop(&self) {
        self.lock().stop = true;
        self.shared.changed.notify_all();
    }

    /// Asks all threads to stop because of an error. The first one is kept; the end of input is none.
    pub fn request_stop_with(&self, status: Status) {
        let mut state = self.lock();
        if state.error.is_none() && !state.stop && status.code() != Code::OutOfRange {
            state.error = Some(status);
        }
        state.stop = true;
        self.shared.changed.notify_all();
    }

    /// Whether threads should stop.
    pub fn should_stop(&self) -> bool {
        self.lock().stop
    }

    /// Waits until threads should stop, at most this long; whether they should.
    pub fn wait_for_stop(&self, timeout: Duration) -> bool {
        let state = self.lock();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, timeout, |state| !state.stop);
        waited.map_or_else(
            |poisoned| poisoned.into_inner().0.stop,
            |(state, _)| state.stop,
        )
    }

    /// The first error of any thread, given away.
    pub fn take_error(&self) -> Option<Status> {
        self.lock().error.take()
    }

    /// Starts a thread. Its error, or its panic, stops the others.
    pub fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let coordinator = self.clone();
        let label = name.to_owned();
        self.lock().running.push(label.clone());
        let run = move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            let error = match result {
                Ok(result) => result.err(),
                Err(panic) => {
                    let text = tensorfleet_status::panic_text(&*panic);
                    Some(tensorfleet_status::internal!(
                        "thread {label} panicked: {text}"
                    ))
                }
            };
            if let Some(status) = error {
                coordinator.request_stop_with(status);
            }
            let mut state = coordinator.lock();
            if let Some(index) = state.running.iter().position(|other| *other == label) {
                state.running.remove(index);
            }
            drop(state);
            coordinator.shared.changed.notify_all();
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        match thread {
            Ok(thread) => {
                self.lock().threads.push(thread);
                Ok(())
            }
            Err(error) => Err(tensorfleet_status::resource_exhausted!(
                "thread {name} cannot be started: {error}"
            )),
        }
    }

    /// Waits for all threads to end, at most `grace`; the first error of any of them. DEADLINE_EXCEEDED names
    /// those that do not end; they are left alone.
    pub fn join(&self, grace: Duration) -> Result<()> {
        let deadline = Instant::now() + grace;
        let mut state = self.lock();
        while !state.running.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let running = state.running.join(", ");
                return Err(deadline_exceeded!(
                    "threads did not stop within {grace:?}: {running}"
                ));
            }
            state = match self.shared.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        let threads = std::mem::take(&mut state.threads);
        let error = state.error.take();
        drop(state);
        for thread in threads {
            // Its work is over and its panic was caught.
            let _ = thread.join();
        }
        error.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn the_first_error_stops_all_and_is_told() {
        let coordinator = Coordinator::new();
        let waiting = coordinator.clone();
        let wait = move || {
            waiting.wait_for_stop(LONG);
            Ok(())
        };
        coordinator.spawn("waits", wait).unwrap();
        let fail = || Err(Status::new(Code::DataLoss, "gone"));
        coordinator.spawn("fails", fail).unwrap();
        assert_eq!(coordinator.join(LONG).unwrap_err().code(), Code::DataLoss);
        assert!(coordinator.should_stop());
    }

    #[test]
    fn a_panic_is_an_error_like_others() {
        let coordinator = Coordinator::new();
        coordinator.spawn("panics", || panic!("oh")).unwrap();
        let status = coordinator.join(LONG).unwrap_err();
        assert!(status.message().contains("thread panics panicked: oh"));
    }

    #[test]
    fn who_does_not_stop_is_named() {
        let coordinator = Coordinator::new();
        let deaf = || {
            std::thread::sleep(Duration::from_secs(2));
            Ok(())
        };
        coordinator.spawn("deaf", deaf).unwrap();
        coordinator.request_stop();
        let status = coordinator.join(Duration::from_millis(20)).unwrap_err();
        assert!(status.message().contains("deaf"), "{status}");
    }
}
