//! [`MasterSession`]: a client's graph and what was prepared to run of it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tensorfleet_exec::Optimize;
use tensorfleet_graph::Graph;
use tensorfleet_kernel::CancelToken;
use tensorfleet_passes::Signature;
use tensorfleet_proto as pb;
use tensorfleet_session::optimizer;
use tensorfleet_status::{Result, aborted, failed_precondition, invalid_argument};
use tokio::sync::{Notify, OnceCell};

use super::cluster_view::ClusterView;
use super::config;
use super::deadline::Deadline;
use super::devices::{PlacedGraph, SessionDevices};
use super::discovery::{Filters, Found, Search, SessionTask};
use super::executable::Executable;
use super::open::{Unclaimed, open};
use super::partial::PartialRun;
use crate::api::Peers;
use crate::worker::Worker;
use crate::worker::session::{SessionSetup, WorkerSession};

/// So long before its client gives up the opening of a session is ended, so that the client hears why.
pub(super) const OPEN_AHEAD: Duration = Duration::from_millis(250);

/// One session of one client.
pub(crate) struct MasterSession {
    pub(super) handle: String,
    pub(super) config: pb::ConfigProto,
    pub(super) worker: Arc<Worker>,
    /// The session as this task's worker knows it.
    pub(super) local: Arc<WorkerSession>,
    pub(super) tasks: Vec<SessionTask>,
    /// The cluster as this session sees it.
    pub(super) view: ClusterView,
    pub(super) devices: SessionDevices,
    pub(super) optimize: Optimize,
    state: Mutex<State>,
    /// Extending is exclusive; it takes the graph from one version to the next.
    extending: tokio::sync::Mutex<()>,
    pub(super) closed: AtomicBool,
    pub(super) cancel: CancelToken,
    pub(super) running: AtomicU64,
    pub(super) ended: Notify,
    last_used: AtomicU64,
    /// Numbers the transfers between parts: their names must be unique within the session.
    pub(super) transfers: Arc<AtomicU64>,
    next_callable: AtomicI64,
    next_partial: AtomicI64,
    /// How long its client lets operations take. The server's own config does not bind its clients.
    operation_timeout: Option<Duration>,
}

struct State {
    graph: PlacedGraph,
    version: i64,
    executables: FxHashMap<Signature, Arc<OnceCell<Arc<Executable>>>>,
    callables: FxHashMap<i64, Arc<Executable>>,
    partial_runs: FxHashMap<String, Arc<PartialRun>>,
}

/// A step that runs; the session waits for it before it ends.
pub(super) struct Running<'a>(&'a MasterSession);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.touch();
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 && self.0.is_closed() {
            self.0.ended.notify_waiters();
        }
    }
}

impl MasterSession {
    pub(super) async fn create(
        worker: Arc<Worker>,
        peers: Arc<dyn Peers>,
        server_config: &pb::ConfigProto,
        request: pb::CreateSessionRequest,
        time: Option<Duration>,
    ) -> Result<Unclaimed> {
        let requested = request.config.unwrap_or_default();
        let operation_timeout = config::timeout(requested.operation_timeout_in_ms);
        let config = config::merged(server_config, requested)?;
        config::check(&config)?;
        let filters = Filters::parse(&config.device_filters)?;
        let env = worker.env().clone();
        let view = ClusterView::new(&env.task, peers, &config, &request.target)?;
        let deadline = Deadline::new(&env.clock, time, operation_timeout, OPEN_AHEAD);
        let search = Search {
            call: "CreateSession",
            local: &view.own,
            local_devices: view.local_devices(env.device_attributes()),
            peers: &*view.peers,
            filters: &filters,
            renames: view.propagated.is_some(),
            deadline: deadline.clone(),
        };
        let Found { tasks, devices } = search.run().await?;
        let devices = SessionDevices::new(devices, &tasks)?;
        let client = env
            .devices
            .first()
            .ok_or_else(|| failed_precondition!("{} has no devices", env.task))?;
        let optimize = optimizer(config::passes(&config), client, &env.pool, &env.clock);

        let placing = (
            devices.clone(),
            config.clone(),
            env.registry.clone(),
            request.graph_def.unwrap_or_default(),
        );
        let graph = env
            .off_thread(move || {
                let (devices, config, registry, def) = placing;
                let graph = Graph::import(registry, &def)?;
                devices.place(graph, None, &config)
            })
            .await?;
        let handle = env.ids.session_handle();
        let local = worker.open_session(
            &handle,
            SessionSetup {
                isolated: view.isolated,
                renamed: view.propagated.is_some().then(|| view.own.clone()),
                peers: view.peers.clone(),
                optimize: optimize.clone(),
                master: None,
            },
        )?;
        let session = MasterSession {
            handle,
            config,
            local,
            tasks,
            devices,
            optimize,
            state: Mutex::new(State {
                graph,
                version: 0,
                executables: FxHashMap::default(),
                callables: FxHashMap::default(),
                partial_runs: FxHashMap::default(),
            }),
            extending: tokio::sync::Mutex::new(()),
            closed: AtomicBool::new(false),
            cancel: CancelToken::new(),
            running: AtomicU64::new(0),
            ended: Notify::new(),
            last_used: AtomicU64::new(env.now().as_millis() as u64),
            transfers: Arc::default(),
            next_callable: AtomicI64::new(0),
            next_partial: AtomicI64::new(0),
            operation_timeout,
            worker,
            view,
        };
        open(Arc::new(session), deadline).await
    }

    pub(super) fn handle(&self) -> &str {
        &self.handle
    }

    pub(super) fn devices(&self) -> &[pb::DeviceAttributes] {
        self.devices.attributes()
    }

