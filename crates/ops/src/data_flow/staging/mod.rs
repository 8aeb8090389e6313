//! Staging areas: tuples of tensors that wait between steps, in order or under keys.
//!
//! Putting waits for room, taking waits for something to take. Nobody holds a thread: an operation that cannot go on stays
//! in line and is tried again after every change.

pub(crate) mod map;
pub(crate) mod map_ops;
pub(crate) mod stage;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef};
use tensorfleet_kernel::{AsyncCtx, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, cancelled, ensure, resource_exhausted};
use tensorfleet_tensor::{PortType, Tensor};

use crate::state::names::SharedName;

/// What all ops on staging areas share; those that only look need not name any types.
const AREA: OpDef = OpDef {
    attrs: &[
        "capacity: int >= 0 = 0",
        "memory_limit: int >= 0 = 0",
        "dtypes: list(type) >= 1",
        "container: string = ''",
        "shared_name: string = ''",
    ],
    stateful: true,
    gradient: Gradient::Stop("state is not differentiated"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const ANY_TYPES: &[&str] = &[
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
];

/// What ends an operation: its outputs.
type Answer = Result<Vec<Tensor>>;

/// Tries to go on; `None` to stay in line.
type Attempt<S> = Box<dyn FnMut(&mut S) -> Option<Answer> + Send>;

/// A state and the operations that wait for it to change.
pub(super) struct Area<S> {
    inner: Mutex<Inner<S>>,
}

struct Inner<S> {
    state: S,
    line: VecDeque<(u64, AsyncCtx, Attempt<S>)>,
    next_id: u64,
}

impl<S: Default> Default for Area<S> {
    fn default() -> Area<S> {
        Area {
            inner: Mutex::new(Inner {
                state: S::default(),
                line: VecDeque::new(),
                next_id: 0,
            }),
        }
    }
}

impl<S: Send + 'static> Area<S> {
    fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes the state at once; whoever waited for the change is served.
    fn with<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let (result, served) = {
            let mut inner = self.lock();
            let result = change(&mut inner.state);
            (result, inner.serve())
        };
        finish(served);
        result
    }

    /// Runs an attempt as soon as it succeeds.
    fn submit(self: &Arc<Area<S>>, ctx: AsyncCtx, attempt: Attempt<S>) {
        let cancel = ctx.env().cancel.clone();
        let (id, served) = {
            let mut inner = self.lock();
            let id = inner.next_id;
            inner.next_id += 1;
            inner.line.push_back((id, ctx, attempt));
            let served = inner.serve();
            let waits = inner.line.iter().any(|(other, ..)| *other == id);
            (waits.then_some(id), served)
        };
        finish(served);
        let Some(id) = id else {
            return;
        };
        let area = Arc::downgrade(self);
        // It finds nothing once the operation went on.
        let guard = cancel.on_cancel(move |_| {
            let Some(area) = area.upgrade() else {
                return;
            };
            let found = {
                let mut inner = area.lock();
                let place = inner.line.iter().position(|(other, ..)| *other == id);
                place.and_then(|place| inner.line.remove(place))
            };
            if let Some((_, ctx, _)) = found {
                ctx.fail(cancelled!("the staging operation was cancelled"));
            }
        });
        guard.detach();
    }
}

impl<S> Inner<S> {
    /// Tries those in line until none goes on.
    fn serve(&mut self) -> Vec<(AsyncCtx, Answer)> {
        let mut served = Vec::new();
        let mut at = 0;
        while let Some((_, _, attempt)) = self.line.get_mut(at) {
            match attempt(&mut self.state) {
                None => at += 1,
                Some(answer) => {
                    if let Some((_, ctx, _)) = self.line.remove(at) {
                        served.push((ctx, answer));
                    }
                    at = 0;
                }
            }
        }
        served
    }
}

/// Answers outside of the lock: an answer may run other kernels.
fn finish(served: Vec<(AsyncCtx, Answer)>) {
    for (ctx, answer) in served {
        match answer {
            Ok(tensors) => ctx.finish_with(tensors),
            Err(status) => ctx.fail(status),
        }
    }
}

/// How much may be staged; zero is without limit.
#[derive(Clone, Copy)]
struct Limits {
    capacity: usize,
    bytes: usize,
}

impl Limits {
    fn of(node: &NodeInfo) -> Result<Limits> {
        let limit = |name: &str| -> Result<usize> {
            Ok(usize::try_from(node.attrs.int(name)?).unwrap_or(0))
        };
        Ok(Limits {
            capacity: limit("capacity")?,
            bytes: limit("memory_limit")?,
        })
    }

    /// Whether `more` bytes fit beside what is there; an error if they never will.
    fn admit(&self, count: usize, bytes: usize, more: usize) -> Result<bool> {
        if self.bytes > 0 && more > self.bytes {
            return Err(resource_exhausted!(
                "Attempted to insert tensors with combined size of '{more}' bytes into Staging Area with a memory limit of '{}'.",
                self.bytes
            ));
        }
        let has_room = self.capacity == 0 || count < self.capacity;
        Ok(has_room && (self.bytes == 0 || bytes + more <= self.bytes))
    }
}

fn byte_size(tensors: &[Tensor]) -> usize {
    tensors.iter().map(Tensor::byte_size).sum()
}

/// Finds or makes the area of a node.
fn area_of<T: Resource + Default>(ctx: &KernelCtx<'_>, names: &SharedName) -> Result<Arc<T>> {
    let resources = &ctx.env().resources;
    resources.lookup_or_create(names.container(ctx), &names.name, || Ok(T::default()))
}

/// Whether a tuple has the types that a node puts out.
fn check_types(wanted: &[PortType], tensors: &[Tensor]) -> Result<()> {
    ensure!(
        wanted.len() == tensors.len(),
        invalid_argument,
        "the staged tuple has {} tensors, the op expects {}",
        tensors.len(),
        wanted.len()
    );
    for (index, (port, tensor)) in wanted.iter().zip(tensors).enumerate() {
        ensure!(
            port.dtype == tensor.dtype(),
            invalid_argument,
            "staged tensor {index} is of type {}, the op expects {}",
            tensor.dtype(),
            port.dtype
        );
    }
    Ok(())
}
