//! One step: the driver that owns its state, and the inbox through which results come back.
//!
//! ```text
//!              ready, cheap ──> run here ──┐
//!   driver ──> ready, heavy ──> pool ──> inbox
//!      ^       waiting     ──> later ──> inbox
//!      └─────────── propagate <────────────┘
//! ```
//!
//! Invariants: a node runs at most once per iteration; outputs are stored before any consumer's count
//! drops; only the driver touches the state; when nothing is ready and something is outstanding, the
//! state rests in the inbox and no thread is held; the first root error wins and cancels the rest.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;
use tensorfleet_kernel::{
    AnyKernel, AsyncCtx, CancelGuard, FrameIter, Outcome, Outputs, StepEnv, Value,
};
use tensorfleet_status::{Result, Status, cancelled, internal};

use crate::plan::{Kind, Plan, PlanNode};
use crate::run;
use crate::state::{State, Task};
use crate::stats::{NodeStat, StepReport};

/// Called once when a step ended.
pub type StepDone = Box<dyn FnOnce(Result<StepReport>) + Send>;

/// Starts a step and drives it on this thread as far as it goes without waiting.
///
/// `done` is called exactly once, on this or another thread. With `record`, the report has the times of
/// every node.
pub fn start(plan: Arc<Plan>, env: Arc<StepEnv>, record: bool, done: StepDone) {
    if let Err(status) = env.cancel.check() {
        return done(Err(status));
    }
    let timed = plan.begin_step() || record;
    let mut state = plan.take_state();
    state.seed(&plan);
    let step = Arc::new(Step {
        plan,
        env,
        record,
        timed,
        inbox: Mutex::new(Inbox::default()),
    });
    let weak = Arc::downgrade(&step);
    let guard = step.env.cancel.on_cancel(move |reason| {
        if let Some(step) = weak.upgrade() {
            deliver(&step, Message::Cancelled(reason.clone()));
        }
    });
    let driver = Driver {
        state,
        failed: None,
        clean: true,
        on_pool: 0,
        nodes: Vec::new(),
        done,
        _guard: guard,
    };
    drive(&step, driver);
}

struct Step {
    plan: Arc<Plan>,
    env: Arc<StepEnv>,
    record: bool,
    timed: bool,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    messages: Vec<Message>,
    /// The driver while nobody drives.
    resting: Option<Box<Driver>>,
    ended: bool,
}

#[allow(clippy::large_enum_variant)] // the large variant is the rule
enum Message {
    Done {
        task: Task,
        result: Result<Outcome>,
        on_pool: bool,
        stat: Option<NodeStat>,
    },
    Cancelled(Status),
}

/// Whoever holds it drives the step.
struct Driver {
    state: Box<State>,
    failed: Option<Status>,
    /// Whether all slots are known to be empty at the end.
    clean: bool,
    /// Kernels of ours that run on other threads: the step cannot end before they do.
    on_pool: u32,
    nodes: Vec<NodeStat>,
    done: StepDone,
    _guard: CancelGuard,
}

impl Step {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }
}

/// Puts a message into the inbox; if nobody drives, a pool thread takes over.
fn deliver(step: &Arc<Step>, message: Message) {
    let driver = {
        let mut inbox = step.inbox();
        if inbox.ended {
            return;
        }
        inbox.messages.push(message);
        inbox.resting.take()
    };
    if let Some(driver) = driver {
        let step = step.clone();
        step.env
            .pool
            .clone()
            .spawn(Box::new(move || drive(&step, *driver)));
    }
}

/// Drives until the step ended or has to wait.
fn drive(step: &Arc<Step>, mut driver: Driver) {
    let mut messages = Vec::new();
    loop {
        while let Some(task) = driver.state.ready.pop() {
            run_task(step, &mut driver, task);
        }
        let Some(returned) = run_heavy(step, driver) else {
            return;
        };
        driver = returned;
        if !driver.state.ready.is_empty() {
            continue;
        }
        {
            let mut inbox = step.inbox();
            std::mem::swap(&mut inbox.messages, &mut messages);
            if messages.is_empty() {
                let waits = match driver.failed {
                    // After a failure only our own threads are waited for; late answers find the step ended.
                    Some(_) => driver.on_pool > 0,
                    None => driver.state.outstanding > 0,
                };
                if waits {
                    inbox.resting = Some(Box::new(driver));
                    return;
                }
                inbox.ended = true;
                drop(inbox);
                return finish(step, driver);
            }
        }
        for message in messages.drain(..) {
            receive(step, &mut driver, message);
        }
    }
}

fn finish(step: &Arc<Step>, driver: Driver) {
    let Driver {
        mut state,
        failed,
        clean,
        nodes,
        done,
        _guard,
        ..
    } = driver;
    drop(_guard);
    state.reset(&step.plan, clean && failed.is_none());
    step.plan.give_state(state);
    done(match failed {
        Some(status) => Err(status),
        None => Ok(StepReport { nodes }),
    });
}

