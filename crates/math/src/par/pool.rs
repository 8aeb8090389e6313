//! A fixed set of workers that run spawned jobs and help callers of [`Par::for_each`].
//!
//! ```text
//! for_each:  publish batch ─► caller and at most threads-1 workers claim chunks (one atomic) ─► caller waits for the claimed rest
//! worker:    batch open? help : job queued? run it : look out for a while : sleep
//! ```
//!
//! Workers look out only as far as there are cores for them: all of them while jobs of the pool call `for_each`, one fewer while
//! somebody else does, who needs a core himself. One too many would take turns with a thread that computes.
//!
//! A waiting caller runs nothing but chunks of its own batch, so it never picks up a foreign job that could block it. Waiting
//! cannot form a cycle: a thread takes foreign chunks only from the worker loop, never while it waits, so whoever it waits for
//! began before it. Lock order: the one `queue` mutex; it is never held while user code runs.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::{Claims, Par};

/// How long a worker that expects no work looks out for some before it sleeps.
const SHORT_LOOK: Duration = Duration::from_micros(30);
/// How long one looks out whose last pause was no longer than this: longer than the gaps between loops of a step, and than
/// most between two steps of a client that trains. Waking a core from its sleep takes a virtual machine up to 0.2 ms, in which
/// a loop is over that the other thread should have shared.
const LONG_LOOK: Duration = Duration::from_micros(600);
/// Who looks out for longer than this lets others run in between: there may be no core to spare.
const ALONE: Duration = Duration::from_micros(10);

/// Something to run once.
pub type Job = Box<dyn FnOnce() + Send>;
type Body = dyn Fn(Range<usize>) + Sync;

/// A fixed thread pool.
///
/// `Pool::new(n)` has `n` workers, so spawned jobs make progress while the caller is blocked elsewhere; a `for_each` uses at
/// most `n` threads, the caller among them. Dropping the pool runs what was spawned before and joins the workers.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Who runs spawned jobs instead of workers.
    elsewhere: Option<Box<dyn Fn(Job) + Send + Sync>>,
}

struct Shared {
    threads: usize,
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Items in `queue`, readable without the lock so that idle workers can poll.
    queued: AtomicUsize,
    /// Workers that will look into the queue without being woken. Changed under the lock, but for who gets free.
    looking: AtomicUsize,
    /// Whether the last `for_each` was called by a thread that is not a worker.
    outside: AtomicBool,
}

thread_local! {
    /// Whether this thread is a worker of some pool.
    static WORKER: Cell<bool> = const { Cell::new(false) };
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    batches: VecDeque<Arc<Batch>>,
    sleeping: usize,
    stop: bool,
}

/// One `for_each` in flight.
struct Batch {
    /// The caller's body with its lifetime erased; called only for a claimed chunk, see `Batch::work`.
    body: *const Body,
    chunks: Claims,
    /// Indices whose body has not returned yet; the caller leaves `for_each` only at zero.
    unfinished: AtomicUsize,
    /// Helpers that may still join; guarded by the queue lock, atomic only to be shared.
    seats: AtomicUsize,
    failed: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    caller: Thread,
}

// SAFETY: `body` points to a `Sync` closure, so calling it from several threads is allowed; the other fields are `Send`.
unsafe impl Send for Batch {}
// SAFETY: as above; all shared mutation goes through atomics and a mutex.
unsafe impl Sync for Batch {}

impl Pool {
    /// Starts `threads` workers (at least one).
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let shared = Arc::new(Shared::new(threads));
        let workers = (0..threads)
            .filter_map(|i| {
                let shared = Arc::clone(&shared);
                let name = format!("math-{i}");
                // A refused thread leaves fewer helpers; callers still finish their own loops.
                thread::Builder::new()
                    .name(name)
                    .spawn(move || shared.work())
                    .ok()
            })
            .collect();
        Self {
            shared,
            workers,
            elsewhere: None,
        }
    }

    /// A pool without threads: jobs are handed to `run`, which decides when they happen; loops run on their caller.
    pub fn elsewhere(run: impl Fn(Job) + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared::new(1)),
            workers: Vec::new(),
            elsewhere: Some(Box::new(run)),
        }
    }

    /// Queues an independent job; jobs start in the order they were spawned. A panic in it ends that job only.
    pub fn spawn(&self, job: Job) {
        if let Some(run) = &self.elsewhere {
            return run(job);
        }
        if self.workers.is_empty() {
            return run_job(job);
        }
        let mut queue = self.shared.lock();
        queue.jobs.push_back(job);
        self.shared.queued.fetch_add(1, Ordering::Release);
        self.shared.wake_for(queue, 1);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.notify_all();
        let me = thread::current().id();
        for worker in self.workers.drain(..) {
            // The last handle may be dropped by a job of this very pool: that worker ends by itself.
            if worker.thread().id() != me {
                let _ = worker.join();
            }
        }
    }
}

