//! [`Batcher`]: rows of steps gather in batches, which are worked on when they are full or their time has come.
//!
//! Lock order: the one lock is never held while a task is answered, a function is called, a cancellation is registered or the
//! clock is asked to call, because all of these may run other kernels, or ours again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tensorfleet_kernel::{Clock, Resource};
use tensorfleet_status::{Result, cancelled, ensure};

use super::options::Options;
use super::task::Task;
use super::work::work;

/// The batches of one resource: lines by name, which share its threads.
pub(super) struct Batcher(Arc<Inner>);

struct Inner {
    options: Options,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lines: Vec<Line>,
    /// Where the next look for a batch begins, so that no line is forgotten for another one.
    turn: usize,
    running: usize,
    next_id: u64,
    /// When the clock will call, if it was asked to.
    armed: Option<Duration>,
}

/// Batches that wait under one name.
struct Line {
    name: String,
    full: VecDeque<Vec<Task>>,
    open: Vec<Task>,
    /// When the first rows of the open batch came.
    since: Duration,
}

impl Resource for Batcher {
    fn type_name(&self) -> &'static str {
        "BatchResource"
    }
}

fn rows(batch: &[Task]) -> usize {
    batch.iter().map(|task| task.rows).sum()
}

impl Batcher {
    pub(super) fn new(options: Options, clock: Arc<dyn Clock>) -> Batcher {
        Batcher(Arc::new(Inner {
            options,
            clock,
            state: Mutex::default(),
        }))
    }

    /// Puts the rows of a task in line; it is answered when their batch is done, or at once if there is no room.
    pub(super) fn submit(&self, line: &str, mut task: Task) {
        let inner = &self.0;
        let cancel = task.env.cancel.clone();
        let now = inner.clock.monotonic();
        let mut refused = None;
        let id = {
            let mut state = inner.lock();
            state.next_id += 1;
            task.id = state.next_id;
            let id = task.id;
            let line = state.line(line);
            match line.admit(&inner.options, task.rows) {
                Ok(()) => line.add(&inner.options, task, now),
                Err(status) => refused = Some((task, status)),
            }
            id
        };
        if let Some((task, status)) = refused {
            return (task.done)(Err(status));
        }
        inner.dispatch();
        let weak = Arc::downgrade(inner);
        // It finds nothing once the batch is worked on.
        cancel.on_cancel(move |_| forget(&weak, id)).detach();
    }
}

/// Answers the tasks of a run that is no longer wanted, as far as they still wait.
fn forget(inner: &Weak<Inner>, id: u64) {
    let Some(inner) = inner.upgrade() else {
        return;
    };
    let mut found = Vec::new();
    {
        let mut state = inner.lock();
        for line in &mut state.lines {
            for batch in line.full.iter_mut().chain([&mut line.open]) {
                found.extend(batch.extract_if(.., |task| task.id == id));
            }
            line.full.retain(|batch| !batch.is_empty());
        }
    }
    for task in found {
        (task.done)(Err(cancelled!(
            "the step was cancelled while it waited for its batch"
        )));
    }
}

impl State {
    fn line(&mut self, name: &str) -> &mut Line {
        let place = match self.lines.iter().position(|line| line.name == name) {
            Some(place) => place,
            None => {
                self.lines.push(Line {
                    name: name.to_owned(),
                    full: VecDeque::new(),
                    open: Vec::new(),
                    since: Duration::ZERO,
                });
                self.lines.len() - 1
            }
        };
        &mut self.lines[place]
    }

    /// The next batch that may be worked on.
    fn next(&mut self, options: &Options, now: Duration) -> Option<Vec<Task>> {
        let count = self.lines.len();
        for step in 0..count {
            let place = (self.turn + step) % count;
            let room = |most: usize| self.running < most;
            let line = &mut self.lines[place];
            if !room(options.running) {
                return None;
            }
            let batch = match line.full.pop_front() {
                Some(batch) => Some(batch),
                None if room(options.running_open) => line.take_open(options, now),
                None => None,
            };
            if batch.is_some() {
                self.turn = place + 1;
                self.running += 1;
                return batch;
            }
        }
        None
    }
}

