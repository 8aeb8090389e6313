//! [`Reader`]: a source of records, and the line of those who want something of it.
//!
//! ```text
//! submit ─► in line ─► first: ─┬─► counts: answered where it stands
//!                              └─► read, on the pool ─┬─► no work: asks the queue, holding no thread
//!                                        ▲            │
//!                                        └────────────┘ work came: goes on, on the pool
//! ```
//!
//! TensorFlow has a lock where we have a line: who comes while a read waits for work waits, too. Whoever is at work has the
//! [`Body`]; the lock is never held while a file is read, a request is answered or a cancellation registered.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::smallvec;
use tensorfleet_kernel::{AsyncCtx, CancelGuard, Outcome, Outputs, Resource, Value};
use tensorfleet_status::{Result, cancelled, ensure, internal, invalid_argument, unimplemented};
use tensorfleet_tensor::{TString, Tensor};

use super::source::{Record, Source};
use super::state::Counts;
use crate::data_flow::queue::Queue;

/// A reader.
pub(super) struct Reader {
    /// Its kind and the node that made it, for errors.
    name: String,
    state: Mutex<State>,
}

struct State {
    /// `None` while the first of those who came is at work.
    body: Option<Body>,
    line: VecDeque<Request>,
    next_id: u64,
}

/// What a request works on.
struct Body {
    counts: Counts,
    source: Box<dyn Source>,
}

struct Request {
    id: u64,
    ctx: AsyncCtx,
    verb: Verb,
    /// Set once the request has to wait in line.
    guard: Option<CancelGuard>,
}

/// What is wanted of a reader.
pub(super) enum Verb {
    /// Records.
    Read(Read),
    /// A number or text about the reader.
    Tell(fn(&Reader, &Counts, &dyn Source) -> Result<Tensor>),
    /// To begin anew.
    Reset,
    /// To go on where this state was saved.
    Restore(TString),
}

/// A read that may have got some of its records.
pub(super) struct Read {
    pub(super) queue: Arc<Queue>,
    pub(super) wanted: usize,
    /// Two scalars instead of two vectors.
    pub(super) single: bool,
    pub(super) records: Vec<Record>,
}

type Answer = (AsyncCtx, Result<Outputs>);

impl Resource for Reader {
    fn type_name(&self) -> &'static str {
        "N10tensorflow15ReaderInterfaceE"
    }
}

impl Reader {
    /// A reader that has not begun.
    pub(super) fn new(name: String, source: Box<dyn Source>) -> Reader {
        let body = Body {
            counts: Counts::default(),
            source,
        };
        Reader {
            name,
            state: Mutex::new(State {
                body: Some(body),
                line: VecDeque::new(),
                next_id: 0,
            }),
        }
    }

    /// Puts a request in line, and answers it at once or when its time has come.
    pub(super) fn submit(self: &Arc<Reader>, ctx: AsyncCtx, verb: Verb) {
        let cancel = ctx.env().cancel.clone();
        if cancel.is_cancelled() {
            return ctx.fail(cancelled!("read operation was cancelled"));
        }
        let (id, body) = {
            let mut state = self.lock();
            let id = state.next_id;
            state.next_id += 1;
            state.line.push_back(Request {
                id,
                ctx,
                verb,
                guard: None,
            });
            (id, state.body.take())
        };
        if let Some(body) = body {
            return self.advance(body, None);
        }
        let reader = self.clone();
        let mut guard = Some(cancel.on_cancel(move |_| reader.cancel(id)));
        if let Some(request) = self.lock().line.iter_mut().find(|one| one.id == id) {
            request.guard = guard.take();
        }
        // Else its turn has come meanwhile; the guard must not be dropped under the lock.
        drop(guard);
    }

    /// Turns to who is first in line, then gives the answers that are ready.
    fn advance(self: &Arc<Reader>, mut body: Body, answer: Option<Answer>) {
        let mut answers: Vec<Answer> = answer.into_iter().collect();
        loop {
            let next = {
                let mut state = self.lock();
                let next = state.line.pop_front();
                if next.is_none() {
                    state.body = Some(body);
                    break;
                }
                next
            };
            let Some(mut request) = next else { break };
            request.guard = None;
            if let Verb::Read(_) = request.verb {
                self.spawn(move |reader, request| reader.read(body, request), request);
                break;
            }
            let result = self.tell(&mut body, &request.verb);
            answers.push((request.ctx, result));
        }
        for (ctx, result) in answers {
            ctx.finish(result);
        }
    }

    /// Goes on with a request on the pool: files may be slow, and who brings work has other things to do.
    fn spawn(
        self: &Arc<Reader>,
        work: impl FnOnce(&Arc<Reader>, Request) + Send + 'static,
        request: Request,
    ) {
        let reader = self.clone();
        let pool = request.ctx.env().pool.clone();
        pool.spawn(Box::new(move || work(&reader, request)));
    }

    /// Answers a request in line whose step is no longer wanted.
    fn cancel(&self, id: u64) {
        let request = {
            let line = &mut self.lock().line;
            let index = line.iter().position(|request| request.id == id);
            index.and_then(|index| line.remove(index))
        };
        if let Some(request) = request {
            drop(request.guard);
            request.ctx.fail(cancelled!("read operation was cancelled"));
        }
    }