// SAFETY: chunks come from atomic counters of disjoint sections, which only grow up to the section's end, so they are disjoint
// and inside `0..len`; `for_each` returns or unwinds only after `unfinished` is zero, that is after each claimed body has
// returned.
unsafe impl Par for Pool {
    fn threads(&self) -> usize {
        self.shared.threads
    }

    fn for_each(&self, len: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
        let grain = grain.max(1);
        if len <= grain || self.shared.threads == 1 {
            if len > 0 {
                body(0..len);
            }
            return;
        }
        let helpers = (len.div_ceil(grain) - 1).min(self.shared.threads - 1);
        // SAFETY: only the lifetime changes; `Batch::wait` below keeps the borrow alive until nobody can call it any more.
        let body =
            unsafe { std::mem::transmute::<&(dyn Fn(Range<usize>) + Sync), &'static Body>(body) };
        let batch = Arc::new(Batch {
            body,
            chunks: Claims::new(len, grain, self.shared.threads),
            unfinished: AtomicUsize::new(len),
            seats: AtomicUsize::new(helpers),
            failed: AtomicBool::new(false),
            panic: Mutex::default(),
            caller: thread::current(),
        });
        self.shared.note_caller();
        self.shared.publish(&batch, helpers);
        batch.work(0, || ());
        self.shared.withdraw(&batch);
        batch.wait();
        let panic = batch
            .panic
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }
}

impl Shared {
    fn new(threads: usize) -> Shared {
        Shared {
            threads,
            queue: Mutex::default(),
            wake: Condvar::new(),
            queued: AtomicUsize::new(0),
            looking: AtomicUsize::new(0),
            outside: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, batch: &Arc<Batch>, helpers: usize) {
        let mut queue = self.lock();
        queue.batches.push_back(Arc::clone(batch));
        self.queued.fetch_add(1, Ordering::Release);
        self.wake_for(queue, helpers);
    }

    /// Wakes as many workers as are needed for the last `added` seats and jobs, besides those that look out.
    fn wake_for(&self, queue: MutexGuard<'_, Queue>, added: usize) {
        let seats = |batch: &Arc<Batch>| batch.seats.load(Ordering::Relaxed);
        let open = queue.jobs.len() + queue.batches.iter().map(seats).sum::<usize>();
        let looking = self.looking.load(Ordering::Acquire);
        let wake = open.saturating_sub(looking).min(added).min(queue.sleeping);
        drop(queue);
        for _ in 0..wake {
            self.wake.notify_one();
        }
    }

    /// Remembers who calls `for_each`, for those who look out.
    fn note_caller(&self) {
        let outside = !WORKER.get();
        if self.outside.load(Ordering::Relaxed) != outside {
            self.outside.store(outside, Ordering::Relaxed);
        }
    }

    fn withdraw(&self, batch: &Arc<Batch>) {
        if batch.seats.load(Ordering::Acquire) == 0 {
            return; // the helper that took the last seat took the batch off the queue
        }
        self.remove(&mut self.lock(), batch);
    }

    fn remove(&self, queue: &mut Queue, batch: &Arc<Batch>) {
        let found = queue.batches.iter().position(|b| Arc::ptr_eq(b, batch));
        if let Some(i) = found {
            queue.batches.remove(i);
            self.queued.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn work(&self) {
        WORKER.set(true);
        self.looking.fetch_add(1, Ordering::AcqRel);
        let mut look = SHORT_LOOK;
        loop {
            let pause = Pause::begin();
            let mut queue = self.lock();
            loop {
                if let Some((batch, seat)) = self.join_batch(&mut queue) {
                    self.looking.fetch_sub(1, Ordering::AcqRel);
                    drop(queue);
                    look = pause.next_look();
                    batch.work(seat, || {
                        self.looking.fetch_add(1, Ordering::AcqRel);
                    });
                    break;
                }
                if let Some(job) = queue.jobs.pop_front() {
                    self.queued.fetch_sub(1, Ordering::Relaxed);
                    self.looking.fetch_sub(1, Ordering::AcqRel);
                    drop(queue);
                    look = pause.next_look();
                    run_job(job);
                    self.looking.fetch_add(1, Ordering::AcqRel);
                    break;
                }
                if queue.stop {
                    return;
                }
                queue = if pause.is_longer_than(look) || self.too_many_look() {
                    self.sleep(queue)
                } else {
                    drop(queue);
                    let stirred =
                        || self.queued.load(Ordering::Acquire) != 0 || self.too_many_look();
                    poll(look, stirred);
                    self.lock()
                };
            }
        }
    }

    /// Whether more workers look out than have a core for it.
    fn too_many_look(&self) -> bool {
        let outside = usize::from(self.outside.load(Ordering::Relaxed));
        self.looking.load(Ordering::Relaxed) > (self.threads - outside).max(1)
    }

    fn sleep<'a>(&self, mut queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.looking.fetch_sub(1, Ordering::AcqRel);
        queue.sleeping += 1;
        queue = self
            .wake
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner);
        queue.sleeping -= 1;
        self.looking.fetch_add(1, Ordering::AcqRel);
        queue
    }

    /// Takes a seat in the oldest open batch, and tells its number.
    fn join_batch(&self, queue: &mut Queue) -> Option<(Arc<Batch>, usize)> {
        let batch = Arc::clone(queue.batches.front()?);
        let left = batch.seats.load(Ordering::Relaxed) - 1;
        batch.seats.store(left, Ordering::Release);
        if left == 0 {
            self.remove(queue, &batch);
        }
        Some((batch, left + 1))
    }
}

impl Batch {
    /// Claims and runs chunks until none is left, which is told to `free` before anybody hears that the batch is finished. The
    /// caller has seat 0.
    fn work(&self, seat: usize, free: impl FnOnce()) {
        let mut free = Some(free);
        for range in self.chunks.of_member(seat) {
            let len = range.len();
            if !self.failed.load(Ordering::Relaxed) {
                // SAFETY: this thread holds an unfinished chunk, so the caller is still inside `for_each` and the body alive.
                let body = unsafe { &*self.body };
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(range))) {
                    self.failed.store(true, Ordering::Relaxed);
                    let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(payload);
                }
            }
            if self.chunks.are_over()
                && let Some(free) = free.take()
            {
                free();
            }
            if self.unfinished.fetch_sub(len, Ordering::AcqRel) == len {
                self.caller.unpark();
            }
        }
        if let Some(free) = free {
            free();
        }
    }

    fn wait(&self) {
        let finished = || self.unfinished.load(Ordering::Acquire) == 0;
        poll(LONG_LOOK, finished);
        while !finished() {
            thread::park();
        }
    }
}

/// The time in which a worker has nothing to do.
struct Pause(Instant);

impl Pause {
    fn begin() -> Pause {
        Pause(Instant::now())
    }

    fn is_longer_than(&self, time: Duration) -> bool {
        self.0.elapsed() > time
    }

    /// How long to look out in the next pause, at the end of this one: it will be as long as this was.
    fn next_look(&self) -> Duration {
        if self.0.elapsed() > LONG_LOOK {
            SHORT_LOOK
        } else {
            LONG_LOOK
        }
    }
}

/// Looks at `done` until it holds or the time is up.
fn poll(time: Duration, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        match begin.elapsed() {
            elapsed if elapsed > time => return,
            elapsed if elapsed > ALONE => thread::yield_now(),
            _ => {}
        }
        for _ in 0..16 {
            std::hint::spin_loop();
        }
    }
}

fn run_job(job: Job) {
    // The panic hook has reported it; the worker must outlive it.
    let _ = catch_unwind(AssertUnwindSafe(job));
}
