//! `Unbatch`: hands the rows of a batch back to the steps that brought them.
//!
//! TensorFlow: (batched_tensor: T, batch_index: int64, id: int64) -> unbatched_tensor: T. The step that has the batch leaves
//! the rows of the others here; whoever is not served within `timeout_micros` fails, and rows that nobody fetched go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tensorfleet_graph::example::script;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, Clock, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{
    Result, already_exists, cancelled, deadline_exceeded, ensure, invalid_argument,
};
use tensorfleet_tensor::Tensor;

use super::batch::any_rows;
use crate::state::names::SharedName;

pub(crate) static OP: OpDef = OpDef {
    name: "Unbatch",
    inputs: &["batched_tensor: T", "batch_index: int64", "id: int64"],
    outputs: &["unbatched_tensor: T"],
    attrs: &[
        "timeout_micros: int",
        "container: string = ''",
        "shared_name: string = ''",
        "T: type",
    ],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    scripts: &[script(
        "two runs, one of which has the batch",
        "batch = int32[3,1]{1, 2, 3}
         index = int64[2,3]{7, 0, 1, 8, 1, 3}
         seven = int64[]{7}
         eight = int64[]{8}
         nothing = int32[0,1]{}
         nobody = int64[0,3]{}
         late = Unbatch(nothing, nobody, eight) {shared_name='u', timeout_micros=1000}
         one = Unbatch(batch, index, seven) {shared_name='u', timeout_micros=60000000}
         two = Unbatch(nothing, nobody, eight) {shared_name='u', timeout_micros=60000000}
         ids = Unbatch(batch, index, index) {timeout_micros=1000}
         long = int64[1,3]{7, 0, 4}
         beyond = Unbatch(batch, long, seven) {timeout_micros=1000}
         pairs = int64[1,2]{7, 0}
         narrow = Unbatch(batch, pairs, seven) {timeout_micros=1000}",
        &[
            "fetch one, two => int32[1,1]{1}; int32[2,1]{2, 3}",
            "fetch ids fails INVALID_ARGUMENT Input id should be scalar",
            "fetch beyond fails INVALID_ARGUMENT Sum of split sizes must not exceed dim0-size of input tensor",
            "fetch narrow fails INVALID_ARGUMENT Wrong shape for index tensor. Expected 1st dimension size to be 3",
        ],
    )],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = any_rows(ctx.input(0));
    ctx.set(0, shape);
    Ok(())
}

/// The gradients of all steps, put together as the rows were.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (batched, index, id) = (g.input(0), g.input(1), g.input(2));
    let (name, grad) = (node_name(g), g.grad(0)?);
    let node = g.builder().op("UnbatchGrad").input(batched).input(index);
    let node = node.input(grad).input(id);
    let node = node.attr("shared_name", format!("unbatch_gradient_{name}"));
    Ok(vec![Some(Grad::Dense(node.output()?)), None, None])
}

/// The name of the node whose gradient is made.
pub(super) fn node_name(g: &mut GradCtx<'_>) -> String {
    let node = g.output(0).node;
    g.builder().graph().node(node).name.to_string()
}

/// Whose rows of a batch are where.
pub(super) struct Share {
    pub(super) key: i64,
    pub(super) start: usize,
    pub(super) rows: usize,
}

/// The shares that an index tells of, in TensorFlow's words where it is none.
fn shares(batch: &Tensor, index: &Tensor) -> Result<Vec<Share>> {
    ensure!(
        batch.rank() > 0 && index.rank() == 2,
        invalid_argument,
        "a batch with rows and an index of rank 2 are needed, got shapes {} and {}",
        batch.shape(),
        index.shape()
    );
    let (rows, count) = (batch.shape().dim(0), index.shape().dim(0));
    ensure!(
        count <= rows,
        invalid_argument,
        "Wrong shape for index tensor. Expected 0th dimension size to be no greater than {rows}; Got: {count}."
    );
    ensure!(
        index.shape().dim(1) == 3,
        invalid_argument,
        "Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: {}.",
        index.shape().dim(1)
    );
    // TensorFlow goes by the lengths alone, and so do we.
    let mut start = 0usize;
    let (lines, _) = index.slice::<i64>()?.as_chunks::<3>();
    let share = |[key, from, to]: &[i64; 3]| {
        let length = to
            .checked_sub(*from)
            .and_then(|rows| usize::try_from(rows).ok());
        let end = length.and_then(|length| start.checked_add(length));
        let (Some(length), Some(end)) = (length, end.filter(|end| *end <= rows)) else {
            return Err(invalid_argument!(
                "Sum of split sizes must not exceed dim0-size of input tensor"
            ));
        };
        let share = Share {
            key: *key,
            start,
            rows: length,
        };
        start = end;
        Ok(share)
    };
    lines.iter().map(share).collect()
}

#[derive(Default)]
struct Exchange(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    runs: FxHashMap<i64, Run>,
    rows: FxHashMap<i64, (Duration, Tensor)>,
    next_number: u64,
    /// Whether the clock will call.
    armed: bool,
}

