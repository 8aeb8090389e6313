//! `UnbatchGrad`: puts the gradients of several steps together, as their rows were in the batch.
//!
//! TensorFlow: (original_input: T, batch_index: int64, grad: T, id: int64) -> batched_grad: T. Every step leaves its gradient
//! here under its id; the step that had the batch waits for all of them, the others get nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use tensorfleet_graph::example::script;
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, cancelled, ensure, internal, invalid_argument};
use tensorfleet_tensor::{PartialShape, Tensor};

use super::join;
use crate::state::names::SharedName;

pub(crate) static OP: OpDef = OpDef {
    name: "UnbatchGrad",
    inputs: &[
        "original_input: T",
        "batch_index: int64",
        "grad: T",
        "id: int64",
    ],
    outputs: &["batched_grad: T"],
    attrs: &[
        "container: string = ''",
        "shared_name: string = ''",
        "T: type",
    ],
    infer,
    gradient: Gradient::None("TensorFlow has none"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    scripts: &[script(
        "two runs, one of which had the batch",
        "batch = float[3,1]{1, 2, 3}
         index = int64[2,3]{7, 0, 1, 8, 1, 3}
         seven = int64[]{7}
         eight = int64[]{8}
         nothing = float[0,1]{}
         nobody = int64[0,3]{}
         first = float[1,1]{10}
         others = float[2,1]{20, 30}
         one = UnbatchGrad(batch, index, first, seven) {shared_name='u'}
         two = UnbatchGrad(nothing, nobody, others, eight) {shared_name='u'}
         ids = UnbatchGrad(batch, index, first, index) {}
         none = UnbatchGrad(batch, nobody, first, seven) {shared_name='v'}
         pairs = int64[1,2]{7, 0}
         narrow = UnbatchGrad(batch, pairs, first, seven) {shared_name='w'}",
        &[
            "fetch one, two => float[3,1]{10, 20, 30}; float[0,1]{}",
            "fetch ids fails INVALID_ARGUMENT Expected `id` to be scalar.",
            "fetch none fails INVALID_ARGUMENT batch_index is empty while the tensor isn't.",
            "fetch narrow fails INVALID_ARGUMENT batch_index should contain 3 elements. Received 2",
        ],
    )],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let rank = ctx.input(2).rank();
    ctx.set(
        0,
        rank.map_or(PartialShape::unknown(), PartialShape::of_rank),
    );
    Ok(())
}

#[derive(Default)]
struct Gradients(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Gradients by the id of their step.
    here: FxHashMap<i64, Tensor>,
    /// Runs that wait for gradients, by the id of their step.
    batches: FxHashMap<i64, Batch>,
    /// Which run waits for a gradient.
    wanted: FxHashMap<i64, i64>,
    next_number: u64,
}

struct Batch {
    number: u64,
    keys: Vec<i64>,
    missing: FxHashSet<i64>,
    ctx: AsyncCtx,
}

impl Resource for Gradients {
    fn type_name(&self) -> &'static str {
        "UnbatchGradResource"
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// The gradients under these ids, which leave.
    fn take(&mut self, keys: &[i64]) -> Result<Vec<Tensor>> {
        let take = |key: &i64| {
            let found = self.here.remove(key);
            found.ok_or_else(|| internal!("bad bookkeeping of available tensors."))
        };
        keys.iter().map(take).collect()
    }
}

/// A run and what it is answered with.
type Answer = (AsyncCtx, Result<Vec<Tensor>>);

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let ready = ctx.view(|view| {
            let container = names.container(view);
            let resources = &view.env().resources;
            let gradients =
                resources.lookup_or_create(container, &names.name, || Ok(Gradients::default()))?;
            let id = view.input(3)?;
            ensure!(
                id.rank() == 0,
                invalid_argument,
                "Expected `id` to be scalar. Received a tensor of shape {}",
                id.shape()
            );
            Ok((gradients, id.to_scalar::<i64>()?, view.input(2)?.clone()))
        });
        let (gradients, key, grad) = match ready {
            Ok(ready) => ready,
            Err(status) => return ctx.fail(status),
        };
        let cancel = ctx.env().cancel.clone();
        let (answers, number) = arrive(&gradients.0, ctx, key, grad);
        for (ctx, tensors) in answers {
            finish(ctx, tensors);
        }
        if let Some(number) = number {
            let weak = Arc::downgrade(&gradients.0);
            // It finds nothing once the gradients are there.
            let forget = move |_: &_| {
                if let Some(state) = weak.upgrade() {
                    forget(&state, key, number);
                }
            };
            cancel.on_cancel(forget).detach();
        }
    })
}

