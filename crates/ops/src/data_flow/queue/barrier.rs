//! [`Barrier`]: gathers the components of tuples by key, and lets out the tuples that are whole.
//!
//! What is whole waits in a priority queue of (index, key, components): keys that came in earlier leave earlier. Takes wait
//! there, as dequeues do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_kernel::{AsyncCtx, Resource};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, TString, Tensor};

use super::batch::batch;
use super::spec::{Kind, Spec, Tuple};
use super::waiting::{Queue, Rows, Work};

/// Tuples in the making, and a queue of those that are made.
pub(super) struct Barrier {
    pub(super) name: String,
    pub(super) dtypes: Vec<DType>,
    pub(super) shapes: Vec<PartialShape>,
    ready: Arc<Queue>,
    state: Mutex<State>,
}

struct State {
    closed: Option<Closed>,
    /// The index of the keys of the next insertion that brings new ones.
    next_index: i64,
    incomplete: FxHashMap<TString, Incomplete>,
    /// Insertions whose tuples are whole and not in the queue yet.
    on_the_way: usize,
}

/// How a barrier was closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// Keys that are there may be completed.
    ToNewKeys,
    /// What is not complete is gone.
    Cancelled,
}

struct Incomplete {
    index: i64,
    components: Vec<Option<Tensor>>,
}

impl Resource for Barrier {
    fn type_name(&self) -> &'static str {
        "N10tensorflow7barrier7BarrierE"
    }
}

impl Barrier {
    /// An empty barrier.
    pub(super) fn new(name: &str, dtypes: &[DType], shapes: &[PartialShape]) -> Barrier {
        let spec = Spec {
            kind: Kind::Priority,
            dtypes: [&[DType::I64, DType::String], dtypes].concat(),
            shapes: [&[PartialShape::scalar(), PartialShape::scalar()], shapes].concat(),
            capacity: i32::MAX as usize,
            min_after_dequeue: 0,
            seeds: (0, 0),
        };
        Barrier {
            name: name.to_owned(),
            dtypes: dtypes.to_vec(),
            shapes: shapes.to_vec(),
            ready: Arc::new(Queue::new(&format!("{name}_queue"), spec, || 0)),
            state: Mutex::new(State {
                closed: None,
                next_index: i64::MIN,
                incomplete: FxHashMap::default(),
                on_the_way: 0,
            }),
        }
    }

    /// The number of tuples that are whole.
    pub(super) fn ready_size(&self) -> usize {
        self.ready.size()
    }

    /// The number of keys that lack components.
    pub(super) fn incomplete_size(&self) -> usize {
        self.lock().incomplete.len()
    }

    /// Adds component `component` of the tuples of these keys.
    pub(super) fn insert(
        self: &Arc<Barrier>,
        ctx: AsyncCtx,
        component: usize,
        keys: &[TString],
        values: &Tensor,
    ) {
        let par = ctx.env().pool.clone();
        match self.gather(&*par, component, keys, values) {
            Err(status) => ctx.fail(status),
            Ok(None) => ctx.finish_with([]),
            Ok(Some(rows)) => {
                self.ready.submit(ctx, Work::Enqueue(rows));
                self.lock().on_the_way -= 1;
                self.close_if_done();
            }
        }
    }

    /// Adds components; the rows of tuples that are whole now.
    fn gather(
        &self,
        par: &dyn Par,
        component: usize,
        keys: &[TString],
        values: &Tensor,
    ) -> Result<Option<Rows>> {
        ensure!(
            keys.is_empty() || !values.is_empty(),
            invalid_argument,
            "Tensors with no elements are not supported {}: received shape {}",
            self.name,
            values.shape()
        );
        ensure!(
            values.rank() > 0 && values.shape().dim(0) == keys.len(),
            invalid_argument,
            "{} keys do not go with values of shape {}",
            keys.len(),
            values.shape()
        );
        let element = Shape::new(values.shape().get(1..).unwrap_or_default())?;
        let state = &mut *self.lock();
        if let Some(closed) = state.closed {
            ensure!(
                closed != Closed::Cancelled && (keys.is_empty() || !state.incomplete.is_empty()),
                cancelled,
                "Barrier {} is closed.  Pending enqueues cancelled: {}.  Number of new insertions: {}.  Number of incomplete keys: {}.",
                self.name,
                i32::from(closed == Closed::Cancelled),
                keys.len(),
                state.incomplete.len()
            );
        }
        let mut is_new = false;
        let mut whole = Vec::new();
        for (row, key) in keys.iter().enumerate() {
            is_new |= self.find(state, key, row)?;
            let value = values.rows(row, 1)?.reshaped(element.clone())?;
            if let Some(tuple) = self.set(state, key, component, value)? {
                self.ready.spec.check(&tuple, false)?;
                whole.push(tuple);
            }
        }
        if is_new {
            state.next_index = state
                .next_index
                .checked_add(1)
                .ok_or_else(|| internal!("a barrier can no longer keep track of new insertions"))?;
        }
        if whole.is_empty() {
            return Ok(None);
        }
        let rows = Rows::many(batch(par, &self.ready.spec, &whole)?);
        state.on_the_way += 1;
        Ok(Some(rows))
    }

