//! [`Session`]: a graph that grows, and runs of parts of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tensorfleet_exec::{KernelCache, Optimize, StepReport, start};
use tensorfleet_graph::{Graph, Registry};
use tensorfleet_kernel::{
    CallFrame, CancelToken, Device, LocalRendezvous, ResourceManager, StepEnv,
};
use tensorfleet_math::par::{Pool, Watched};
use tensorfleet_passes::{Boundary, PassOptions, Signature};
use tensorfleet_proto::GraphDef;
use tensorfleet_status::{
    Result, Status, cancelled, deadline_exceeded, failed_precondition, internal, invalid_argument,
};
use tensorfleet_tensor::Tensor;

use crate::metadata::RunMetadata;
use crate::optimizer::optimizer;
use crate::options::{RunOptions, SessionOptions};
use crate::prepared::{Compiler, Prepared};

/// How long a step that was cancelled by its deadline may take to notice before the caller goes on without it.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// An in-process session. All methods may be called from many threads at once.
pub struct Session {
    registry: Arc<Registry>,
    pub(crate) device: Arc<Device>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) options: SessionOptions,
    kernels: Arc<KernelCache>,
    optimize: Optimize,
    state: Mutex<State>,
    closed: AtomicBool,
    cancel: CancelToken,
    next_step: AtomicU64,
}

struct State {
    graph: Arc<Graph>,
    prepared: FxHashMap<Signature, Arc<Prepared>>,
}

impl Session {
    /// A session with an empty graph and every op of this build.
    pub fn new(options: SessionOptions) -> Result<Session> {
        Session::with_registry(options, tensorfleet_ops::registry()?)
    }

