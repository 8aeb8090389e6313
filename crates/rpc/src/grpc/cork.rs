//! [`Cork`]: what is ready at the same time leaves together.
//!
//! The first write of a burst waits until every other task that is ready had its turn. What they send on
//! this connection then goes out in the same system call and wakes the other end once. [`Burst`] is the waiting
//! without the stream, for writers that gather what they write.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that holds back the first write of each burst for a moment.
pub(super) struct Cork<T> {
    stream: T,
    /// It ends with a flush.
    burst: Burst,
}

/// What is written until there is nothing more to write.
#[derive(Default)]
pub(crate) struct Burst {
    /// Whether others had their turn since it began.
    is_due: bool,
}

impl Burst {
    /// Whether to write now; if not, the task is woken after the others.
    pub(crate) fn is_due(&mut self, context: &mut Context<'_>) -> bool {
        if !self.is_due {
            self.is_due = true;
            // It never is ready at once: it puts the task behind all that are.
            let _ = pin!(tokio::task::yield_now()).poll(context);
            return false;
        }
        true
    }

    /// All is written.
    pub(crate) fn end(&mut self) {
        self.is_due = false;
    }
}

impl<T> Cork<T> {
    pub(super) fn new(stream: T) -> Cork<T> {
        let burst = Burst::default();
        Cork { stream, burst }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Cork<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Cork<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.burst.is_due(context) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.burst.is_due(context) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.burst.end();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// Notes when it is written to.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<&'static str>>>);

    impl Log {
        fn note(&self, what: &'static str) {
            self.0.lock().unwrap().push(what);
        }

        fn take(&self) -> Vec<&'static str> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl AsyncWrite for Log {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.note("write");
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn ready_tasks_go_before_the_first_write_of_each_burst() {
        let log = Log::default();
        let mut stream = Cork::new(log.clone());
        for _ in 0..2 {
            let other = log.clone();
            tokio::spawn(async move { other.note("other") });
            stream.write_all(b"first").await.unwrap();
            let late = log.clone();
            tokio::spawn(async move { late.note("late") });
            stream.write_all(b"second").await.unwrap();
            assert_eq!(log.take(), ["other", "write", "write"]);
            stream.flush().await.unwrap();
            tokio::task::yield_now().await;
            assert_eq!(log.take(), ["late"]);
        }
    }
}