fn receive(step: &Arc<Step>, driver: &mut Driver, message: Message) {
    match message {
        Message::Cancelled(reason) => fail(step, driver, reason),
        Message::Done {
            task,
            result,
            on_pool,
            stat,
        } => {
            driver.state.outstanding -= 1;
            driver.on_pool -= u32::from(on_pool);
            driver.nodes.extend(stat);
            match result {
                _ if driver.failed.is_some() => {}
                Ok(Outcome::Outputs(mut outputs)) => {
                    driver
                        .state
                        .propagate(&step.plan, task, &mut outputs, false);
                }
                Ok(Outcome::Dead) => {
                    let mut outputs =
                        run::empty_outputs(step.plan.nodes[task.node as usize].outputs);
                    driver.state.propagate(&step.plan, task, &mut outputs, true);
                }
                Err(status) => fail(
                    step,
                    driver,
                    run::at_node(status, &step.plan.nodes[task.node as usize]),
                ),
            }
        }
    }
}

/// Notes an error, stops what is ready and cancels what runs.
#[cold]
fn fail(step: &Arc<Step>, driver: &mut Driver, status: Status) {
    driver.failed = Some(match driver.failed.take() {
        Some(first) => first.or_root(status.clone()),
        None => status.clone(),
    });
    driver.state.ready.clear();
    driver.state.heavy.clear();
    step.env.rendezvous.abort(status.clone().derived());
    step.env
        .cancel
        .cancel(cancelled!("the step was cancelled because of: {status}").derived());
}

/// Runs or starts a ready node; expensive ones are put aside.
#[inline]
fn run_task(step: &Arc<Step>, driver: &mut Driver, task: Task) {
    let node = &step.plan.nodes[task.node as usize];
    if task.dead && node.kind != Kind::Transfer {
        return pass_deadness(step, driver, task);
    }
    match node.kernel.as_deref() {
        Some(AnyKernel::Async(_)) => start_later(step, driver, task),
        Some(AnyKernel::Sync(_)) if node.is_expensive() => driver.state.heavy.push(task),
        _ => run_here(step, driver, task),
    }
}

fn pass_deadness(step: &Arc<Step>, driver: &mut Driver, task: Task) {
    let node = &step.plan.nodes[task.node as usize];
    inputs_of(&mut driver.state, node, task).fill_with(Value::default);
    let mut outputs = run::empty_outputs(node.outputs);
    // A second live value for a Merge that already ran may be left in its slot.
    driver.clean = false;
    driver.state.propagate(&step.plan, task, &mut outputs, true);
}

fn inputs_of<'a>(state: &'a mut State, node: &PlanNode, task: Task) -> &'a mut [Value] {
    let slots = &mut state.iterations[task.iteration as usize].slots;
    &mut slots[node.slot as usize..(node.slot + node.inputs) as usize]
}

fn frame_of(state: &State, task: Task) -> FrameIter {
    state
        .frames
        .frame_iter(&state.iterations[task.iteration as usize], task.iteration)
}

/// Runs a node on this thread and hands its outputs on.
#[inline]
fn run_here(step: &Arc<Step>, driver: &mut Driver, task: Task) {
    let node = &step.plan.nodes[task.node as usize];
    let frame = frame_of(&driver.state, task);
    let inputs = inputs_of(&mut driver.state, node, task);
    let mut outputs = run::empty_outputs(node.outputs);
    let measured = step.timed && (step.record || node.is_measured());
    let start = if measured { step.now() } else { Duration::ZERO };
    let result = run::prepare(node, inputs).and_then(|()| match node.kernel.as_deref() {
        Some(AnyKernel::Sync(kernel)) => run::call(
            &**kernel,
            &node.info,
            &step.env,
            inputs,
            &mut outputs,
            frame,
            task.dead,
        ),
        _ => run::control(node, inputs, &mut outputs),
    });
    for value in inputs.iter_mut() {
        *value = Value::Empty;
    }
    if measured {
        let end = step.now();
        node.learn((end - start).as_nanos() as u64);
        if step.record {
            driver.nodes.push(stat(task, start, start, end, &outputs));
        }
    }
    match result {
        Ok(()) => {
            if node.kind == Kind::Switch {
                driver.clean = false;
            }
            driver
                .state
                .propagate(&step.plan, task, &mut outputs, false);
        }
        Err(status) => fail(step, driver, run::at_node(status, node)),
    }
}