    /// A session over these ops.
    pub fn with_registry(options: SessionOptions, registry: Arc<Registry>) -> Result<Session> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if options.threads == 0 {
            cores()
        } else {
            options.threads
        };
        let device = options
            .device
            .clone()
            .unwrap_or_else(|| Arc::new(Device::cpu("localhost", 0, 0, 1)));
        let pool = options
            .pool
            .clone()
            .unwrap_or_else(|| Arc::new(Pool::new(threads)));
        let passes = if options.optimize {
            PassOptions::ALL
        } else {
            PassOptions::NONE
        };
        let optimize = optimizer(passes, &device, &pool, &options.clock);
        Ok(Session {
            state: Mutex::new(State {
                graph: Arc::new(Graph::new(registry.clone())),
                prepared: FxHashMap::default(),
            }),
            registry,
            device,
            pool,
            kernels: Arc::new(KernelCache::new()),
            optimize,
            options,
            closed: AtomicBool::new(false),
            cancel: CancelToken::new(),
            next_step: AtomicU64::new(1),
        })
    }

    /// The ops.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The device that runs the steps.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The graph so far.
    pub fn graph(&self) -> Arc<Graph> {
        self.state().graph.clone()
    }

    /// Adds the nodes and functions of a GraphDef. Nothing changes if anything is wrong with it.
    pub fn extend(&self, def: &GraphDef) -> Result<()> {
        self.check_open()?;
        let mut state = self.state();
        let graph = if state.graph.is_empty() {
            Graph::import(self.registry.clone(), def)?
        } else {
            let mut graph = (*state.graph).clone();
            graph.import_more(def)?;
            graph
        };
        state.graph = Arc::new(graph);
        Ok(())
    }

    /// Feeds, runs and fetches; the fetched tensors in order.
    pub fn run(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Tensor>> {
        self.run_with(&RunOptions::default(), feeds, fetches, targets)
            .map(|(tensors, _)| tensors)
    }

    /// Like [`run`](Self::run), with options; also tells what happened if asked to.
    pub fn run_with(
        &self,
        options: &RunOptions,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<(Vec<Tensor>, RunMetadata)> {
        let signature = Signature {
            feeds: feeds.iter().map(|(name, _)| (*name).to_owned()).collect(),
            fetches: fetches.iter().map(|name| (*name).to_owned()).collect(),
            targets: targets.iter().map(|name| (*name).to_owned()).collect(),
        };
        let prepared = self.prepare(signature)?;
        let values = feeds.iter().map(|(_, tensor)| tensor.clone()).collect();
        self.run_prepared(&prepared, options, values)
    }

    /// The compiled form of a signature, from the cache or new.
    pub(crate) fn prepare(&self, signature: Signature) -> Result<Arc<Prepared>> {
        self.check_open()?;
        let graph = {
            let state = self.state();
            if let Some(prepared) = state.prepared.get(&signature) {
                return Ok(prepared.clone());
            }
            state.graph.clone()
        };
        let prepared = Arc::new(self.compiler().prepare(
            &graph,
            signature.clone(),
            Boundary::Call { device: "" },
        )?);
        self.state().prepared.insert(signature, prepared.clone());
        Ok(prepared)
    }

    pub(crate) fn compiler(&self) -> Compiler<'_> {
        Compiler {
            device: &self.device,
            kernels: &self.kernels,
            optimize: &self.optimize,
        }
    }

    /// Runs a compiled signature on these feeds.
    pub(crate) fn run_prepared(
        &self,
        prepared: &Prepared,
        options: &RunOptions,
        feeds: Vec<Tensor>,
    ) -> Result<(Vec<Tensor>, RunMetadata)> {
        self.check_open()?;
        for (tensor, (name, dtype)) in feeds
            .iter()
            .zip(prepared.signature.feeds.iter().zip(&prepared.feed_types))
        {
            if tensor.dtype() != *dtype {
                return Err(invalid_argument!(
                    "tensor {name} was fed with {}, but it is {dtype}",
                    tensor.dtype()
                ));
            }
        }
        let fetches = &prepared.signature.fetches;
        let frame = Arc::new(CallFrame::new(feeds, fetches.len()));
        let env =
            Arc::new(self.step_env(prepared, frame.clone(), Arc::new(LocalRendezvous::new())));
        let (began, began_wall) = (self.options.clock.monotonic(), self.options.clock.wall());
        let report = self.wait_for_step(prepared, env, options)?;
        let metadata =
            RunMetadata::new(&self.device.name, &prepared.plan, report, began_wall, began);
        let mut tensors = Vec::with_capacity(fetches.len());
        for (name, tensor) in fetches.iter().zip(frame.take_rets()) {
            // Its node did not run: it is in a branch that was not taken.
            tensors.push(tensor.ok_or_else(|| {
                invalid_argument!("The tensor returned for {name} was not valid.")
            })?);
        }
        Ok((tensors, metadata))
    }

    pub(crate) fn step_env(
        &self,
        prepared: &Prepared,
        call_frame: Arc<CallFrame>,
        rendezvous: Arc<LocalRendezvous>,
    ) -> StepEnv {
        let cancel = CancelToken::new();
        StepEnv {
            step_id: self.next_step.fetch_add(1, Ordering::Relaxed),
            device: self.device.clone(),
            resources: self.device.resources.clone(),
            step_resources: Arc::new(ResourceManager::new()),
            rendezvous,
            par: Watched::new(self.pool.clone(), cancel.clone()),
            cancel,
            pool: self.pool.clone(),
            functions: prepared.functions.clone(),
            clock: self.options.clock.clone(),
            call_frame,
        }
    }

    /// Runs a step to its end, its deadline, or the session's.
    fn wait_for_step(
        &self,
        prepared: &Prepared,
        env: Arc<StepEnv>,
        options: &RunOptions,
    ) -> Result<StepReport> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = Box::new(move |result: Result<StepReport>| {
            // The caller may be gone after its deadline.
            let _ = sender.send(result);
        });
        let step_cancel = env.cancel.clone();
        let _guard = self.cancel.on_cancel({
            let step_cancel = step_cancel.clone();
            move |reason| step_cancel.cancel(reason.clone())
        });
        let Some(timeout) = options.timeout else {
            start(prepared.plan.clone(), env, options.trace, done);
            return receiver.recv().unwrap_or_else(|_| Err(lost()));
        };
        let clock = &self.options.clock;
        if let Some(end) = clock.monotonic().checked_add(timeout) {
            step_cancel.end_at(clock, end);
        }
        let (plan, trace) = (prepared.plan.clone(), options.trace);
        self.pool
            .spawn(Box::new(move || drop(start(plan, env, trace, done))));
        match receiver.recv_timeout(timeout) {
            Ok(result) => result,
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(lost()),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let expired =
                    deadline_exceeded!("Timed out: the step did not end within {timeout:?}");
                step_cancel.cancel(expired.clone());
                // A step that ended just in time keeps its result; one that cannot be stopped is left behind.
                match receiver.recv_timeout(CANCEL_GRACE) {
                    Ok(Ok(report)) => Ok(report),
                    _ => Err(expired),
                }
            }
        }
    }

    /// Clears state by container; no names for the default container.
    pub fn reset(&self, containers: &[&str]) {
        if containers.is_empty() {
            self.device
                .resources
                .cleanup(&self.device.default_container);
        }
        for container in containers {
            self.device.resources.cleanup(container);
        }
    }

    /// Cancels running steps and refuses new ones.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.cancel.cancel(cancelled!(
            "Step was cancelled by an explicit call to `Session::Close()`."
        ));
        self.state().prepared.clear();
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(failed_precondition!("Session is closed."));
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lost() -> Status {
    internal!("the step ended without an answer")
}
