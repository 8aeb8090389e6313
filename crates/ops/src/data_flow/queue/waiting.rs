//! [`Queue`]: elements, and the operations that wait for room or for elements.
//!
//! ```text
//! submit ─► in line ─► run as far as it goes ─┬─► done: answered once the lock is gone
//!                          ▲                  └─► waits, holding no thread
//!                          └── every later submit, close or cancellation
//! ```
//!
//! Enqueues and closes stand in one line, dequeues in another; only the first of a line may move. Lock
//! order: the queue's lock is never held while an operation is answered or a cancellation is registered,
//! because both may run other kernels, or ours again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorfleet_kernel::{AsyncCtx, CancelGuard, Outputs, Resource, Value};
use tensorfleet_status::{Result, Status, cancelled, out_of_range};
use tensorfleet_tensor::{Shape, Tensor};

use super::batch::batch;
use super::spec::{Kind, Spec, Tuple};
use super::store::Store;

/// A queue of tuples.
pub(crate) struct Queue {
    pub(super) name: String,
    pub(super) spec: Spec,
    state: Mutex<State>,
}

struct State {
    store: Store,
    closed: bool,
    enqueues: VecDeque<Attempt>,
    dequeues: VecDeque<Attempt>,
    next_id: u64,
}

/// An operation in line.
struct Attempt {
    id: u64,
    ctx: AsyncCtx,
    work: Work,
    /// Set once the operation has to wait.
    guard: Option<CancelGuard>,
}

/// What an operation does.
pub(super) enum Work {
    /// Puts elements in.
    Enqueue(Rows),
    /// Closes the queue, after what is in line before.
    Close,
    /// Takes an element out.
    DequeueOne,
    /// Takes `wanted` more elements out, or what is left if `up_to` and the queue is closed.
    DequeueMany {
        wanted: usize,
        up_to: bool,
        taken: Vec<Tuple>,
    },
}

/// The elements of an enqueue that are not in the queue yet.
pub(super) struct Rows {
    components: Tuple,
    /// The rows from here to `count`, or the tuple as a whole.
    next: usize,
    count: usize,
    batched: bool,
}

impl Rows {
    /// One element.
    pub(super) fn one(components: Tuple) -> Rows {
        Rows {
            components,
            next: 0,
            count: 1,
            batched: false,
        }
    }

    /// One element for each row; all components must have the same number of rows.
    pub(super) fn many(components: Tuple) -> Rows {
        let count = components.first().map_or(0, |first| first.shape().dim(0));
        Rows {
            components,
            next: 0,
            count,
            batched: true,
        }
    }

    fn is_empty(&self) -> bool {
        self.next == self.count
    }

    fn next(&mut self) -> Result<Tuple> {
        let row = self.next;
        self.next += 1;
        if !self.batched {
            return Ok(std::mem::take(&mut self.components));
        }
        let rows = self.components.iter().map(|component| {
            let shape = Shape::new(component.shape().get(1..).unwrap_or_default())?;
            component.rows(row, 1)?.reshaped(shape)
        });
        rows.collect()
    }
}

/// What came of a try.
enum Progress {
    None,
    Some,
    Done(Result<Answer>),
}

/// What an operation is answered with, made outside of the lock.
enum Answer {
    Nothing,
    One(Tuple),
    Many(Vec<Tuple>),
}

type Finished = Vec<(AsyncCtx, Option<CancelGuard>, Result<Answer>)>;

impl Resource for Queue {
    fn type_name(&self) -> &'static str {
        "N10tensorflow14QueueInterfaceE"
    }
}

impl Queue {
    /// An empty queue.
    pub(super) fn new(name: &str, spec: Spec, entropy: impl Fn() -> i64) -> Queue {
        let store = Store::new(&spec, entropy);
        Queue {
            name: name.to_owned(),
            spec,
            state: Mutex::new(State {
                store,
                closed: false,
                enqueues: VecDeque::new(),
                dequeues: VecDeque::new(),
                next_id: 0,
            }),
        }
    }

    /// The number of elements.
    pub(super) fn size(&self) -> usize {
        self.lock().store.len()
    }

