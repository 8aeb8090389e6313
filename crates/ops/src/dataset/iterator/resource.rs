//! [`IteratorResource`]: where an iterator lives, and the line of those who want its next element.
//!
//! ```text
//! submit ─► in line ─► the iterator is asked ─┬─► element: the first in line has it
//!                           ▲                 └─► waits, holding no thread
//!                           └── woken by what it waits for
//! ```
//!
//! Who leaves the line, because its step is over, takes nothing along: what was begun is for the next. No lock is held while a
//! request is answered or a cancellation registered.
//!
//! Where we differ: a step that is cancelled while it waits ends the wait only; in TensorFlow it ends the iterator.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tensorfleet_kernel::{AsyncCtx, CancelGuard, Outputs, Resource};
use tensorfleet_math::par::Pool;
use tensorfleet_status::{Result, cancelled, failed_precondition};

use crate::dataset::home::{Home, Place};
use crate::dataset::task::{Task, Work, guarded};
use crate::dataset::value::{AtEnd, Dataset, Element, Iterate, Spec};

/// A place for an iterator.
pub(crate) struct IteratorResource {
    pub(super) spec: Spec,
    running: Mutex<Option<Arc<Task<Running>>>>,
}

impl Resource for IteratorResource {
    fn type_name(&self) -> &'static str {
        "N10tensorflow4data16IteratorResourceE"
    }

    fn on_removed(&self) {
        self.stop();
    }
}

impl Drop for IteratorResource {
    fn drop(&mut self) {
        self.stop();
    }
}

impl IteratorResource {
    /// A place without an iterator.
    pub(super) fn new(spec: Spec) -> IteratorResource {
        IteratorResource {
            spec,
            running: Mutex::new(None),
        }
    }

    /// Puts an iterator of the dataset there, instead of the one that was.
    pub(super) fn start(&self, dataset: &Dataset, home: Arc<Home>) -> Result<()> {
        self.spec.check(dataset.spec())?;
        let place = Place::at(home);
        let iterator = dataset.iterate(&place)?;
        let running = Task::new(Running::new(iterator, place.home));
        let before = self.lock().replace(running);
        if let Some(before) = before {
            before.work.stop();
        }
        Ok(())
    }

    /// Answers with the next element.
    pub(super) fn submit(&self, ctx: AsyncCtx, answer: Answer) {
        let running = self.lock().clone();
        match running {
            Some(running) => submit(&running, ctx, answer),
            None => ctx.fail(failed_precondition!(
                "GetNext() failed because the iterator has not been initialized. Ensure that you have run the \
                 initializer operation for this iterator before getting the next element."
            )),
        }
    }

    fn stop(&self) {
        let running = self.lock().take();
        if let Some(running) = running {
            running.work.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Task<Running>>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an element, or the end, is for the node that asked.
pub(super) type Answer = Box<dyn FnOnce(Option<Element>) -> Result<Outputs> + Send>;

/// An iterator and those who want something of it.
pub(super) struct Running {
    home: Arc<Home>,
    iterator: Mutex<Box<dyn Iterate>>,
    line: Mutex<Line>,
    /// How long it took the last times, in nanoseconds.
    took: AtomicU64,
}

#[derive(Default)]
struct Line {
    requests: VecDeque<Request>,
    /// An element that came when nobody wanted it any more.
    kept: Option<Result<Option<Element>>>,
    next_id: u64,
}

struct Request {
    id: u64,
    ctx: AsyncCtx,
    answer: Answer,
    guard: Option<CancelGuard>,
}

/// Iterators that take longer than this go on in the pool: the thread that asks has other things to do.
const QUICK_NANOS: u64 = 50_000;

impl Running {
    fn new(iterator: Box<dyn Iterate>, home: Arc<Home>) -> Running {
        Running {
            home,
            iterator: Mutex::new(iterator),
            line: Mutex::default(),
            took: AtomicU64::new(u64::MAX),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all that goes on for it. Who waits hears of it from what it waits for.
    fn stop(&self) {
        self.home
            .cancel
            .cancel(cancelled!("Iterator was cancelled"));
        // Its stages may own tasks that own it; if somebody is at it, it ends with the calls that were just cancelled.
        if let Ok(mut iterator) = self.iterator.try_lock() {
            let before = std::mem::replace(&mut *iterator, Box::new(AtEnd));
            drop(iterator);
            drop(before);
        }
        let requests = std::mem::take(&mut self.line().requests);
        for request in requests {
            drop(request.guard);
            request.ctx.fail(cancelled!("Iterator was cancelled"));
        }
    }

    /// Answers a request whose step is no longer wanted.
    fn cancel(&self, id: u64) {
        let request = {
            let requests = &mut self.line().requests;
            let index = requests.iter().position(|request| request.id == id);
            index.and_then(|index| requests.remove(index))
        };
        if let Some(request) = request {
            drop(request.guard);
            request.ctx.fail(cancelled!("Operation was cancelled"));
        }
    }

    /// The next element for whoever is first in line, `None` if it has to wait or nobody is there.
    fn next(&self, waker: &Waker) -> Option<Result<Option<Element>>> {
        {
            let mut line = self.line();
            if line.requests.is_empty() {
                return None;
            }
            if let Some(kept) = line.kept.take() {
                return Some(kept);
            }
        }
        let mut iterator = self.iterator.lock().unwrap_or_else(PoisonError::into_inner);
        match guarded(&mut **iterator, waker) {
            Poll::Ready(next) => Some(next),
            Poll::Pending => None,
        }
    }
}

impl Work for Running {
    fn work(&self, waker: &Waker) {
        loop {
            let began = self.home.now();
            let next = self.next(waker);
            let nanos = self.home.now().saturating_sub(began).as_nanos() as u64;
            let Some(next) = next else { return };
            let before = self.took.load(Ordering::Relaxed);
            let took = match before {
                u64::MAX => nanos,
                before => before / 4 * 3 + nanos / 4,
            };
            self.took.store(took, Ordering::Relaxed);
            let request = {
                let mut line = self.line();
                match line.requests.pop_front() {
                    Some(request) => request,
                    None => {
                        line.kept = Some(next);
                        return;
                    }
                }
            };
            drop(request.guard);
            let outputs = next.and_then(request.answer);
            request.ctx.finish(outputs);
        }
    }

    fn pool(&self) -> &Arc<Pool> {
        &self.home.pool
    }
}

fn submit(task: &Arc<Task<Running>>, ctx: AsyncCtx, answer: Answer) {
    let running = &task.work;
    let cancel = ctx.env().cancel.clone();
    // Functions may be called by iterators: those that they ask go on elsewhere, not on top of these.
    let is_called = ctx.env().call_frame.depth() > 0;
    let id = {
        let mut line = running.line();
        let id = line.next_id;
        line.next_id += 1;
        line.requests.push_back(Request {
            id,
            ctx,
            answer,
            guard: None,
        });
        id
    };
    if !is_called && running.took.load(Ordering::Relaxed) < QUICK_NANOS {
        task.go_on_here();
    } else {
        task.go_on();
    }
    let waits = running.line().requests.iter().any(|one| one.id == id);
    if !waits {
        return;
    }
    let weak = Arc::downgrade(task);
    let mut guard = Some(cancel.on_cancel(move |_| {
        if let Some(task) = weak.upgrade() {
            task.work.cancel(id);
        }
    }));
    if let Some(request) = running.line().requests.iter_mut().find(|one| one.id == id) {
        request.guard = guard.take();
    }
    // Else it was answered meanwhile; the guard must not be dropped under the lock.
    drop(guard);
}
