//! `MutexV2`, `MutexLock`, `ConsumeMutexLock`: critical sections across steps.
//!
//! TensorFlow: MutexV2() -> resource: resource, with attrs container: string = "", shared_name: string = "";
//! MutexLock(mutex: resource) -> mutex_lock: variant; ConsumeMutexLock(mutex_lock: variant). A lock is held for as
//! long as its variant is anywhere; consuming it only keeps it until then. Locks are granted in the order they were
//! asked for.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, CancelGuard, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, cancelled, ensure, invalid_argument};
use tensorfleet_tensor::{Bytes, Tensor, Variant, VariantObject};

use super::NO_GRADIENT;
use super::cache::Cache;
use super::names::{SharedName, handle_to};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "MutexV2",
        outputs: &["resource: resource"],
        attrs: &["container: string = ''", "shared_name: string = ''"],
        kernels: &[cpu(&[], build_mutex)],
        scripts: &[AGAIN],
        ..MUTEX
    },
    OpDef {
        name: "MutexLock",
        inputs: &["mutex: resource"],
        outputs: &["mutex_lock: variant"],
        kernels: &[cpu(&[], |_| AnyKernel::later(lock))],
        scripts: &[AGAIN],
        ..MUTEX
    },
    OpDef {
        name: "ConsumeMutexLock",
        inputs: &["mutex_lock: variant"],
        kernels: &[cpu(&[], build_consume)],
        scripts: &[AGAIN],
        ..MUTEX
    },
];

const MUTEX: OpDef = OpDef {
    stateful: true,
    infer: infer::scalar,
    gradient: NO_GRADIENT,
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const AGAIN: Script = script(
    "two sections, taken in every step",
    "m = MutexV2() {shared_name='m'}
     v = VariableV2() {dtype=int32, shape=[]}
     zero = int32[]{0}
     init = Assign(v, zero)
     one = int32[]{1}
     lock_a = MutexLock(m)
     add_a = AssignAdd(v, one, ^lock_a)
     end_a = ConsumeMutexLock(lock_a, ^add_a)
     lock_b = MutexLock(m)
     add_b = AssignAdd(v, one, ^lock_b)
     end_b = ConsumeMutexLock(lock_b, ^add_b)",
    &[
        "run init",
        "run end_a, end_b",
        "run end_a, end_b",
        "fetch v => int32[]{4}",
    ],
);

/// The resource: who holds it, who waits.
#[derive(Default)]
struct Section {
    removed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: bool,
    next_ticket: u64,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    ticket: u64,
    ctx: AsyncCtx,
    /// Set once the wait is registered for cancellation.
    cancel: Option<CancelGuard>,
}

impl Resource for Section {
    fn type_name(&self) -> &'static str {
        "N10tensorflow12_GLOBAL__N_15MutexE"
    }

    fn on_removed(&self) {
        self.removed.store(true, Ordering::Release);
    }
}

impl Section {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the lock to whoever waits longest, or frees it.
    fn release(self: &Arc<Self>) {
        let mut state = self.state();
        let next = state.waiting.pop_front();
        state.held = next.is_some();
        drop(state);
        // Outside of our lock: finishing may run the rest of the step on this thread.
        if let Some(next) = next {
            drop(next.cancel);
            next.ctx.finish_with([self.held()]);
        }
    }

    fn held(self: &Arc<Self>) -> Tensor {
        Tensor::scalar(Variant::Object(Arc::new(Held(self.clone()))))
    }

    /// Gives up a wait.
    fn withdraw(&self, ticket: u64) {
        let mut state = self.state();
        let found = state.waiting.iter().position(|wait| wait.ticket == ticket);
        let waiting = found.and_then(|index| state.waiting.remove(index));
        drop(state);
        if let Some(waiting) = waiting {
            waiting.ctx.fail(cancelled!("Lock acquisition cancelled."));
        }
    }
}

/// The lock while it is held; ends with its last holder.
struct Held(Arc<Section>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl VariantObject for Held {
    fn type_name(&self) -> &str {
        "tensorflow::LockReleaser"
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn build_mutex(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    let cache: Cache<(Arc<Section>, Tensor)> = Cache::new();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let env = ctx.env();
        let (_, handle) = cache.get(
            &env.resources,
            |(section, _)| !section.removed.load(Ordering::Acquire),
            || {
                let container = names.container(ctx);
                let section: Arc<Section> =
                    env.resources
                        .lookup_or_create(container, &names.name, || Ok(Section::default()))?;
                let handle = handle_to(ctx, container, &names.name, section.clone());
                Ok((section, handle))
            },
        )?;
        ctx.set(0, handle);
        Ok(())
    })
}

fn lock(mut ctx: AsyncCtx) {
    let section = match ctx.view(|ctx| ctx.resource::<Section>(0)) {
        Ok(section) => section,
        Err(status) => return ctx.fail(status),
    };
    let cancel = ctx.env().cancel.clone();
    let mut state = section.state();
    if !state.held {
        state.held = true;
        drop(state);
        return ctx.finish_with([section.held()]);
    }
    let ticket = state.next_ticket;
    state.next_ticket += 1;
    state.waiting.push_back(Waiting {
        ticket,
        ctx,
        cancel: None,
    });
    drop(state);
    // Not under our lock: a step cancelled already calls back at once.
    let waiting_for = section.clone();
    let guard = cancel.on_cancel(move |_| waiting_for.withdraw(ticket));
    let mut state = section.state();
    if let Some(waiting) = state.waiting.iter_mut().find(|wait| wait.ticket == ticket) {
        waiting.cancel = Some(guard);
    }
}

fn build_consume(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let lock = ctx.take(0)?;
        let [variant] = lock.slice::<Variant>()? else {
            return Err(invalid_argument!(
                "a scalar was expected, got shape {}",
                lock.shape()
            ));
        };
        ensure!(
            variant.downcast::<Held>().is_some(),
            invalid_argument,
            "Expected input to be a LockReleaser, got {}",
            variant.type_name()
        );
        Ok(())
    })
}
