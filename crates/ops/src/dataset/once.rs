//! [`run`]: what a kernel does with an iterator within its step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use tensorfleet_kernel::{AsyncCtx, CancelGuard, Outputs};
use tensorfleet_math::par::Pool;
use tensorfleet_status::{Result, internal};

use super::home::Home;
use super::task::{Task, Work};

/// Work that ends with the outputs of a node.
pub(super) type Job = Box<dyn FnMut(&Waker) -> Poll<Result<Outputs>> + Send>;

/// Does the job, and finishes the node with what comes of it.
pub(super) fn run(ctx: AsyncCtx, home: Arc<Home>, job: Job) {
    let cancel = home.cancel.clone();
    let task = Task::new(Once {
        home,
        open: Mutex::new(Some(Open {
            ctx,
            job,
            guard: None,
        })),
    });
    let weak = Arc::downgrade(&task);
    let mut guard = Some(cancel.on_cancel(move |_| {
        if let Some(task) = weak.upgrade() {
            task.go_on();
        }
    }));
    if let Some(open) = &mut *task.work.lock() {
        open.guard = guard.take();
    }
    task.go_on();
}

struct Once {
    home: Arc<Home>,
    open: Mutex<Option<Open>>,
}

struct Open {
    ctx: AsyncCtx,
    job: Job,
    guard: Option<CancelGuard>,
}

impl Once {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of it, once something has.
    fn poll(&self, waker: &Waker) -> Option<(Open, Result<Outputs>)> {
        let mut open = self.lock();
        let job = &mut open.as_mut()?.job;
        let result = match self.home.cancel.check() {
            Err(reason) => Err(reason),
            Ok(()) => match catch_unwind(AssertUnwindSafe(|| job(waker))) {
                Ok(Poll::Pending) => return None,
                Ok(Poll::Ready(result)) => result,
                Err(_) => Err(internal!("the dataset panicked")),
            },
        };
        Some((open.take()?, result))
    }
}

impl Work for Once {
    fn work(&self, waker: &Waker) {
        if let Some((open, result)) = self.poll(waker) {
            let Open { ctx, job, guard } = open;
            drop(guard);
            drop(job);
            ctx.finish(result);
        }
    }

    fn pool(&self) -> &Arc<Pool> {
        &self.home.pool
    }
}
