//! Drives a line: reads records, answers calls, writes what is ready.
//!
//! One task does it all, so that a message wakes no more threads than the one that reads it: calls are
//! begun right where they are read.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::future::{AbortHandle, Aborted, abortable};
use futures_util::stream::{FuturesUnordered, Stream};
use http::HeaderMap;
use rustc_hash::FxHashMap;
use tensorfleet_status::{Result, Status};
use tensorfleet_tensor::Segments;
use tokio::io::{AsyncReadExt as _, AsyncWrite};
use tokio::net::UnixStream;

use super::caller::Line;
use super::load::{Load, Taken};
use super::record::{self, Method, Record};
use crate::grpc::{Burst, Call, Service, guarded, message};

/// Room for what comes in, at least.
const READ_ROOM: usize = 16 << 10;

/// So often the socket is read before something else gets its turn.
const READS: usize = 16;

/// How many pieces are written at once.
const PIECES: usize = 16;

/// A call being answered.
type Answering = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// The call's id, its result unless the caller cancelled it, and its place among the calls of the server.
type Answered = (u64, Result<Result<Segments>, Aborted>, Taken);

/// Reads, answers and writes until the line ends; a peer that stays silent for `patience` ends it.
pub(super) async fn drive<S: Service>(
    line: Arc<Line>,
    stream: UnixStream,
    service: Arc<S>,
    load: Load,
    patience: Option<Duration>,
) {
    let mut driver = Driver {
        line: &line,
        stream,
        service,
        load,
        read: BytesMut::with_capacity(READ_ROOM),
        calls: FuturesUnordered::new(),
        aborts: FxHashMap::default(),
        writing: VecDeque::new(),
        unsent: Vec::new(),
        skip: 0,
        burst: Burst::default(),
    };
    let gone = async {
        match patience {
            Some(patience) => line.until_gone(patience).await,
            None => std::future::pending().await,
        }
    };
    let reason = tokio::select! {
        biased;
        reason = poll_fn(|context| driver.poll(context)) => reason,
        reason = gone => {
            tracing::warn!("{reason}");
            reason
        }
    };
    tracing::debug!("the line to {} ended: {reason}", line.peer());
    line.close(&reason);
}

struct Driver<'a, S> {
    line: &'a Line,
    stream: UnixStream,
    service: Arc<S>,
    load: Load,
    read: BytesMut,
    calls: FuturesUnordered<Answering>,
    /// How to end the calls that are being answered.
    aborts: FxHashMap<u64, AbortHandle>,
    writing: VecDeque<Bytes>,
    /// Calls whose answers are not written yet: until then they are not over.
    unsent: Vec<Taken>,
    /// How much is still to come of a message that is too long.
    skip: usize,
    burst: Burst,
}

impl<S: Service> Driver<'_, S> {
    /// Goes on as far as it can; ready with the reason when the line ends.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<String> {
        self.line.driver.register(context.waker());
        if let Some(reason) = self.line.closed() {
            return Poll::Ready(reason);
        }
        let done = self.receive(context).and_then(|()| {
            self.answer(context);
            self.send(context)
        });
        match done {
            Ok(()) => Poll::Pending,
            Err(reason) => Poll::Ready(reason),
        }
    }

    fn receive(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        for _ in 0..READS {
            self.read.reserve(READ_ROOM / 4);
            match pin!(self.stream.read_buf(&mut self.read)).poll(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err("the other end closed it".to_owned()),
                Poll::Ready(Ok(count)) => {
                    self.line.heard.fetch_add(count as u64, Ordering::Relaxed);
                }
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
            let limit = self.line.max_message_bytes;
            self.skip();
            while let Some(record) = record::take(&mut self.read, limit)
                .map_err(|status| format!("it brought something else: {}", status.message()))?
            {
                self.take(record);
                self.skip();
            }
        }
        context.waker().wake_by_ref();
        Ok(())
    }

    /// Drops what came of a message that is too long.
    fn skip(&mut self) {
        let count = self.skip.min(self.read.len());
        self.read.advance(count);
        self.skip -= count;
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Call {
                id,
                method,
                message,
            } => self.begin(id, method, message),
            Record::Answer { id, message } => self.line.answered(id, Ok(message)),
            Record::Failure { id, status } => self.line.answered(id, Err(status)),
            Record::Cancel { id } => {
                if let Some(abort) = self.aborts.remove(&id) {
                    abort.abort();
                }
            }
            Record::TooLong { id, is_answer, len } => {
                self.skip = len;
                let error = message::too_large(len, self.line.max_message_bytes);
                if is_answer {
                    self.line.answered(id, Err(error));
                } else {
                    self.refuse(id, error);
                }
            }
            // Whatever is written shows that we are here.
            Record::Ping if !self.line.is_out_empty() => {}
            Record::Ping => self.line.put(record::put_pong),
            Record::Pong => {}
        }
    }

    fn refuse(&self, id: u64, error: Status) {
        self.line.put(|out| record::put_answer(out, id, Err(error)));
    }

    fn begin(&mut self, id: u64, method: Method, message: Bytes) {
        let (service, limit) = (self.service.clone(), self.line.max_message_bytes);
        let taken = match self.load.take(method) {
            Ok(taken) => taken,
            Err(error) => return self.refuse(id, error),
        };
        let call = async move {
            let call = Call {
                path: Cow::Borrowed(method.path()),
                message: message::unwrap(message, limit)?,
                headers: HeaderMap::new(),
                peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                deadline: None,
            };
            service.call(call).await
        };
        let (call, abort) = abortable(guarded(call));
        self.aborts.insert(id, abort);
        self.calls
            .push(Box::pin(async move { (id, call.await, taken) }));
    }

    fn answer(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(Some((id, result, taken))) =
            Pin::new(&mut self.calls).poll_next(context)
        {
            self.aborts.remove(&id);
            if let Ok(result) = result {
                self.line.put(|out| record::put_answer(out, id, result));
                self.unsent.push(taken);
            }
        }
    }

    fn send(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        loop {
            if self.writing.is_empty() {
                if self.line.is_out_empty() {
                    self.unsent.clear();
                    self.burst.end();
                    return Ok(());
                }
                // Tasks that are ready may have something to add.
                if !self.burst.is_due(context) {
                    return Ok(());
                }
                self.writing = self.line.take_out().into_pieces();
            }
            match self.write(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(count)) => self.written(count),
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    fn write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); PIECES];
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.writing) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, &slices[..count])
    }

    fn written(&mut self, mut count: usize) {
        while let Some(piece) = self.writing.front_mut() {
            if piece.len() > count {
                return piece.advance(count);
            }
            count -= piece.len();
            self.writing.pop_front();
        }
    }
}
