//! [`ToTask`]: the line to one task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tensorfleet_status::Code;

use super::caller::Line;
use super::lines::Lines;
use crate::grpc::Channel;

/// A task that takes no lines is asked again so much later: another program may run there then.
const DECLINED: Duration = Duration::from_secs(30);

/// The next attempt is made so long after any other: the task may be starting.
const AGAIN: Duration = Duration::from_millis(500);

/// The line to the task behind a channel, if it is on this machine and takes lines.
pub(crate) struct ToTask {
    channel: Channel,
    lines: Option<Arc<Lines>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    line: Option<Arc<Line>>,
    /// When the next may be opened; at once if never was one.
    next: Option<Instant>,
}

impl ToTask {
    pub(crate) fn new(channel: Channel, lines: Option<Arc<Lines>>) -> ToTask {
        ToTask {
            channel,
            lines,
            state: Arc::default(),
        }
    }

    /// The line, if there is one. If there could be one, it is opened meanwhile.
    pub(crate) fn current(&self) -> Option<Arc<Line>> {
        let lines = self.lines.as_ref()?;
        let mut state = lock(&self.state);
        if let Some(line) = &state.line {
            if line.is_open() {
                return Some(line.clone());
            }
            state.line = None;
        }
        let is_time = state.next.is_none_or(|next| next <= Instant::now());
        if is_time && self.channel.is_same_host() {
            state.next = Some(Instant::now() + DECLINED);
            let (lines, channel) = (lines.clone(), self.channel.clone());
            let state = self.state.clone();
            tokio::spawn(async move {
                let opened = lines.open(&channel).await;
                let mut state = lock(&state);
                state.next = Some(Instant::now() + AGAIN);
                match opened {
                    Ok(line) => state.line = Some(line),
                    Err(error) => {
                        tracing::debug!("no line to {}: {error}", channel.address());
                        if [Code::Unimplemented, Code::FailedPrecondition].contains(&error.code()) {
                            state.next = Some(Instant::now() + DECLINED);
                        }
                    }
                }
            });
        }
        None
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