/// Sends the expensive nodes to the pool, but for one that runs here.
///
/// While that one runs the driver rests in the inbox if anything is outstanding, so that an answer
/// that comes meanwhile is not kept waiting. `None` if another thread drives now.
fn run_heavy(step: &Arc<Step>, mut driver: Driver) -> Option<Driver> {
    let Some(own) = driver.state.heavy.pop() else {
        return Some(driver);
    };
    let others = std::mem::take(&mut driver.state.heavy);
    if others.is_empty() && driver.state.outstanding == 0 {
        run_here(step, &mut driver, own);
        return Some(driver);
    }
    for task in others {
        if let Some(job) = job_of(step, &mut driver, task) {
            let step = step.clone();
            step.env.pool.clone().spawn(Box::new(move || {
                let message = job.run(&step);
                deliver(&step, message);
            }));
        }
    }
    let Some(job) = job_of(step, &mut driver, own) else {
        return Some(driver);
    };
    let pending = {
        let mut inbox = step.inbox();
        if inbox.messages.is_empty() {
            inbox.resting = Some(Box::new(driver));
            None
        } else {
            Some(driver)
        }
    };
    if let Some(driver) = pending {
        // Answers are waiting: let the pool compute and go on driving.
        let step = step.clone();
        step.env.pool.clone().spawn(Box::new(move || {
            let message = job.run(&step);
            deliver(&step, message);
        }));
        return Some(driver);
    }
    let message = job.run(step);
    let mut inbox = step.inbox();
    if inbox.ended {
        return None;
    }
    inbox.messages.push(message);
    inbox.resting.take().map(|driver| *driver)
}

/// A kernel run that owns its inputs and may happen on any thread.
struct Job {
    task: Task,
    inputs: SmallVec<[Value; 4]>,
    frame: FrameIter,
    scheduled: Duration,
}

/// Takes the inputs of a task; `None` if preparing them failed the step.
fn job_of(step: &Arc<Step>, driver: &mut Driver, task: Task) -> Option<Job> {
    let node = &step.plan.nodes[task.node as usize];
    let frame = frame_of(&driver.state, task);
    let slots = inputs_of(&mut driver.state, node, task);
    if let Err(status) = run::prepare(node, slots) {
        fail(step, driver, run::at_node(status, node));
        return None;
    }
    let inputs = slots.iter_mut().map(std::mem::take).collect();
    driver.state.outstanding += 1;
    driver.on_pool += 1;
    let scheduled = if step.record {
        step.now()
    } else {
        Duration::ZERO
    };
    Some(Job {
        task,
        inputs,
        frame,
        scheduled,
    })
}

impl Job {
    fn run(mut self, step: &Arc<Step>) -> Message {
        let node = &step.plan.nodes[self.task.node as usize];
        let mut outputs = run::empty_outputs(node.outputs);
        let start = if step.timed {
            step.now()
        } else {
            Duration::ZERO
        };
        let result = match node.kernel.as_deref() {
            Some(AnyKernel::Sync(kernel)) => run::call(
                &**kernel,
                &node.info,
                &step.env,
                &mut self.inputs,
                &mut outputs,
                self.frame,
                self.task.dead,
            ),
            _ => Err(internal!(
                "node '{}' has no kernel to run on the pool",
                node.info.name
            )),
        };
        let mut recorded = None;
        if step.timed {
            let end = step.now();
            node.learn((end - start).as_nanos() as u64);
            if step.record {
                recorded = Some(stat(self.task, self.scheduled, start, end, &outputs));
            }
        }
        Message::Done {
            task: self.task,
            result: result.map(|()| Outcome::Outputs(outputs)),
            on_pool: true,
            stat: recorded,
        }
    }
}

/// Starts an asynchronous kernel.
fn start_later(step: &Arc<Step>, driver: &mut Driver, task: Task) {
    let node = &step.plan.nodes[task.node as usize];
    let Some(AnyKernel::Async(kernel)) = node.kernel.as_deref() else {
        return;
    };
    let frame = frame_of(&driver.state, task);
    let slots = inputs_of(&mut driver.state, node, task);
    if let Err(status) = run::prepare(node, slots) {
        return fail(step, driver, run::at_node(status, node));
    }
    let inputs = slots.iter_mut().map(std::mem::take).collect();
    driver.state.outstanding += 1;
    let started = if step.record {
        step.now()
    } else {
        Duration::ZERO
    };
    let answer_to = step.clone();
    let done = Box::new(move |result: Result<Outcome>| {
        let stat = match (&result, answer_to.record) {
            (Ok(Outcome::Outputs(outputs)), true) => {
                Some(stat(task, started, started, answer_to.now(), outputs))
            }
            _ => None,
        };
        deliver(
            &answer_to,
            Message::Done {
                task,
                result,
                on_pool: false,
                stat,
            },
        );
    });
    let ctx = AsyncCtx::new(node.info.clone(), step.env.clone(), inputs, frame, done);
    // If it panics, dropping the context answers with an error of its own.
    let started = catch_unwind(AssertUnwindSafe(|| kernel.start(ctx)));
    if let Err(panic) = started {
        fail(
            step,
            driver,
            run::at_node(run::panicked(&node.info, &*panic), node),
        );
    }
}

fn stat(
    task: Task,
    scheduled: Duration,
    start: Duration,
    end: Duration,
    outputs: &Outputs,
) -> NodeStat {
    let described = outputs
        .iter()
        .zip(0u32..)
        .filter_map(|(value, port)| match value {
            Value::Tensor(tensor) => Some((
                port,
                tensor.dtype(),
                tensor.shape().clone(),
                tensor.byte_size(),
            )),
            _ => None,
        });
    NodeStat {
        node: task.node,
        scheduled,
        start,
        end,
        thread: thread_number(),
        outputs: described.collect(),
    }
}

/// A small number for the calling thread, for timelines.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}
