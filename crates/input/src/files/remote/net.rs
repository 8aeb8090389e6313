//! The thread that speaks to stores, and answers that are under way.

use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, sync_channel};

use tensorfleet_status::{Result, internal, resource_exhausted};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

/// One thread is enough: it waits most of the time.
static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("input-net")
        .enable_all()
        .build()
});

/// An answer under way; nobody waits for it any more when it is dropped.
pub(super) struct Pending<T> {
    answer: Receiver<T>,
    task: AbortHandle,
}

impl<T: Send + 'static> Pending<T> {
    /// Asks, without waiting.
    pub(super) fn start(request: impl Future<Output = T> + Send + 'static) -> Result<Pending<T>> {
        let runtime = RUNTIME.as_ref().map_err(|error| {
            resource_exhausted!("cannot start the thread that reads from object stores: {error}")
        })?;
        let (sender, answer) = sync_channel(1);
        let task = runtime.spawn(async move {
            // Nobody listens if the file was closed meanwhile.
            let _ = sender.send(request.await);
        });
        let task = task.abort_handle();
        Ok(Pending { answer, task })
    }

    /// The answer. It blocks the thread, inside of somebody's runtime too, where waiting for another one would panic.
    pub(super) fn wait(self) -> Result<T> {
        let answer = self.answer.recv();
        answer.map_err(|_| internal!("a request to an object store ended without an answer"))
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