    /// The graph so far, placed.
    pub(super) fn graph(&self) -> Arc<Graph> {
        self.state().graph.placed.clone()
    }

    /// Adds nodes; the new version of the graph.
    pub(super) async fn extend(&self, def: pb::GraphDef, expected: i64) -> Result<i64> {
        let _running = self.begin()?;
        let _one = self.extending.lock().await;
        let (graph, version) = {
            let state = self.state();
            (state.graph.clone(), state.version)
        };
        if version != expected {
            return Err(aborted!(
                "Current version is {version} but caller expected {expected}."
            ));
        }
        if !def.node.is_empty() || def.library.is_some() {
            let (devices, config) = (self.devices.clone(), self.config.clone());
            let extended = self
                .worker
                .env()
                .off_thread(move || {
                    let mut requested = (*graph.requested).clone();
                    requested.import_more(&def)?;
                    devices.place(requested, Some(&graph), &config)
                })
                .await?;
            self.state().graph = extended;
        }
        let mut state = self.state();
        state.version += 1;
        Ok(state.version)
    }

    /// What runs a signature, from the cache or new.
    pub(super) async fn executable(&self, signature: Signature) -> Result<Arc<Executable>> {
        let cell = {
            let mut state = self.state();
            match state.executables.get(&signature) {
                Some(cell) => match cell.get() {
                    Some(executable) => return Ok(executable.clone()),
                    None => cell.clone(),
                },
                None => {
                    let cell = Arc::new(OnceCell::new());
                    state.executables.insert(signature.clone(), cell.clone());
                    cell
                }
            }
        };
        let built = cell
            .get_or_try_init(|| Executable::build(self, signature.clone(), false))
            .await
            .cloned();
        if built.is_err() {
            // It may be right after the graph grew.
            self.state().executables.remove(&signature);
        }
        built
    }

    /// Prepares a callable; its handle.
    pub(super) async fn make_callable(&self, options: pb::CallableOptions) -> Result<i64> {
        let _running = self.begin()?;
        if !options.feed_devices.is_empty() || !options.fetch_devices.is_empty() {
            return Err(tensorfleet_status::unimplemented!(
                "CallableOptions::feed_devices and CallableOptions::fetch_devices to configure feeding/fetching from/to devices is not yet supported in distributed sessions"
            ));
        }
        if !options.tensor_connection.is_empty() {
            return Err(tensorfleet_status::unimplemented!(
                "a callable's tensor_connection is not supported in distributed sessions"
            ));
        }
        let signature = Signature {
            feeds: options.feed,
            fetches: options.fetch,
            targets: options.target,
        };
        let mut executable = Executable::build(self, signature, false).await?;
        if let Some(executable) = Arc::get_mut(&mut executable) {
            executable.run_options = options.run_options.unwrap_or_default();
        }
        let handle = self.next_callable.fetch_add(1, Ordering::Relaxed);
        self.state().callables.insert(handle, executable);
        Ok(handle)
    }

    pub(super) fn callable(&self, handle: i64) -> Result<Arc<Executable>> {
        self.state().callables.get(&handle).cloned().ok_or_else(|| {
            if (0..self.next_callable.load(Ordering::Relaxed)).contains(&handle) {
                invalid_argument!("Attempted to run callable after handle was released: {handle}")
            } else {
                invalid_argument!("No such callable handle: {handle}")
            }
        })
    }

    pub(super) fn release_callable(&self, handle: i64) {
        self.state().callables.remove(&handle);
    }

    /// Keeps a partial run; its handle.
    pub(super) fn keep_partial(&self, run: PartialRun) -> String {
        let handle = self
            .next_partial
            .fetch_add(1, Ordering::Relaxed)
            .to_string();
        self.state()
            .partial_runs
            .insert(handle.clone(), Arc::new(run));
        handle
    }

    pub(super) fn partial_run(&self, handle: &str) -> Result<Arc<PartialRun>> {
        self.state()
            .partial_runs
            .get(handle)
            .cloned()
            .ok_or_else(|| {
                invalid_argument!("Must run PartialRunSetup before performing partial runs")
            })
    }

    pub(super) fn forget_partial(&self, handle: &str) {
        self.state().partial_runs.remove(handle);
    }

    /// After which time a run is given up.
    pub(super) fn timeout(&self, options: &pb::RunOptions) -> Option<Duration> {
        config::timeout(options.timeout_in_ms).or(self.operation_timeout)
    }

    /// Counts a call in, unless the session is closed.
    pub(super) fn begin(&self) -> Result<Running<'_>> {
        self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running(self);
        if self.is_closed() {
            return Err(failed_precondition!("Session is closed."));
        }
        self.touch();
        Ok(running)
    }

    /// Since when nothing was asked of the session; zero while something runs.
    pub(super) fn idle_for(&self) -> Duration {
        if self.running.load(Ordering::Acquire) > 0 {
            return Duration::ZERO;
        }
        let last = Duration::from_millis(self.last_used.load(Ordering::Relaxed));
        self.worker.env().now().saturating_sub(last)
    }

    fn touch(&self) {
        let now = self.worker.env().now().as_millis() as u64;
        self.last_used.store(now, Ordering::Relaxed);
    }

    /// Lets go of all that was prepared; the partial runs that were not run to their end.
    pub(super) fn forget_prepared(&self) -> Vec<Arc<PartialRun>> {
        let mut state = self.state();
        let prepared = (
            std::mem::take(&mut state.executables),
            std::mem::take(&mut state.callables),
        );
        let partial_runs = std::mem::take(&mut state.partial_runs);
        drop(state);
        drop(prepared);
        partial_runs.into_values().collect()
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
