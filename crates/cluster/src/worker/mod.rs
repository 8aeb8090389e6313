//! [`Worker`]: runs its task's parts of graphs and hands their tensors to other tasks.
//!
//! | file | what |
//! |---|---|
//! | `env` | devices, ops, threads, clock |
//! | `session` | one master's session: devices, stateful kernels, graphs |
//! | `graph` | a registered graph, compiled per device |
//! | `step` | running it once |
//! | `steps`, `exchange` | tensors under way, here and between tasks |

mod env;
mod exchange;
pub(crate) mod graph;
pub(crate) mod service;
pub(crate) mod session;
pub(crate) mod step;
mod steps;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_exec::Optimize;
use tensorfleet_kernel::{CancelToken, LocalRendezvous, Rendezvous};
use tensorfleet_status::{Result, Status, aborted, invalid_argument};
use tokio::sync::oneshot;

use crate::api::Peers;
use crate::recent::RecentRequests;
use crate::task::TaskName;
pub use env::WorkerEnv;
use exchange::Exchange;
use graph::RegisteredGraph;
pub(crate) use service::receive;
use session::{SessionSetup, WorkerSession};
use step::{StepInput, StepStats};
use steps::Steps;

/// How many receives are remembered to notice repeated ones.
const RECENT_RECEIVES: usize = 100_000;
/// How many runs are remembered.
const RECENT_RUNS: usize = 10_000;

/// The payload by which callers notice a restart.
const POSSIBLY_RESTARTED: &str =
    "type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted";

/// One task's worker.
pub struct Worker {
    env: Arc<WorkerEnv>,
    peers: Arc<dyn Peers>,
    optimize: Optimize,
    sessions: Mutex<FxHashMap<String, Arc<WorkerSession>>>,
    /// For masters that open no worker sessions.
    legacy: Arc<WorkerSession>,
    steps: Steps,
    partial: Mutex<FxHashMap<(String, i64), service::PartialStep>>,
    recent_runs: RecentRequests,
    recent_receives: RecentRequests,
}

impl Worker {
    /// A worker without sessions. `optimize` rewrites graphs that no master of ours has rewritten.
    pub fn new(env: Arc<WorkerEnv>, peers: Arc<dyn Peers>, optimize: Optimize) -> Worker {
        let legacy = Arc::new(WorkerSession::new(
            env.clone(),
            SessionSetup {
                isolated: false,
                renamed: None,
                peers: peers.clone(),
                optimize: optimize.clone(),
                master: None,
            },
        ));
        Worker {
            env,
            peers,
            optimize,
            sessions: Mutex::default(),
            legacy,
            steps: Steps::default(),
            partial: Mutex::default(),
            recent_runs: RecentRequests::new(RECENT_RUNS),
            recent_receives: RecentRequests::new(RECENT_RECEIVES),
        }
    }

    /// What all its sessions share.
    pub fn env(&self) -> &Arc<WorkerEnv> {
        &self.env
    }

    /// How many sessions are open and how many steps have tensors under way.
    pub fn usage(&self) -> (usize, usize) {
        (self.sessions().len(), self.steps.len())
    }

    /// Opens a session; an open one of the same handle stays as it is.
    pub(crate) fn open_session(
        &self,
        handle: &str,
        setup: SessionSetup,
    ) -> Result<Arc<WorkerSession>> {
        if handle.is_empty() {
            return Err(invalid_argument!("Session must be non-empty."));
        }
        let mut sessions = self.sessions();
        if let Some((task, incarnation)) = &setup.master {
            // A master that restarted has forgotten its sessions; nobody will close them.
            sessions.retain(|_, session| {
                session
                    .master
                    .as_ref()
                    .is_none_or(|(other, was)| other != task || was == incarnation)
            });
        }
        let session = sessions
            .entry(handle.to_owned())
            .or_insert_with(|| Arc::new(WorkerSession::new(self.env.clone(), setup)));
        Ok(session.clone())
    }

    pub(crate) fn close_session(&self, handle: &str) {
        let session = self.sessions().remove(handle);
        drop(session);
    }

    pub(crate) fn session(&self, handle: &str) -> Result<Arc<WorkerSession>> {
        self.sessions().get(handle).cloned().ok_or_else(|| {
            aborted!(
                "Session handle is not found: {handle}. Possibly this worker (\"{}\") just restarted.",
                self.env.task
            )
            .with_payload(POSSIBLY_RESTARTED, Vec::new())
        })
    }

    /// Runs a graph of a session on this task. `call_frame` carries the client's feeds and fetches.
    pub(crate) async fn run(
        &self,
        graph: Arc<RegisteredGraph>,
        step_id: i64,
        call_frame: Arc<tensorfleet_kernel::CallFrame>,
        cancel: CancelToken,
        record: bool,
    ) -> Result<StepStats> {
        let rendezvous = self.rendezvous_for(&graph, step_id, &cancel);
        let input = StepInput {
            step_id,
            call_frame,
            rendezvous,
            cancel,
            record,
        };
        graph.run(input).await
    }

    /// Starts a step whose feeds and fetches go through its rendezvous one by one; also tells of its end.
    pub(crate) fn start_stepwise(
        &self,
        graph: &RegisteredGraph,
        step_id: i64,
        cancel: &CancelToken,
    ) -> (Arc<dyn Rendezvous>, oneshot::Receiver<Result<StepStats>>) {
        let rendezvous = self.rendezvous_for(graph, step_id, cancel);
        let (tell, ended) = oneshot::channel();
        let input = StepInput {
            step_id,
            call_frame: Arc::default(),
            rendezvous: rendezvous.clone(),
            cancel: cancel.clone(),
            record: false,
        };
        let done = Box::new(move |result| {
            // Nobody may ever ask for the end.
            let _ = tell.send(result);
        });
        graph.start(input, done);
        (rendezvous, ended)
    }

    /// What a step of a graph sends and receives through.
    pub(crate) fn rendezvous_for(
        &self,
        graph: &RegisteredGraph,
        step_id: i64,
        cancel: &CancelToken,
    ) -> Arc<dyn Rendezvous> {
        if !graph.has_transfers() {
            return Arc::new(LocalRendezvous::new());
        }
        Arc::new(Exchange {
            local: self.steps.rendezvous(step_id),
            task: graph.task.clone(),
            peers: graph.peers.clone(),
            step_id,
            cancel: cancel.clone(),
            env: self.env.clone(),
        })
    }

    /// Forgets what is left of a step.
    pub(crate) fn cleanup_step(&self, step_id: i64) {
        self.steps.cleanup(step_id);
    }

    /// Clears containers on all devices; no names for the default container.
    pub(crate) fn cleanup_containers(&self, containers: &[String]) {
        for device in &self.env.devices {
            if containers.is_empty() {
                device.resources.cleanup(&device.default_container);
            }
            for container in containers {
                device.resources.cleanup(container);
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, FxHashMap<String, Arc<WorkerSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device of an earlier life of this task was addressed.
fn other_incarnation(wanted: u64, ours: u64, task: &TaskName) -> Status {
    aborted!(
        "RecvTensor expects a different device incarnation: {wanted} vs. {ours}. Your worker job (\"{task}\") was probably restarted. Check your worker job for the reason why it was restarted."
    )
    .with_payload(POSSIBLY_RESTARTED, Vec::new())
}