    /// Makes sure that a key is there; whether it is new.
    fn find(&self, state: &mut State, key: &TString, row: usize) -> Result<bool> {
        if state.incomplete.contains_key(key) {
            return Ok(false);
        }
        ensure!(
            state.closed.is_none(),
            cancelled,
            "Barrier {} is closed, but attempted to insert a brand new key: {}.  Pending enqueues cancelled: 0.  Insertion index: {row}.  Number of incomplete keys: {}.",
            self.name,
            String::from_utf8_lossy(key),
            state.incomplete.len()
        );
        let incomplete = Incomplete {
            index: state.next_index,
            components: vec![None; self.dtypes.len()],
        };
        // A copy of its own: the key may be a part of a large message.
        state
            .incomplete
            .insert(TString::copy_from_slice(key), incomplete);
        Ok(true)
    }

    /// Sets a component; the tuple if it is whole with it.
    fn set(
        &self,
        state: &mut State,
        key: &TString,
        component: usize,
        value: Tensor,
    ) -> Result<Option<Tuple>> {
        let entry = state.incomplete.get_mut(key);
        let slot = entry.and_then(|entry| entry.components.get_mut(component));
        match slot {
            Some(slot @ None) => *slot = Some(value),
            _ => {
                return Err(invalid_argument!(
                    "Key {} already has a value for component {component} in barrier {}",
                    String::from_utf8_lossy(key),
                    self.name
                ));
            }
        }
        let is_whole = |entry: &Incomplete| entry.components.iter().all(Option::is_some);
        if !state.incomplete.get(key).is_some_and(is_whole) {
            return Ok(None);
        }
        Ok(state.incomplete.remove_entry(key).map(|(key, entry)| {
            let mut tuple = vec![Tensor::scalar(entry.index), Tensor::string(key)];
            tuple.extend(entry.components.into_iter().flatten());
            tuple
        }))
    }

    /// Takes tuples that are whole, or waits for them; fewer than `wanted` if `up_to` and the barrier is closed.
    pub(super) fn take(self: &Arc<Barrier>, ctx: AsyncCtx, wanted: usize, up_to: bool) {
        let checked = self.check_available(wanted, up_to);
        match checked {
            Err(status) => ctx.fail(status),
            Ok(wanted) => {
                let work = Work::DequeueMany {
                    wanted,
                    up_to,
                    taken: Vec::new(),
                };
                self.ready.submit(ctx, work);
            }
        }
    }

    /// How many tuples a take may ask for: a closed barrier must have or get them.
    fn check_available(&self, wanted: usize, up_to: bool) -> Result<usize> {
        let state = self.lock();
        if state.closed.is_none() {
            return Ok(wanted);
        }
        let ready = self.ready.size();
        let (wanted, available) = match up_to {
            true => (wanted.min(ready), ready),
            false => (wanted, ready + state.incomplete.len()),
        };
        ensure!(
            available >= wanted.max(1),
            out_of_range,
            "Barrier '{}' is closed and has insufficient elements (requested {wanted}, total size {available})",
            self.name
        );
        Ok(wanted)
    }

    /// Closes the barrier to new keys; with `cancel` to all, and what is not complete is gone.
    pub(super) fn close(&self, cancel: bool) -> Result<()> {
        {
            let state = &mut *self.lock();
            let again = state.closed == Some(Closed::Cancelled) || !cancel;
            ensure!(
                state.closed.is_none() || !again,
                cancelled,
                "Barrier '{}' is already closed.",
                self.name
            );
            state.closed = Some(match cancel {
                true => Closed::Cancelled,
                false => Closed::ToNewKeys,
            });
            if cancel {
                state.incomplete.clear();
            }
        }
        self.close_if_done();
        Ok(())
    }

    /// Once nothing more can become whole, who waits for more than there is waits in vain.
    fn close_if_done(&self) {
        let is_done = {
            let state = self.lock();
            state.closed.is_some() && state.incomplete.is_empty() && state.on_the_way == 0
        };
        if is_done {
            // Enqueues never wait here, so that there are none to cancel.
            self.ready.close_and_cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