    /// Whether the queue was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Puts an operation in line, and answers it at once or when its time has come.
    pub(super) fn submit(self: &Arc<Queue>, ctx: AsyncCtx, work: Work) {
        let cancel = ctx.env().cancel.clone();
        if cancel.is_cancelled() {
            return ctx.fail(was_cancelled(&work));
        }
        let (id, finished, waits) = {
            let mut state = self.lock();
            let id = state.next_id;
            state.next_id += 1;
            let attempt = Attempt {
                id,
                ctx,
                work,
                guard: None,
            };
            state.line_of(&attempt.work).push_back(attempt);
            let finished = self.flush(&mut state);
            let waits = state.find(id).is_some();
            (id, finished, waits)
        };
        self.answer(finished);
        if !waits {
            return;
        }
        let queue = self.clone();
        let mut guard = Some(cancel.on_cancel(move |_| queue.cancel(id)));
        if let Some(attempt) = self.lock().find(id) {
            attempt.guard = guard.take();
        }
        // Else it was answered meanwhile; the guard must not be dropped under the lock.
        drop(guard);
    }

    /// Answers with the next element as soon as there is one, for ops that take their work from a queue.
    pub(crate) fn dequeue_one(self: &Arc<Queue>, ctx: AsyncCtx) {
        self.submit(ctx, Work::DequeueOne);
    }

    /// Closes the queue at once; enqueues that wait are cancelled.
    pub(super) fn close_and_cancel(&self) {
        let (cancelled, finished) = {
            let mut state = self.lock();
            state.closed = true;
            let cancelled = std::mem::take(&mut state.enqueues);
            (cancelled, self.flush(&mut state))
        };
        for attempt in cancelled {
            drop(attempt.guard);
            attempt.ctx.fail(was_cancelled(&attempt.work));
        }
        self.answer(finished);
    }

    /// Answers an operation whose step is no longer wanted. What it took goes back.
    fn cancel(&self, id: u64) {
        let (attempt, finished) = {
            let mut state = self.lock();
            let Some(mut attempt) = state.remove(id) else {
                return;
            };
            if let Work::DequeueMany { taken, .. } = &mut attempt.work {
                state.store.restore(std::mem::take(taken));
            }
            (attempt, self.flush(&mut state))
        };
        drop(attempt.guard);
        attempt.ctx.fail(was_cancelled(&attempt.work));
        self.answer(finished);
    }

    /// Moves both lines on until nothing changes; what is done is left to be answered.
    fn flush(&self, state: &mut State) -> Finished {
        let mut finished = Vec::new();
        loop {
            let enqueued = self.advance(state, |state| &mut state.enqueues, &mut finished);
            let dequeued = self.advance(state, |state| &mut state.dequeues, &mut finished);
            if !enqueued && !dequeued {
                return finished;
            }
        }
    }

    /// Moves one line on; whether anything changed.
    fn advance(
        &self,
        state: &mut State,
        line: fn(&mut State) -> &mut VecDeque<Attempt>,
        finished: &mut Finished,
    ) -> bool {
        let mut changed = false;
        while let Some(mut attempt) = line(state).pop_front() {
            match self.step(state, &mut attempt.work) {
                Progress::Done(result) => {
                    finished.push((attempt.ctx, attempt.guard, result));
                    changed = true;
                }
                progress => {
                    line(state).push_front(attempt);
                    return changed || matches!(progress, Progress::Some);
                }
            }
        }
        changed
    }

    fn step(&self, state: &mut State, work: &mut Work) -> Progress {
        match work {
            Work::Enqueue(rows) => self.enqueue(state, rows),
            Work::Close => {
                let again = std::mem::replace(&mut state.closed, true);
                Progress::Done(if again {
                    Err(cancelled!("Queue '{}' is already closed.", self.name))
                } else {
                    Ok(Answer::Nothing)
                })
            }
            Work::DequeueOne => match (self.available(state), state.closed) {
                (0, true) => Progress::Done(Err(self.insufficient(1, 0, false))),
                (0, false) => Progress::None,
                _ => Progress::Done(Ok(Answer::One(state.store.pop().unwrap_or_default()))),
            },
            Work::DequeueMany {
                wanted,
                up_to,
                taken,
            } => self.dequeue_many(state, wanted, *up_to, taken),
        }
    }

