//! [`Worker`]: runs its task's parts of graphs and hands their tensors to other tasks.
//!
//! | file | what |
//! |---|---|
//! | `env` | devices, ops, threads, clock |
//! | `session` | one master's session: devices, stateful kernels, graphs |
//! | `graph` | a registered graph, compiled per device |
//! | `functions` | calls of functions, on other tasks, too |
//! | `service`, `run_graph`, `partial` | what masters and workers of other tasks ask for |
//! | `step`, `running` | running a graph once, and what it waits for |
//! | `steps`, `exchange` | tensors under way, here and between tasks |

mod env;
mod exchange;
mod functions;
pub(crate) mod graph;
mod partial;
mod run_graph;
pub(crate) mod running;
mod service;
pub(crate) mod session;
pub(crate) mod step;
mod steps;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_exec::Optimize;
use tensorfleet_kernel::{CancelToken, LocalRendezvous};
use tensorfleet_status::{Result, Status, aborted, cancelled, invalid_argument};
use tokio::sync::oneshot;

use crate::api::Peers;
use crate::recent::{Recent, RecentRequests};
use crate::task::TaskName;
pub use env::WorkerEnv;
use exchange::{Awaited, Exchange, StepRendezvous};
use graph::RegisteredGraph;
use partial::PartialSteps;
pub(crate) use run_graph::receive;
use running::RunningStep;
use session::{SessionSetup, WorkerSession};
use step::{StepInput, Stepwise};
use steps::Steps;

/// How many receives are remembered to notice repeated ones.
const RECENT_RECEIVES: usize = 100_000;
/// How many closed sessions are remembered.
const CLOSED_SESSIONS: usize = 1_000;
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
    /// Sessions that were closed: the order to open one may come later than the order to close it.
    closed: Mutex<Recent<String>>,
    /// For masters that open no worker sessions.
    legacy: Arc<WorkerSession>,
    steps: Arc<Steps>,
    partial: PartialSteps,
    recent_runs: RecentRequests,
    recent_receives: RecentRequests,
}

impl Worker {
    /// A worker without sessions. `optimize` rewrites graphs that no master of ours has rewritten.
    pub fn new(env: Arc<WorkerEnv>, peers: Arc<dyn Peers>, optimize: Optimize) -> Worker {
        let legacy = Arc::new(WorkerSession::new(
            env.clone(),
            "",
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
            closed: Mutex::new(Recent::new(CLOSED_SESSIONS)),
            legacy,
            steps: Arc::default(),
            partial: PartialSteps::default(),
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
        if let Some((task, incarnation)) = &setup.master {
            self.close_sessions_of_earlier(task, *incarnation);
        }
        let mut sessions = self.sessions();
        if self.closed().contains(handle) {
            return Err(aborted!(
                "session {handle} was closed on {} before it was opened",
                self.env.task
            ));
        }
        let session = sessions
            .entry(handle.to_owned())
            .or_insert_with(|| Arc::new(WorkerSession::new(self.env.clone(), handle, setup)));
        Ok(session.clone())
    }

    /// A master that restarted has forgotten its sessions; nobody else will close them.
    fn close_sessions_of_earlier(&self, master: &str, incarnation: u64) {
        let earlier: Vec<String> = {
            let sessions = self.sessions();
            let of_earlier = sessions.iter().filter(|(_, session)| {
                let opened_by = session.master.as_ref();
                opened_by.is_some_and(|(task, was)| task == master && *was != incarnation)
            });
            of_earlier.map(|(handle, _)| handle.clone()).collect()
        };
        for handle in earlier {
            tracing::info!("{master} restarted; its earlier session {handle} is closed");
            self.close_session(&handle);
        }
    }

    /// Forgets a session and ends what still runs in it.
    pub(crate) fn close_session(&self, handle: &str) {
        let session = {
            let mut sessions = self.sessions();
            self.closed().insert(handle.to_owned());
            sessions.remove(handle)
        };
        if let Some(session) = session {
            session
                .cancel
                .cancel(cancelled!("session {handle} was closed on {}", self.env.task).derived());
            self.partial.end_session(handle);
            self.steps.cleanup_session(handle);
        }
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

    /// Starts a step of a graph of a session on this task. `call_frame` carries the client's feeds and fetches.
    pub(crate) fn begin(
        &self,
        graph: Arc<RegisteredGraph>,
        step_id: i64,
        call_frame: Arc<tensorfleet_kernel::CallFrame>,
        cancel: CancelToken,
        record: bool,
    ) -> Result<RunningStep> {
        let (rendezvous, awaited) = self.rendezvous_for(&graph, step_id, &cancel)?;
        let input = StepInput {
            step_id,
            call_frame,
            rendezvous,
            awaited,
            cancel,
            record,
        };
        Ok(graph.begin(input))
    }

    /// Prepares a step whose feeds and fetches go through its rendezvous one by one.
    pub(crate) fn stepwise(
        &self,
        graph: Arc<RegisteredGraph>,
        step_id: i64,
        cancel: &CancelToken,
    ) -> Result<Stepwise> {
        let (rendezvous, awaited) = self.rendezvous_for(&graph, step_id, cancel)?;
        let (tell, ended) = oneshot::channel();
        let input = StepInput {
            step_id,
            call_frame: Arc::default(),
            rendezvous: rendezvous.clone(),
            awaited,
            cancel: cancel.clone(),
            record: false,
        };
        let done = Box::new(move |result| {
            // Nobody may ever ask for the end.
            let _ = tell.send(result);
        });
        Ok(Stepwise {
            rendezvous,
            ended,
            start: Box::new(move || drop(graph.launch(input, done))),
        })
    }

    /// What a step of a graph sends and receives through, and what it awaits from other tasks.
    pub(crate) fn rendezvous_for(
        &self,
        graph: &RegisteredGraph,
        step_id: i64,
        cancel: &CancelToken,
    ) -> Result<StepRendezvous> {
        if !graph.has_transfers() {
            return Ok((Arc::new(LocalRendezvous::new()), None));
        }
        let awaited = Arc::<Awaited>::default();
        let exchange = Exchange {
            local: self.steps.begin(step_id, &graph.session)?,
            task: graph.task.clone(),
            peers: graph.peers.clone(),
            step_id,
            cancel: cancel.clone(),
            env: self.env.clone(),
            awaited: awaited.clone(),
        };
        Ok((Arc::new(exchange), Some(awaited)))
    }

    /// Forgets what is left of a step.
    pub(crate) fn cleanup_step(&self, step_id: i64) {
        // First: who waits hears that the step was cleaned up.
        self.steps.cleanup(step_id);
        self.partial.end(step_id);
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

    /// Locked after `sessions`, if both are.
    fn closed(&self) -> MutexGuard<'_, Recent<String>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
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
