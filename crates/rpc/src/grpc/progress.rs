//! [`Progress`]: a stream that counts its bytes, so that a stalled or vanished peer can be told from a slow one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose bytes are counted.
pub(super) struct Progress<T> {
    stream: T,
    traffic: Arc<Traffic>,
}

/// How many bytes went each way so far.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    read: AtomicU64,
    written: AtomicU64,
}

impl Traffic {
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

impl<T> Progress<T> {
    /// The stream, and where its bytes are counted.
    pub(super) fn new(stream: T) -> (Progress<T>, Arc<Traffic>) {
        let traffic = Arc::new(Traffic::default());
        let counted = traffic.clone();
        (Progress { stream, traffic }, counted)
    }

    fn count(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(len)) = &result {
            let written = &self.traffic.written;
            written.fetch_add(*len as u64, Ordering::Relaxed);
        }
        result
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Progress<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len().saturating_sub(before);
        self.traffic.read.fetch_add(read as u64, Ordering::Relaxed);
        result
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Progress<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.count(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