    fn enqueue(&self, state: &mut State, rows: &mut Rows) -> Progress {
        let mut progress = Progress::None;
        while !rows.is_empty() {
            if state.closed {
                let kind = self.kind_of_singles();
                return Progress::Done(Err(cancelled!("{kind} '{}' is closed.", self.name)));
            }
            if state.store.len() >= self.spec.capacity {
                return progress;
            }
            match rows.next() {
                Ok(tuple) => state.store.push(tuple),
                Err(status) => return Progress::Done(Err(status)),
            }
            progress = Progress::Some;
        }
        Progress::Done(Ok(Answer::Nothing))
    }

    fn dequeue_many(
        &self,
        state: &mut State,
        wanted: &mut usize,
        up_to: bool,
        taken: &mut Vec<Tuple>,
    ) -> Progress {
        let size = state.store.len();
        if state.closed && size < *wanted {
            let had = taken.len();
            state.store.restore(std::mem::take(taken));
            if !up_to || size + had == 0 {
                return Progress::Done(Err(self.insufficient(*wanted, size, true)));
            }
            *wanted = size + had;
        }
        // What leaves a priority queue together is in order, which parts that were taken one after the other would not be.
        if self.spec.kind == Kind::Priority && self.available(state) < *wanted {
            return Progress::None;
        }
        let before = taken.len();
        while *wanted > 0 && self.available(state) > 0 {
            taken.extend(state.store.pop());
            *wanted -= 1;
        }
        match *wanted {
            0 => Progress::Done(Ok(Answer::Many(std::mem::take(taken)))),
            _ if taken.len() > before => Progress::Some,
            _ => Progress::None,
        }
    }

    /// How many elements may leave.
    fn available(&self, state: &State) -> usize {
        let keep = match state.closed {
            true => 0,
            false => self.spec.min_after_dequeue,
        };
        state.store.len().saturating_sub(keep)
    }

    #[cold]
    fn insufficient(&self, requested: usize, size: usize, many: bool) -> Status {
        let kind = match many {
            true => self.spec.kind.name(),
            false => self.kind_of_singles(),
        };
        out_of_range!(
            "{kind} '{}' is closed and has insufficient elements (requested {requested}, current size {size})",
            self.name
        )
    }

    /// TensorFlow's padding queue is a plain one where it deals with single elements, and says so.
    fn kind_of_singles(&self) -> &'static str {
        match self.spec.kind {
            Kind::PaddingFifo => Kind::Fifo.name(),
            kind => kind.name(),
        }
    }

    /// Answers operations; not to be called under the lock.
    fn answer(&self, finished: Finished) {
        for (ctx, guard, result) in finished {
            drop(guard);
            let pool = ctx.env().pool.clone();
            let tuple = result.and_then(|answer| match answer {
                Answer::Nothing => Ok(Tuple::new()),
                Answer::One(tuple) => Ok(tuple),
                Answer::Many(tuples) => batch(&*pool, &self.spec, &tuples),
            });
            ctx.finish(tuple.map(outputs));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn outputs(tuple: Vec<Tensor>) -> Outputs {
    tuple.into_iter().map(Value::Tensor).collect()
}

fn was_cancelled(work: &Work) -> Status {
    match work {
        Work::Enqueue(_) | Work::Close => cancelled!("Enqueue operation was cancelled"),
        _ => cancelled!("Dequeue operation was cancelled"),
    }
}

impl State {
    fn line_of(&mut self, work: &Work) -> &mut VecDeque<Attempt> {
        match work {
            Work::Enqueue(_) | Work::Close => &mut self.enqueues,
            _ => &mut self.dequeues,
        }
    }

    fn find(&mut self, id: u64) -> Option<&mut Attempt> {
        let mut all = self.enqueues.iter_mut().chain(&mut self.dequeues);
        all.find(|attempt| attempt.id == id)
    }

    fn remove(&mut self, id: u64) -> Option<Attempt> {
        for line in [&mut self.enqueues, &mut self.dequeues] {
            if let Some(index) = line.iter().position(|attempt| attempt.id == id) {
                return line.remove(index);
            }
        }
        None
    }
}
