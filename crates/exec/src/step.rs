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

mod elsewhere;
mod here;
mod resume;
mod view;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tensorfleet_kernel::{CancelGuard, Outcome, StepEnv, Value};
use tensorfleet_status::{Result, Status};

use crate::plan::Plan;
use crate::run;
use crate::state::{State, Task};
use crate::stats::{NodeStat, StepReport};
pub use resume::{lend, resume_here};
pub use view::StepView;

/// Called once when a step ended.
pub type StepDone = Box<dyn FnOnce(Result<StepReport>) + Send>;

/// Starts a step and drives it on this thread as far as it goes without waiting.
///
/// `done` is called exactly once, on this or another thread. With `record`, the report has the times of
/// every node. What is returned shows what the step waits for.
pub fn start(plan: Arc<Plan>, env: Arc<StepEnv>, record: bool, done: StepDone) -> StepView {
    if let Err(status) = env.cancel.check() {
        done(Err(status));
        return StepView(Weak::new());
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
        outputs: std::mem::take(&mut state.outputs),
        state,
        current: 0,
        failed: None,
        clean: true,
        on_pool: 0,
        nodes: Vec::new(),
        done,
        _guard: guard,
    };
    let view = StepView(Arc::downgrade(&step));
    drive(&step, driver);
    view
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
    /// The state's `outputs`, apart so that both can be borrowed.
    outputs: Vec<Value>,
    /// The node that runs on the driver's thread, to be named if it panics.
    current: u32,
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

/// Puts a message into the inbox; if nobody drives, the step goes on.
fn deliver(step: &Arc<Step>, message: Message) {
    let answer = match &message {
        Message::Done { task, on_pool, .. } => (!on_pool).then_some(task.node),
        Message::Cancelled(_) => None,
    };
    let driver = {
        let mut inbox = step.inbox();
        if inbox.ended {
            return;
        }
        inbox.messages.push(message);
        inbox.resting.take()
    };
    if let Some(driver) = driver {
        resume::resume(step, driver, answer);
    }
}

/// Drives until the step ended or has to wait.
fn drive(step: &Arc<Step>, mut driver: Driver) {
    let mut messages = Vec::new();
    let leave_at = resume::leave_at(step);
    loop {
        if !here::run_ready(step, &mut driver, leave_at) {
            return resume::leave(step, driver);
        }
        let Some(returned) = elsewhere::run_heavy(step, driver) else {
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
        outputs,
        failed,
        clean,
        nodes,
        done,
        _guard,
        ..
    } = driver;
    drop(_guard);
    state.outputs = outputs;
    state.reset(&step.plan, clean && failed.is_none(), failed.is_some());
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
            driver.state.came_back(task.node);
            driver.on_pool -= u32::from(on_pool);
            driver.nodes.extend(stat);
            match result {
                // What comes back late may say why it was all cancelled.
                Err(status) => fail(
                    step,
                    driver,
                    run::at_node(status, &step.plan.nodes[task.node as usize]),
                ),
                Ok(_) if driver.failed.is_some() => {}
                Ok(Outcome::Outputs(mut outputs)) => {
                    driver
                        .state
                        .propagate(&step.plan, task, &mut outputs, false);
                }
                Ok(Outcome::Dead) => driver.state.propagate(&step.plan, task, &mut [], true),
            }
        }
    }
}

/// Notes an error, stops what is ready and cancels what runs.
#[cold]
fn fail(step: &Arc<Step>, driver: &mut Driver, status: Status) {
    status.clone().note(&mut driver.failed);
    driver.state.ready.clear();
    driver.state.heavy.clear();
    step.env.rendezvous.abort(status.clone().derived());
    // With its own code: a step that called this one as a function ends with the reason, before the answer reaches it.
    step.env.cancel.cancel(status.derived());
}
