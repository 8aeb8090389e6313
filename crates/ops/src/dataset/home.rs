//! [`Home`]: where the functions of an iterator run. It outlives the step that made the iterator, and all steps that ask it.
//!
//! Functions have kernels with state of their own here, as in TensorFlow: those of the session would keep the session alive.
//! The device and its resources are not kept alive either, for they keep the iterator.

use std::any::Any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustc_hash::FxHashMap;
use tensorfleet_kernel::{
    CallFrame, CancelToken, Clock, Device, FunctionRuntime, LocalRendezvous, ResourceManager,
    StepEnv,
};
use tensorfleet_math::par::{Par, Pool, Watched};
use tensorfleet_status::{Result, Status, cancelled};

/// What all stages of one iterator share.
pub(super) struct Home {
    step_id: u64,
    device: Weak<Device>,
    resources: Weak<ResourceManager>,
    functions: Arc<dyn FunctionRuntime>,
    clock: Arc<dyn Clock>,
    call_frame: Arc<CallFrame>,
    pub(super) pool: Arc<Pool>,
    /// Ends everything that goes on.
    pub(super) cancel: CancelToken,
    /// Elements that were made since the last rest.
    made: AtomicU32,
    /// What stages keep for all their iterators here.
    kept: Mutex<FxHashMap<usize, Kept>>,
}

struct Kept {
    key: Weak<()>,
    value: Arc<dyn Any + Send + Sync>,
}

/// Stands for a stage that keeps something for all its iterators of one home: in TensorFlow each iterator has a copy of the
/// dataset.
#[derive(Clone, Default)]
pub(super) struct Key(Arc<()>);

/// After so many elements an iterator rests.
const BETWEEN_RESTS: u32 = 4096;

impl Home {
    /// A home for an iterator that outlives the step.
    pub(super) fn lasting(env: &StepEnv) -> Arc<Home> {
        Home::with(env, env.functions.apart(), CancelToken::new())
    }

    /// A home for an iterator within the step.
    pub(super) fn within(env: &StepEnv) -> Arc<Home> {
        Home::with(env, env.functions.clone(), env.cancel.clone())
    }

    fn with(env: &StepEnv, functions: Arc<dyn FunctionRuntime>, cancel: CancelToken) -> Arc<Home> {
        Arc::new(Home {
            step_id: env.step_id,
            device: Arc::downgrade(&env.device),
            resources: Arc::downgrade(&env.resources),
            functions,
            clock: env.clock.clone(),
            // The depth of calls goes on, so that what calls itself by way of an iterator has an end, too.
            call_frame: Arc::new(env.call_frame.nested(Vec::new(), 0)),
            pool: env.pool.clone(),
            cancel,
            made: AtomicU32::new(0),
            kept: Mutex::default(),
        })
    }

    /// What a stage keeps here, made when it is first asked for.
    pub(super) fn keep<T: Send + Sync + 'static>(
        &self,
        key: &Key,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let name = Arc::as_ptr(&key.0) as usize;
        if let Some(found) = kept.get(&name).filter(|one| one.key.strong_count() > 0)
            && let Ok(value) = found.value.clone().downcast::<T>()
        {
            return value;
        }
        // Functions may make one dataset after the other: what nobody has any more goes.
        if kept.len().is_power_of_two() {
            kept.retain(|_, one| one.key.strong_count() > 0);
        }
        let value = Arc::new(make());
        let entry = Kept {
            key: Arc::downgrade(&key.0),
            value: value.clone(),
        };
        kept.insert(name, entry);
        value
    }

    /// Whether it is time to rest, so that what goes on without end can be stopped.
    pub(super) fn rests(&self) -> bool {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        made % BETWEEN_RESTS == BETWEEN_RESTS - 1
    }

    /// Monotonic time.
    pub(super) fn now(&self) -> std::time::Duration {
        self.clock.monotonic()
    }

    /// As many as there are threads.
    pub(super) fn threads(&self) -> usize {
        self.pool.threads().max(1)
    }

    /// The device's resources.
    pub(super) fn resources(&self) -> Result<Arc<ResourceManager>> {
        self.resources.upgrade().ok_or_else(gone)
    }

    /// A step of its own, for one call of a function.
    pub(super) fn step(&self, cancel: CancelToken) -> Result<Arc<StepEnv>> {
        Ok(Arc::new(StepEnv {
            step_id: self.step_id,
            device: self.device.upgrade().ok_or_else(gone)?,
            resources: self.resources()?,
            step_resources: Arc::new(ResourceManager::new()),
            rendezvous: Arc::new(LocalRendezvous::new()),
            par: Watched::new(self.pool.clone(), cancel.clone()),
            cancel,
            pool: self.pool.clone(),
            functions: self.functions.clone(),
            clock: self.clock.clone(),
            call_frame: self.call_frame.clone(),
        }))
    }
}

fn gone() -> Status {
    cancelled!("the session of the iterator is gone")
}

/// Where an iterator is: its home, and within how many others.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) home: Arc<Home>,
    depth: usize,
}

impl Place {
    /// The end of a pipeline.
    pub(super) fn at(home: Arc<Home>) -> Place {
        Place { home, depth: 0 }
    }

    /// One stage further from the end.
    pub(super) fn deeper(&self) -> Place {
        Place {
            home: self.home.clone(),
            depth: self.depth + 1,
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }
}