/// Leaves a gradient, and tells who can be answered and, if this run has to wait, under which number it does.
fn arrive(
    state: &Mutex<State>,
    mut ctx: AsyncCtx,
    key: i64,
    grad: Tensor,
) -> (Vec<Answer>, Option<u64>) {
    let mut state = lock(state);
    if state.here.contains_key(&key) {
        let twice = invalid_argument!("Two runs with the same batch key.");
        return (vec![(ctx, Err(twice))], None);
    }
    let keys = match ctx.view(|view| keys(view)) {
        Ok(keys) => keys,
        Err(status) => return (vec![(ctx, Err(status))], None),
    };
    let none = grad.rank().checked_sub(1).map(|_| grad.rows(0, 0));
    state.here.insert(key, grad);
    let mut answers = Vec::new();
    let mut number = None;
    match keys {
        None => {
            let none = none.unwrap_or_else(|| {
                Err(invalid_argument!(
                    "a gradient without rows cannot be batched"
                ))
            });
            answers.push((ctx, none.map(|none| vec![none])));
        }
        Some(keys) => {
            let missing = keys.iter().filter(|key| !state.here.contains_key(key));
            let missing: FxHashSet<i64> = missing.copied().collect();
            if missing.is_empty() {
                let tensors = state.take(&keys);
                return (vec![(ctx, tensors)], None);
            }
            if state.batches.contains_key(&key) {
                let twice = invalid_argument!("Batch key with valid batch used twice.");
                return (vec![(ctx, Err(twice))], None);
            }
            if missing
                .iter()
                .any(|missing| state.wanted.contains_key(missing))
            {
                let twice = invalid_argument!("Missing tensor wanted by more than one batch.");
                return (vec![(ctx, Err(twice))], None);
            }
            state
                .wanted
                .extend(missing.iter().map(|missing| (*missing, key)));
            state.next_number += 1;
            number = Some(state.next_number);
            let batch = Batch {
                number: state.next_number,
                keys,
                missing,
                ctx,
            };
            state.batches.insert(key, batch);
        }
    }
    if let Some(wanted_by) = state.wanted.remove(&key)
        && let Some(batch) = state.batches.get_mut(&wanted_by)
    {
        batch.missing.remove(&key);
        if batch.missing.is_empty()
            && let Some(batch) = state.batches.remove(&wanted_by)
        {
            let tensors = state.take(&batch.keys);
            answers.push((batch.ctx, tensors));
        }
    }
    (answers, number)
}

/// Whose rows the batch has; `None` if there is none.
fn keys(view: &KernelCtx<'_>) -> Result<Option<Vec<i64>>> {
    let (batch, index) = (view.input(0)?, view.input(1)?);
    if batch.is_empty() {
        return Ok(None);
    }
    ensure!(
        !index.is_empty(),
        invalid_argument,
        "batch_index is empty while the tensor isn't."
    );
    let wanted = if index.rank() == 0 {
        3
    } else {
        index.shape().dim(0) * 3
    };
    ensure!(
        index.elements() == wanted,
        invalid_argument,
        "batch_index should contain {wanted} elements. Received {}",
        index.elements()
    );
    let (lines, _) = index.slice::<i64>()?.as_chunks::<3>();
    Ok(Some(lines.iter().map(|line| line[0]).collect()))
}

fn finish(ctx: AsyncCtx, tensors: Result<Vec<Tensor>>) {
    let joined = tensors.and_then(|tensors| {
        let parts: Vec<&Tensor> = tensors.iter().collect();
        join(&*ctx.env().pool, &parts)
    });
    match joined {
        Ok(tensor) => ctx.finish_with([tensor]),
        Err(status) => ctx.fail(status),
    }
}

/// Answers a run that is no longer wanted, if it still waits.
fn forget(state: &Mutex<State>, key: i64, number: u64) {
    let found = {
        let mut state = lock(state);
        match state.batches.get(&key) {
            Some(batch) if batch.number == number => {
                state.wanted.retain(|_, wanted_by| *wanted_by != key);
                state.batches.remove(&key)
            }
            _ => None,
        }
    };
    if let Some(batch) = found {
        let why = cancelled!("the step was cancelled while it waited for gradients");
        batch.ctx.fail(why);
    }
}
