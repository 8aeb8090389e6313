//! [`WorkerSession`]: what a worker keeps for one session of one master.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_exec::{KernelCache, Optimize};
use tensorfleet_kernel::{CancelToken, Device, ResourceManager};
use tensorfleet_status::{Result, aborted};

use super::env::WorkerEnv;
use super::graph::RegisteredGraph;
use crate::api::Peers;
use crate::task::TaskName;

/// A session's devices, stateful kernels and registered graphs.
pub(crate) struct WorkerSession {
    pub(crate) handle: Arc<str>,
    pub(crate) env: Arc<WorkerEnv>,
    pub(crate) task: TaskName,
    pub(crate) devices: Vec<SessionDevice>,
    pub(crate) peers: Arc<dyn Peers>,
    /// Rewrites function bodies and whatever was not rewritten by its master.
    pub(crate) optimize: Optimize,
    /// Who opened it: sessions of a master that restarted are dropped.
    pub(crate) master: Option<(String, u64)>,
    /// Ends the steps that other tasks' masters run in it.
    pub(crate) cancel: CancelToken,
    /// Numbers the transfers between devices: their names must be unique within the session.
    pub(super) transfers: AtomicU64,
    graphs: Mutex<FxHashMap<String, Arc<RegisteredGraph>>>,
    next_graph: AtomicU64,
}

/// A device as one session sees it.
pub(crate) struct SessionDevice {
    pub(crate) device: Arc<Device>,
    pub(crate) kernels: Arc<KernelCache>,
}

/// How a session differs from the worker it is on.
pub(crate) struct SessionSetup {
    /// Resources of its own.
    pub(crate) isolated: bool,
    /// The task's name within the session's cluster, if that is not the server's.
    pub(crate) renamed: Option<TaskName>,
    pub(crate) peers: Arc<dyn Peers>,
    pub(crate) optimize: Optimize,
    pub(crate) master: Option<(String, u64)>,
}

impl WorkerSession {
    pub(crate) fn new(env: Arc<WorkerEnv>, handle: &str, setup: SessionSetup) -> WorkerSession {
        let task = setup.renamed.clone().unwrap_or_else(|| env.task.clone());
        let devices = env.devices.iter().enumerate().map(|(index, device)| {
            let device = if setup.isolated || setup.renamed.is_some() {
                Arc::new(private_device(device, &task, index, setup.isolated))
            } else {
                device.clone()
            };
            SessionDevice {
                device,
                kernels: Arc::new(KernelCache::new()),
            }
        });
        WorkerSession {
            handle: handle.into(),
            cancel: CancelToken::new(),
            devices: devices.collect(),
            task,
            peers: setup.peers,
            optimize: setup.optimize,
            master: setup.master,
            transfers: AtomicU64::new(0),
            graphs: Mutex::default(),
            next_graph: AtomicU64::new(0),
            env,
        }
    }

    /// Keeps a graph; the handle to run it by.
    pub(crate) fn register(&self, graph: Arc<RegisteredGraph>) -> String {
        let handle = format!("{:016x}", self.next_graph.fetch_add(1, Ordering::Relaxed));
        self.graphs().insert(handle.clone(), graph);
        handle
    }

    pub(crate) fn deregister(&self, handle: &str) -> Result<()> {
        match self.graphs().remove(handle) {
            Some(_) => Ok(()),
            None => Err(unknown_graph(handle)),
        }
    }

    pub(crate) fn graph(&self, handle: &str) -> Result<Arc<RegisteredGraph>> {
        self.graphs()
            .get(handle)
            .cloned()
            .ok_or_else(|| unknown_graph(handle))
    }

    fn graphs(&self) -> MutexGuard<'_, FxHashMap<String, Arc<RegisteredGraph>>> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown_graph(handle: &str) -> tensorfleet_status::Status {
    aborted!("Graph handle is not found: {handle}")
}

fn private_device(device: &Device, task: &TaskName, index: usize, isolated: bool) -> Device {
    let mut private = Device::cpu(&task.job, task.index, index, device.incarnation);
    private
        .default_container
        .clone_from(&device.default_container);
    private.resources = if isolated {
        Arc::new(ResourceManager::new())
    } else {
        device.resources.clone()
    };
    private
}
