//! Whether a peer is still there while calls wait for it.
//!
//! A call may rightly take hours, so silence alone means nothing. When nothing was heard for a while and a
//! call waits, the peer is asked, twice over:
//!
//! * by a PING, which every HTTP/2 peer answers even while all its threads compute; but TensorFlow's servers
//!   disconnect a peer after a few PINGs without anything else (`too_many_pings`);
//! * by a call that is answered at once. Answering it makes TensorFlow's servers forget earlier PINGs.
//!
//! Whatever is heard, from whichever call, shows that the peer is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Ping, PingPong};
use http::Request;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::progress::Traffic;

/// After a PING whose call was not answered TensorFlow's servers want to be left alone for so long.
const PING_AGAIN: Duration = Duration::from_secs(300);

/// Which call is answered at once, and how long its answer may take.
#[derive(Clone, Debug)]
pub struct KeepAlive {
    /// A peer that says nothing for this long although it is asked is given up.
    pub timeout: Duration,
    /// The method that is called without a message.
    pub path: &'static str,
}

/// What is said of a peer that was given up.
pub(crate) fn silent(peer: &str, timeout: Duration) -> String {
    format!("{peer} has not answered for {timeout:?}: it is gone, paused or cut off")
}

/// What is watched.
pub(super) struct Watched {
    pub(super) ping: PingPong,
    pub(super) traffic: Arc<Traffic>,
    /// How many calls wait.
    pub(super) calls: Arc<AtomicUsize>,
}

impl Watched {
    /// Returns when the peer is gone. `question` is the call that it is asked by.
    pub(super) async fn until_gone(
        mut self,
        timeout: Duration,
        question: impl Fn() -> Option<(SendRequest<Bytes>, Request<()>)>,
    ) {
        // Some silence before it is asked, the rest for its answer.
        let quiet = timeout / 4;
        let mut asked = JoinSet::new();
        let mut last_ping = None::<Instant>;
        loop {
            let heard = self.traffic.read();
            tokio::time::sleep(quiet).await;
            if self.calls.load(Ordering::Relaxed) == 0 || self.traffic.read() != heard {
                continue;
            }
            while asked.try_join_next().is_some() {}
            let too_soon = last_ping.is_some_and(|ping| ping.elapsed() < PING_AGAIN);
            if !asked.is_empty() && too_soon {
                // It answered the PING but is too busy for the call.
                continue;
            }
            last_ping = Some(Instant::now());
            if let Some((sender, request)) = question() {
                asked.spawn(ask(sender, request));
            }
            let answer = self.ping.ping(Ping::opaque());
            // Whatever comes of it, only what was heard counts.
            let _ = tokio::time::timeout(timeout - quiet, answer).await;
            if self.traffic.read() == heard {
                return;
            }
        }
    }
}

/// Makes a call of no message and waits for the beginning of its answer.
async fn ask(sender: SendRequest<Bytes>, request: Request<()>) {
    let Ok(mut sender) = sender.ready().await else {
        return;
    };
    let Ok((response, mut stream)) = sender.send_request(request, false) else {
        return;
    };
    let empty = Bytes::from_static(&[0; 5]);
    if stream.send_data(empty, true).is_ok() {
        // Its status does not matter.
        let _ = response.await;
    }
}