/// A run that waits for its rows.
struct Run {
    number: u64,
    deadline: Duration,
    ctx: AsyncCtx,
}

impl Resource for Exchange {
    fn type_name(&self) -> &'static str {
        "UnbatchResource"
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    let micros = node.attrs.int("timeout_micros")?;
    let timeout = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let ready = ctx.view(|view| {
            let (batch, key) = (view.input(0)?.clone(), id(view)?);
            let shares = shares(&batch, view.input(1)?)?;
            let container = names.container(view);
            let resources = &view.env().resources;
            let exchange =
                resources.lookup_or_create(container, &names.name, || Ok(Exchange::default()))?;
            Ok((exchange, batch, shares, key))
        });
        match ready {
            Ok((exchange, batch, shares, key)) => {
                meet(&exchange.0, timeout, ctx, key, &batch, &shares);
            }
            Err(status) => ctx.fail(status),
        }
    })
}

fn id(view: &KernelCtx<'_>) -> Result<i64> {
    let id = view.input(2)?;
    ensure!(
        id.rank() == 0,
        invalid_argument,
        "Input id should be scalar; Got: a tensor of shape {}.",
        id.shape()
    );
    id.to_scalar::<i64>()
}

/// Takes the run's own rows if they are here, else waits for them; leaves or hands out the rows of others.
fn meet(
    state: &Arc<Mutex<State>>,
    timeout: Duration,
    ctx: AsyncCtx,
    key: i64,
    batch: &Tensor,
    shares: &[Share],
) {
    let (cancel, clock) = (ctx.env().cancel.clone(), ctx.env().clock.clone());
    let deadline = clock.monotonic() + timeout;
    let mut served = Vec::new();
    let number = {
        let mut state = lock(state);
        if let Some((_, rows)) = state.rows.remove(&key) {
            drop(state);
            return ctx.finish_with([rows]);
        }
        if state.runs.contains_key(&key) {
            drop(state);
            return ctx.fail(already_exists!(
                "Multiple session runs with the same batch key."
            ));
        }
        state.next_number += 1;
        let number = state.next_number;
        state.runs.insert(
            key,
            Run {
                number,
                deadline,
                ctx,
            },
        );
        for share in shares {
            let rows = batch.rows(share.start, share.rows);
            match (state.runs.remove(&share.key), rows) {
                (Some(run), rows) => served.push((run.ctx, rows)),
                (None, Ok(rows)) if !state.rows.contains_key(&share.key) => {
                    state.rows.insert(share.key, (deadline, rows));
                }
                (None, rows) => {
                    let twice = already_exists!("Multiple tensors returned for same batch key.");
                    if let Some(run) = state.runs.remove(&key) {
                        served.push((run.ctx, Err(rows.err().unwrap_or(twice))));
                    }
                    break;
                }
            }
        }
        number
    };
    for (ctx, rows) in served {
        match rows {
            Ok(rows) => ctx.finish_with([rows]),
            Err(status) => ctx.fail(status),
        }
    }
    watch(state, &clock);
    let weak = Arc::downgrade(state);
    // It finds nothing once the run has its rows.
    let forget = move |_: &_| {
        let Some(state) = weak.upgrade() else {
            return;
        };
        let found = {
            let mut state = lock(&state);
            match state.runs.get(&key) {
                Some(run) if run.number == number => state.runs.remove(&key),
                _ => None,
            }
        };
        if let Some(run) = found {
            run.ctx.fail(cancelled!(
                "the step was cancelled while it waited for its rows"
            ));
        }
    };
    cancel.on_cancel(forget).detach();
}

/// Has the clock call when the next run or rows are too late.
fn watch(state: &Arc<Mutex<State>>, clock: &Arc<dyn Clock>) {
    let now = clock.monotonic();
    let pause = {
        let mut state = lock(state);
        let runs = state.runs.values().map(|run| run.deadline);
        let next = runs.chain(state.rows.values().map(|rows| rows.0)).min();
        match next {
            Some(next) if !state.armed => {
                state.armed = true;
                next.saturating_sub(now)
            }
            _ => return,
        }
    };
    // It holds on to who waits, also where the resource is gone.
    let (state, again) = (state.clone(), clock.clone());
    clock.after(pause, Box::new(move || evict(&state, &again)));
}

fn evict(state: &Arc<Mutex<State>>, clock: &Arc<dyn Clock>) {
    let now = clock.monotonic();
    let late: Vec<Run> = {
        let mut state = lock(state);
        state.armed = false;
        state.rows.retain(|_, (deadline, _)| *deadline > now);
        let late = state.runs.extract_if(|_, run| run.deadline <= now);
        late.map(|(_, run)| run).collect()
    };
    for run in late {
        let pool = run.ctx.env().pool.clone();
        let fail = || {
            run.ctx.fail(deadline_exceeded!(
                "Batched data did not arrive within timeout window."
            ));
        };
        pool.spawn(Box::new(fail));
    }
    watch(state, clock);
}
