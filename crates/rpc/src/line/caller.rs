//! [`Line`]: the calls made on a line and what waits to be written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use prost::Message;
use rustc_hash::FxHashMap;
use tensorfleet_status::{Result, Status, unavailable};
use tensorfleet_tensor::Segments;
use tokio::sync::oneshot;

use super::record::{self, Method};
use crate::grpc::{message, silent};

/// A line to another task. Its driver must run.
pub(crate) struct Line {
    /// Who is at the other end, in words.
    peer: String,
    /// The largest message sent or taken.
    pub(super) max_message_bytes: usize,
    state: Mutex<State>,
    /// Woken when there is something to write.
    pub(super) driver: AtomicWaker,
    /// Bytes that came in.
    pub(super) heard: AtomicU64,
}

#[derive(Default)]
struct State {
    out: Segments,
    waiting: FxHashMap<u64, oneshot::Sender<Result<Bytes>>>,
    last_id: u64,
    /// Why it is closed.
    closed: Option<String>,
}

impl Line {
    pub(super) fn new(peer: String, max_message_bytes: usize) -> Line {
        Line {
            peer,
            max_message_bytes,
            state: Mutex::default(),
            driver: AtomicWaker::new(),
            heard: AtomicU64::new(0),
        }
    }

    /// Whether calls can be made.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().closed.is_none()
    }

    /// Makes a call. Dropping the future cancels it.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
    ) -> Result<A> {
        let (id, answer) = self.begin(method, request)?;
        let mut waits = Waits {
            line: self,
            id,
            answer,
        };
        let answer = (&mut waits.answer).await;
        let message = answer.unwrap_or_else(|_| Err(gone("the line was dropped")))?;
        message::decode_whole(message, self.max_message_bytes)
    }

    /// Makes a call whose answer nobody waits for.
    pub(crate) fn tell(&self, method: Method, request: &impl Message) -> Result<()> {
        self.begin(method, request).map(drop)
    }

    fn begin(
        &self,
        method: Method,
        request: &impl Message,
    ) -> Result<(u64, oneshot::Receiver<Result<Bytes>>)> {
        let encoded = message::encode(request, self.max_message_bytes)?;
        let (tell, answer) = oneshot::channel();
        let mut state = self.lock();
        if let Some(reason) = &state.closed {
            return Err(gone(reason));
        }
        state.last_id += 1;
        let id = state.last_id;
        state.waiting.insert(id, tell);
        record::put_call(&mut state.out, id, method, encoded);
        drop(state);
        self.driver.wake();
        Ok((id, answer))
    }

    /// Hands an answer to whoever waits for it, if somebody still does.
    pub(super) fn answered(&self, id: u64, answer: Result<Bytes>) {
        let waiting = self.lock().waiting.remove(&id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    /// Adds to what is written next.
    pub(super) fn put(&self, put: impl FnOnce(&mut Segments)) {
        put(&mut self.lock().out);
    }

    /// Everything that waits to be written.
    pub(super) fn take_out(&self) -> Segments {
        std::mem::take(&mut self.lock().out)
    }

    /// Whether nothing waits to be written.
    pub(super) fn is_out_empty(&self) -> bool {
        self.lock().out.is_empty()
    }

    /// Ends the line: what waits for an answer fails, and so does whoever calls from now on.
    pub(super) fn close(&self, reason: &str) {
        let waiting = {
            let mut state = self.lock();
            state.closed.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut state.waiting)
        };
        for waiting in waiting.into_values() {
            let _ = waiting.send(Err(gone(reason)));
        }
        self.driver.wake();
    }

    /// Why it is closed, if it is.
    pub(super) fn closed(&self) -> Option<String> {
        self.lock().closed.clone()
    }

    /// Returns when the peer has said nothing for `timeout` though a call waits and it was asked.
    pub(super) async fn until_gone(&self, timeout: Duration) -> String {
        let quiet = timeout / 4;
        'ask: loop {
            let heard = self.heard.load(Ordering::Relaxed);
            tokio::time::sleep(quiet).await;
            if self.lock().waiting.is_empty() || self.heard.load(Ordering::Relaxed) != heard {
                continue;
            }
            self.put(record::put_ping);
            self.driver.wake();
            for _ in 0..3 {
                tokio::time::sleep(quiet).await;
                if self.heard.load(Ordering::Relaxed) != heard {
                    continue 'ask;
                }
            }
            return silent(&self.peer, timeout);
        }
    }

    /// Who is at the other end.
    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call hears when its line breaks; the words are those of a broken connection.
fn gone(reason: &str) -> Status {
    unavailable!("Socket closed ({reason})")
}

/// A call that waits for its answer.
struct Waits<'a> {
    line: &'a Line,
    id: u64,
    answer: oneshot::Receiver<Result<Bytes>>,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.line.lock();
        if state.waiting.remove(&self.id).is_some() {
            record::put_cancel(&mut state.out, self.id);
            drop(state);
            self.line.driver.wake();
        }
    }
}