impl Line {
    /// Whether there is room for so many rows, in TensorFlow's words where there is not.
    fn admit(&self, options: &Options, more: usize) -> Result<()> {
        let (open, waiting) = (rows(&self.open), self.full.len() + 1);
        ensure!(
            more <= options.largest_task,
            invalid_argument,
            "Task size {more} is larger than maximum input batch size {}",
            options.largest_task
        );
        if options.splits {
            let room = options.waiting.saturating_sub(waiting) * options.largest_batch
                + options.largest_batch.saturating_sub(open);
            ensure!(
                more <= room,
                unavailable,
                "The batch scheduling queue to which this task was submitted is full; task size is {more} but scheduling \
                 capacity is only {room} (num_enqueued_batches={waiting}, max_enqueued_batches={}, open_batch_size={open}, \
                 max_execution_batch_size={})",
                options.waiting,
                options.largest_batch
            );
        } else {
            ensure!(
                open + more <= options.largest_task || waiting < options.waiting,
                unavailable,
                "The batch scheduling queue to which this task was submitted is full; currently {waiting} batches enqueued \
                 and max_enqueued_batches is {}",
                options.waiting
            );
        }
        Ok(())
    }

    /// Adds a task to the open batch, or what does not fit there to new ones.
    fn add(&mut self, options: &Options, task: Task, now: Duration) {
        let (largest, more) = (options.largest_batch, task.rows);
        let room = largest.saturating_sub(rows(&self.open));
        if more <= room || !options.splits {
            return self.push(options, task, now);
        }
        let mut sizes = Vec::new();
        let mut left = more;
        let mut next = if room == 0 { largest } else { room };
        while left > 0 {
            sizes.push(next.min(left));
            left -= next.min(left);
            next = largest;
        }
        // INVARIANT: the sizes make up all rows, which is all that `split` asks for.
        for part in task.split(&sizes).unwrap_or_default() {
            self.push(options, part, now);
        }
    }

    fn push(&mut self, options: &Options, task: Task, now: Duration) {
        if rows(&self.open) + task.rows > options.largest_batch && !self.open.is_empty() {
            let full = std::mem::take(&mut self.open);
            self.full.push_back(full);
        }
        if self.open.is_empty() {
            self.since = now;
        }
        self.open.push(task);
    }

    fn is_due(&self, options: &Options, now: Duration) -> bool {
        !self.open.is_empty()
            && (rows(&self.open) >= options.largest_batch || now >= self.since + options.patience)
    }

    /// The open batch if it is full or its time has come.
    fn take_open(&mut self, options: &Options, now: Duration) -> Option<Vec<Task>> {
        if !self.is_due(options, now) {
            return None;
        }
        let mut batch = std::mem::take(&mut self.open);
        let (all, wanted) = (rows(&batch), options.trimmed(rows(&batch)));
        if wanted < all {
            // Only whole tasks may wait for the next batch.
            let mut kept = 0;
            let count = batch.iter().take_while(|task| {
                kept += task.rows;
                kept <= wanted
            });
            let count = count.count();
            if rows(&batch[..count]) == wanted {
                self.open = batch.split_off(count);
                // As if rows had come at a steady rate, as TensorFlow has it.
                let waited = now.saturating_sub(self.since);
                self.since += waited.mul_f64(wanted as f64 / all as f64);
            }
        }
        Some(batch)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends all batches that are ready to the pool, and has the clock call for the next one.
    fn dispatch(self: &Arc<Inner>) {
        loop {
            let now = self.clock.monotonic();
            let mut state = self.lock();
            if let Some(batch) = state.next(&self.options, now) {
                drop(state);
                self.start(batch);
                continue;
            }
            let open = state.lines.iter().filter(|line| !line.open.is_empty());
            // What is due already waits for another batch to end, which looks again.
            let due = open.map(|line| line.since + self.options.patience);
            let next = due.filter(|due| *due > now).min();
            if let Some(due) = next.filter(|due| state.armed.is_none_or(|armed| *due < armed)) {
                state.armed = Some(due);
                drop(state);
                // It holds on to what waits, also where the resource is gone.
                let inner = self.clone();
                let call = move || {
                    inner.lock().armed = None;
                    inner.dispatch();
                };
                self.clock.after(due - now, Box::new(call));
            }
            return;
        }
    }

    fn start(self: &Arc<Inner>, batch: Vec<Task>) {
        let turn = Turn(self.clone());
        let Some(pool) = batch.last().map(|task| task.env.pool.clone()) else {
            return;
        };
        let options = self.options.clone();
        pool.spawn(Box::new(move || work(&options, batch, turn)));
    }
}

/// The right to work on a batch; the next one begins when it is dropped.
pub(super) struct Turn(Arc<Inner>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.dispatch();
    }
}