    /// Answers what needs no work.
    fn tell(&self, body: &mut Body, verb: &Verb) -> Result<Outputs> {
        match verb {
            Verb::Tell(what) => {
                let told = what(self, &body.counts, &*body.source)?;
                Ok(smallvec![Value::Tensor(told)])
            }
            Verb::Reset => {
                body.reset();
                Ok(Outputs::new())
            }
            Verb::Restore(state) => {
                // Whatever the state is, the old one is gone.
                body.reset();
                self.check_saved(&*body.source, "RestoreState")?;
                body.counts = Counts::restore(state, &self.name)?;
                Ok(Outputs::new())
            }
            Verb::Read(_) => Err(internal!("a read is no question")),
        }
    }

    /// The state of a reader whose kind can be saved.
    pub(super) fn saved(&self, counts: &Counts, source: &dyn Source) -> Result<Tensor> {
        self.check_saved(source, "SerializeState")?;
        Ok(Tensor::string(counts.save()))
    }

    fn check_saved(&self, source: &dyn Source, what: &str) -> Result<()> {
        match source.can_be_saved() {
            true => Ok(()),
            false => Err(unimplemented!("Reader {what}")),
        }
    }

    /// Reads on until there are enough records, or asks for work.
    fn read(self: &Arc<Reader>, mut body: Body, mut request: Request) {
        let Verb::Read(read) = &mut request.verb else {
            return self.advance(body, None);
        };
        let cancel = request.ctx.env().cancel.clone();
        let result = loop {
            if cancel.is_cancelled() {
                break Err(cancelled!("read operation was cancelled"));
            }
            if read.records.len() >= read.wanted {
                break Ok(());
            }
            if !body.counts.in_progress() {
                let queue = read.queue.clone();
                return self.ask(body, request, &queue);
            }
            match body.next() {
                Ok(None) if !read.records.is_empty() => break Ok(()),
                Ok(None) => {}
                Ok(Some((record, more))) => {
                    read.records.push(record);
                    if !more {
                        break Ok(());
                    }
                }
                Err(status) => break Err(status),
            }
        };
        let outputs = result.and_then(|()| read.outputs());
        self.advance(body, Some((request.ctx, outputs)));
    }

    /// Waits for the next unit of work.
    fn ask(self: &Arc<Reader>, body: Body, request: Request, queue: &Arc<Queue>) {
        let reader = self.clone();
        let part = request.ctx.part();
        queue.dequeue_one(part.then(move |outcome| reader.begin(body, request, outcome)));
    }

    /// Begins with the unit of work that the queue gave.
    fn begin(self: &Arc<Reader>, mut body: Body, request: Request, outcome: Result<Outcome>) {
        let work = match outcome.and_then(unit) {
            Ok(work) => work,
            Err(status) => return self.advance(body, Some((request.ctx, Err(status)))),
        };
        let go_on = move |reader: &Arc<Reader>, request: Request| {
            body.counts.current_work = work;
            match body.source.start(&body.counts.current_work) {
                Ok(()) => {
                    body.counts.work_started += 1;
                    reader.read(body, request);
                }
                Err(status) => reader.advance(body, Some((request.ctx, Err(status)))),
            }
        };
        self.spawn(go_on, request);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Body {
    fn reset(&mut self) {
        self.counts = Counts::default();
        self.source.stop();
    }

    /// The next record and whether its unit has more; `None` if the unit had none left.
    fn next(&mut self) -> Result<Option<(Record, bool)>> {
        let progress = self.source.read(&self.counts.current_work)?;
        if progress.at_end {
            self.source.stop();
            self.counts.work_finished = self.counts.work_started;
        }
        let Some(record) = progress.record else {
            return Ok(None);
        };
        self.counts.num_records_produced += 1;
        Ok(Some((record, !progress.at_end)))
    }
}

impl Read {
    /// Keys and values.
    fn outputs(&mut self) -> Result<Outputs> {
        let records = std::mem::take(&mut self.records);
        if !self.single {
            let (keys, values): (Vec<TString>, Vec<TString>) = records.into_iter().unzip();
            let tensors = [Tensor::vector(&keys), Tensor::vector(&values)];
            return Ok(tensors.into_iter().map(Value::Tensor).collect());
        }
        let (key, value) = records.into_iter().next().unwrap_or_default();
        let tensors = [Tensor::string(key), Tensor::string(value)];
        Ok(tensors.into_iter().map(Value::Tensor).collect())
    }
}

/// The one string that is a unit of work.
fn unit(outcome: Outcome) -> Result<TString> {
    let Outcome::Outputs(outputs) = outcome else {
        return Err(internal!("a queue gave a dead element"));
    };
    let [Value::Tensor(work)] = outputs.as_slice() else {
        return Err(invalid_argument!("Expected single component queue"));
    };
    ensure!(
        work.dtype() == tensorfleet_tensor::DType::String,
        invalid_argument,
        "Expected queue with single string component"
    );
    ensure!(
        work.elements() == 1,
        invalid_argument,
        "Expected to dequeue a one-element string tensor"
    );
    work.to_scalar::<TString>()
}
