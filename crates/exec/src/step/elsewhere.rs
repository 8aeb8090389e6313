//! Runs that do not hold the driver: expensive kernels on the pool, and kernels that answer later.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tensorfleet_kernel::{AnyKernel, AsyncCtx, FrameIter, Outcome, Value};
use tensorfleet_status::{Result, internal};

use super::resume::on_pool;
use super::{Driver, Message, Step, deliver, fail, here};
use crate::run;
use crate::state::Task;
use crate::stats::NodeStat;

/// Sends the expensive nodes to the pool, but for one that runs here.
///
/// While that one runs the driver rests in the inbox if anything is outstanding, so that an answer
/// that comes meanwhile is not kept waiting. `None` if another thread drives now.
pub(super) fn run_heavy(step: &Arc<Step>, mut driver: Driver) -> Option<Driver> {
    let Some(own) = driver.state.heavy.pop() else {
        return Some(driver);
    };
    let others = std::mem::take(&mut driver.state.heavy);
    if others.is_empty() && driver.state.outstanding == 0 {
        here::run_one(step, &mut driver, own);
        return Some(driver);
    }
    for task in others {
        if let Some(job) = job_of(step, &mut driver, task) {
            on_pool(step, move |step| deliver(step, job.run(step)));
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
        on_pool(step, move |step| deliver(step, job.run(step)));
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
    let (frame, slots) = driver.state.inputs(node, task);
    if let Err(status) = run::prepare(node, slots) {
        fail(step, driver, run::at_node(status, node));
        return None;
    }
    let inputs = slots.iter_mut().map(std::mem::take).collect();
    driver.state.went_out(task.node);
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
        let (start, elements) = if step.timed {
            (step.now(), run::extent(&self.inputs, node.sized))
        } else {
            (Duration::ZERO, 0)
        };
        let result = match &node.kernel {
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
            node.learn_elements(elements);
            if step.record {
                recorded = Some(NodeStat::of(
                    self.task.node,
                    self.scheduled,
                    start,
                    end,
                    &outputs,
                ));
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
pub(super) fn start_later(step: &Arc<Step>, driver: &mut Driver, task: Task) {
    let node = &step.plan.nodes[task.node as usize];
    let Some(AnyKernel::Async(kernel)) = &node.kernel else {
        return;
    };
    let (frame, slots) = driver.state.inputs(node, task);
    if let Err(status) = run::prepare(node, slots) {
        return fail(step, driver, run::at_node(status, node));
    }
    let inputs = slots.iter_mut().map(std::mem::take).collect();
    driver.state.went_out(task.node);
    let started = if step.record {
        step.now()
    } else {
        Duration::ZERO
    };
    let answer_to = step.clone();
    let done = Box::new(move |result: Result<Outcome>| {
        let stat = match (&result, answer_to.record) {
            (Ok(Outcome::Outputs(outputs)), true) => Some(NodeStat::of(
                task.node,
                started,
                started,
                answer_to.now(),
                outputs,
            )),
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
            run::at_node(run::ended_by(&node.info, &step.env, &*panic), node),
        );
    }
}
