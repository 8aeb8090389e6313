//! Runs on the driver's own thread: the loop that every cheap node goes through.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tensorfleet_kernel::{AnyKernel, Kernel, KernelCtx, Value};
use tensorfleet_status::Result;

use super::{Driver, Step, elsewhere, fail};
use crate::plan::{Kind, PlanNode};
use crate::run;
use crate::state::Task;
use crate::stats::NodeStat;

/// After so many runs the driver looks whether the step is still wanted.
const RUNS_BETWEEN_LOOKS: usize = 1024;
/// Kernels with more elements of input than this are not run on a thread that has other things to do if they were
/// quick with far less.
const LARGE_INPUTS: usize = 1 << 18;

/// Runs or starts ready nodes until none is left; expensive ones are put aside. `false` if the step has to go on on
/// another thread, as this one has other things to do from `leave_at` on.
pub(super) fn run_ready(step: &Arc<Step>, driver: &mut Driver, leave_at: Option<Duration>) -> bool {
    let lent = leave_at.is_some();
    while !driver.state.ready.is_empty() {
        if leave_at.is_some_and(|time| step.now() >= time) {
            return false;
        }
        guarded(step, driver, |driver| {
            for _ in 0..RUNS_BETWEEN_LOOKS {
                let Some(task) = driver.state.ready.pop() else {
                    return;
                };
                run_task(step, driver, task, lent);
                if lent && step.plan.nodes[task.node as usize].is_measured() {
                    return;
                }
            }
        });
        // A loop that never ends never runs out of ready nodes: nothing else would stop it.
        if driver.failed.is_none()
            && let Err(reason) = step.env.cancel.check()
        {
            fail(step, driver, reason);
        }
    }
    !lent || driver.state.heavy.is_empty()
}

/// Runs a node with a synchronous kernel here although it is expensive.
pub(super) fn run_one(step: &Arc<Step>, driver: &mut Driver, task: Task) {
    guarded(step, driver, |driver| {
        let node = &step.plan.nodes[task.node as usize];
        if let Some(AnyKernel::Sync(kernel)) = &node.kernel {
            driver.current = task.node;
            run_kernel(step, driver, node, task, &**kernel);
        }
    });
}

/// A panic of a kernel fails the step, not the process. It is caught around many runs, not each: the
/// driver knows which node it was at.
fn guarded(step: &Arc<Step>, driver: &mut Driver, work: impl FnOnce(&mut Driver)) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(driver))) {
        driver.outputs.fill_with(Value::default);
        let node = &step.plan.nodes[driver.current as usize];
        let status = run::ended_by(&node.info, &step.env, &*panic);
        fail(step, driver, run::at_node(status, node));
    }
}

#[inline]
fn run_task(step: &Arc<Step>, driver: &mut Driver, task: Task, lent: bool) {
    let node = &step.plan.nodes[task.node as usize];
    if task.dead && node.kind != Kind::Transfer {
        return pass_deadness(step, driver, node, task);
    }
    driver.current = task.node;
    match &node.kernel {
        Some(AnyKernel::Sync(_)) if is_heavy(driver, node, task, lent) => {
            driver.state.heavy.push(task);
        }
        Some(AnyKernel::Sync(kernel)) => run_kernel(step, driver, node, task, &**kernel),
        Some(AnyKernel::Async(_)) => elsewhere::start_later(step, driver, task),
        None => run_control(step, driver, node, task),
    }
}

/// Whether a kernel is put aside: one that is worth another thread, or more than a lent one may be asked for.
#[inline]
fn is_heavy(driver: &mut Driver, node: &PlanNode, task: Task, lent: bool) -> bool {
    if !lent {
        return node.is_expensive();
    }
    node.is_measured() && (node.is_slow() || has_larger_inputs(driver, node, task))
}

/// Whether a kernel has far more to do than when it was measured.
fn has_larger_inputs(driver: &mut Driver, node: &PlanNode, task: Task) -> bool {
    let (_, inputs) = driver.state.inputs(node, task);
    let elements = run::extent(inputs, node.sized);
    elements > LARGE_INPUTS && elements / 4 > node.measured_elements()
}

fn pass_deadness(step: &Arc<Step>, driver: &mut Driver, node: &PlanNode, task: Task) {
    let (_, inputs) = driver.state.inputs(node, task);
    clear(inputs);
    // A second live value for a Merge that already ran may be left in its slot.
    driver.clean = false;
    driver.state.propagate(&step.plan, task, &mut [], true);
}

#[inline]
fn run_kernel(
    step: &Arc<Step>,
    driver: &mut Driver,
    node: &PlanNode,
    task: Task,
    kernel: &dyn Kernel,
) {
    let measured = step.timed && (step.record || node.is_measured());
    let start = if measured { step.now() } else { Duration::ZERO };
    let (frame, inputs) = driver.state.inputs(node, task);
    let elements = if measured {
        run::extent(inputs, node.sized)
    } else {
        0
    };
    let outputs = &mut driver.outputs[..node.outputs as usize];
    let result = run::prepare(node, inputs).and_then(|()| {
        let mut ctx = KernelCtx::new(&node.info, &step.env, inputs, outputs)
            .in_frame(frame, task.dead)
            .watched(!node.has_effects);
        if node.is_measured() {
            run::compute(kernel, !node.has_effects, &step.env, &mut ctx)?;
        } else {
            kernel.compute(&mut ctx)?;
        }
        run::check_outputs(&node.info, outputs)
    });
    clear(inputs);
    if measured {
        let end = step.now();
        node.learn((end - start).as_nanos() as u64);
        node.learn_elements(elements);
        record(step, driver, task, start, end);
    }
    hand_on(step, driver, node, task, result);
}

/// Runs a node that needs no kernel.
fn run_control(step: &Arc<Step>, driver: &mut Driver, node: &PlanNode, task: Task) {
    let start = if step.record {
        step.now()
    } else {
        Duration::ZERO
    };
    let (_, inputs) = driver.state.inputs(node, task);
    let outputs = &mut driver.outputs[..node.outputs as usize];
    let result = run::prepare(node, inputs).and_then(|()| run::control(node, inputs, outputs));
    clear(inputs);
    if step.record {
        let end = step.now();
        record(step, driver, task, start, end);
    }
    if node.kind == Kind::Switch {
        driver.clean = false;
    }
    hand_on(step, driver, node, task, result);
}

/// Empties values. Most are empty already or hold nothing that needs freeing.
#[inline]
fn clear(values: &mut [Value]) {
    for value in values {
        if !matches!(value, Value::Empty) {
            *value = Value::Empty;
        }
    }
}

/// Hands on the outputs of a run that ended.
#[inline]
fn hand_on(step: &Arc<Step>, driver: &mut Driver, node: &PlanNode, task: Task, result: Result<()>) {
    let outputs = &mut driver.outputs[..node.outputs as usize];
    match result {
        Ok(()) => {
            driver.state.propagate(&step.plan, task, outputs, false);
            // What nobody took.
            clear(outputs);
        }
        Err(status) => {
            clear(outputs);
            fail(step, driver, run::at_node(status, node));
        }
    }
}

fn record(step: &Arc<Step>, driver: &mut Driver, task: Task, start: Duration, end: Duration) {
    if step.record {
        let outputs = &driver.outputs[..step.plan.nodes[task.node as usize].outputs as usize];
        driver
            .nodes
            .push(NodeStat::of(task.node, start, start, end, outputs));
    }
}
