//! [`Master`]: opens sessions, prepares signatures, runs steps on all tasks that have a part in them.
//!
//! | file | what |
//! |---|---|
//! | `cluster_view` | the server's cluster, or the one that the client brings |
//! | `config` | what ConfigProto and RunOptions mean |
//! | `cost` | what the nodes of a step took, for clients that model it |
//! | `deadline` | until when a call is worth answering |
//! | `asked` | tasks that were asked something, and who has not answered yet |
//! | `tell` | orders to tasks whose answer nobody waits for |
//! | `discovery` | which tasks and devices a session has |
//! | `devices` | which node goes to which of them |
//! | `session` | a session: its graph and its signatures |
//! | `open`, `close` | its beginning and end on all tasks |
//! | `executable`, `remote_part` | one signature, rewritten, placed, split and registered |
//! | `run`, `awaited` | one step of it, and what it waits for |
//! | `left_steps` | steps whose end other tasks have still to be told |
//! | `partial` | a step whose feeds and fetches come in several calls |

mod asked;
mod awaited;
mod close;
mod cluster_view;
mod config;
mod cost;
mod deadline;
mod devices;
mod discovery;
mod executable;
mod left_steps;
mod open;
mod partial;
mod remote_part;
mod run;
mod session;
mod tell;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, aborted, invalid_argument, unavailable};

use crate::api::Peers;
use crate::recent::RecentRequests;
use crate::worker::Worker;
use asked::Asked;
use close::close_all;
use deadline::Deadline;
use discovery::{Filters, Search};
use session::{MasterSession, OPEN_AHEAD};

/// How many requests are remembered to notice repeated ones.
const RECENT: usize = 10_000;

/// What a master is made with.
#[derive(Clone, Debug, Default)]
pub struct MasterOptions {
    /// Sessions get this config, and what their clients say over it.
    pub default_config: pb::ConfigProto,
    /// Sessions that did nothing for this long are closed; by default they stay.
    pub session_idle: Option<Duration>,
}

/// One task's master.
pub struct Master {
    worker: Arc<Worker>,
    peers: Arc<dyn Peers>,
    options: MasterOptions,
    sessions: Mutex<FxHashMap<String, Arc<MasterSession>>>,
    recent: RecentRequests,
}

impl Master {
    /// A master beside its task's worker.
    pub fn new(worker: Arc<Worker>, peers: Arc<dyn Peers>, options: MasterOptions) -> Master {
        Master {
            worker,
            peers,
            options,
            sessions: Mutex::default(),
            recent: RecentRequests::new(RECENT),
        }
    }

    /// The worker of the same task.
    pub fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// How many sessions are open.
    pub fn session_count(&self) -> usize {
        self.sessions().len()
    }

    /// Opens a session with a graph, for as long as it takes.
    pub async fn create_session(
        &self,
        request: pb::CreateSessionRequest,
    ) -> Result<pb::CreateSessionResponse> {
        self.create_session_within(request, None).await
    }

    /// Opens a session with a graph for a client that waits for so long; the error says what was awaited.
    pub async fn create_session_within(
        &self,
        request: pb::CreateSessionRequest,
        time: Option<Duration>,
    ) -> Result<pb::CreateSessionResponse> {
        let session = MasterSession::create(
            self.worker.clone(),
            self.peers.clone(),
            &self.options.default_config,
            request,
            time,
        )
        .await?
        .claim();
        let session_handle = session.handle().to_owned();
        self.sessions().insert(session_handle.clone(), session);
        Ok(pb::CreateSessionResponse {
            session_handle,
            graph_version: 0,
        })
    }

    /// Adds nodes to a session's graph.
    pub async fn extend_session(
        &self,
        request: pb::ExtendSessionRequest,
    ) -> Result<pb::ExtendSessionResponse> {
        let session = self.session(&request.session_handle)?;
        let new_graph_version = session
            .extend(
                request.graph_def.unwrap_or_default(),
                request.current_graph_version,
            )
            .await?;
        Ok(pb::ExtendSessionResponse { new_graph_version })
    }

    /// Runs a step, or the next part of one, for as long as it takes.
    pub async fn run_step(&self, request: pb::RunStepRequest) -> Result<pb::RunStepResponse> {
        self.run_step_within(request, None).await
    }

    /// Runs a step for a client that waits for so long; the error says what was awaited.
    pub async fn run_step_within(
        &self,
        request: pb::RunStepRequest,
        time: Option<Duration>,
    ) -> Result<pb::RunStepResponse> {
        let in_body = request.store_errors_in_response_body;
        let result = async {
            self.recent.track(request.request_id, "RunStep (Master)")?;
            self.session(&request.session_handle)?
                .run_step(request, time)
                .await
        };
        match result.await {
            Err(status) if in_body => Ok(pb::RunStepResponse {
                status_code: status.code().number(),
                status_error_message: status.message().to_owned(),
                ..pb::RunStepResponse::default()
            }),
            other => other,
        }
    }

    /// Prepares a step whose feeds and fetches come in several calls.
    pub async fn partial_run_setup(
        &self,
        request: pb::PartialRunSetupRequest,
    ) -> Result<pb::PartialRunSetupResponse> {
        self.recent
            .track(request.request_id, "PartialRunSetup (Master)")?;
        let session = self.session(&request.session_handle)?;
        let partial_run_handle = session.partial_run_setup(request).await?;
        Ok(pb::PartialRunSetupResponse { partial_run_handle })
    }

    /// Prepares a signature for calls with positional feeds.
    pub async fn make_callable(
        &self,
        request: pb::MakeCallableRequest,
    ) -> Result<pb::MakeCallableResponse> {
        self.recent
            .track(request.request_id, "MakeCallable (Master)")?;
        let session = self.session(&request.session_handle)?;
        let handle = session
            .make_callable(request.options.unwrap_or_default())
            .await?;
        Ok(pb::MakeCallableResponse { handle })
    }

    /// Calls what [`make_callable`](Self::make_callable) prepared, for as long as it takes.
    pub async fn run_callable(
        &self,
        request: pb::RunCallableRequest,
    ) -> Result<pb::RunCallableResponse> {
        self.run_callable_within(request, None).await
    }

    /// Calls a callable for a client that waits for so long.
    pub async fn run_callable_within(
        &self,
        request: pb::RunCallableRequest,
        time: Option<Duration>,
    ) -> Result<pb::RunCallableResponse> {
        self.recent
            .track(request.request_id, "RunCallable (Master)")?;
        self.session(&request.session_handle)?
            .run_callable(request.handle, request.feed, time)
            .await
    }

    /// Forgets a callable.
    pub async fn release_callable(
        &self,
        request: pb::ReleaseCallableRequest,
    ) -> Result<pb::ReleaseCallableResponse> {
        self.session(&request.session_handle)?
            .release_callable(request.handle);
        Ok(pb::ReleaseCallableResponse {})
    }

    /// The devices of a session, or of the cluster, for a client that waits for so long; the error says who was
    /// awaited.
    pub async fn list_devices_within(
        &self,
        request: pb::ListDevicesRequest,
        time: Option<Duration>,
    ) -> Result<pb::ListDevicesResponse> {
        let handle = &request.session_handle;
        if !handle.is_empty() {
            let session = self.session(handle).map_err(|_| {
                invalid_argument!(
                    "Session {handle} is not found. Possibly, this master has restarted."
                )
            })?;
            return Ok(pb::ListDevicesResponse {
                local_device: session.devices().to_vec(),
                remote_device: Vec::new(),
            });
        }
        let env = self.worker.env();
        let local_device = env.device_attributes();
        let search = Search {
            call: "ListDevices",
            local: &env.task,
            local_devices: local_device.clone(),
            peers: &*self.peers,
            filters: &Filters::parse(&[])?,
            renames: false,
            deadline: Deadline::new(&env.clock, time, None, OPEN_AHEAD),
        };
        let found = search.run().await?;
        let remote_device = found
            .devices
            .into_iter()
            .filter(|device| local_device.iter().all(|local| local.name != device.name))
            .collect();
        Ok(pb::ListDevicesResponse {
            local_device,
            remote_device,
        })
    }

    /// Closes a session: running steps are cancelled.
    pub async fn close_session(
        &self,
        request: pb::CloseSessionRequest,
    ) -> Result<pb::CloseSessionResponse> {
        let handle = &request.session_handle;
        let session = self.sessions().remove(handle);
        let Some(session) = session else {
            return Err(aborted!(
                "Session {handle} is not found. Possibly, this master has restarted."
            ));
        };
        close_all(vec![session]).await;
        Ok(pb::CloseSessionResponse {})
    }

    /// Closes all sessions and clears containers on all tasks, for a client that waits for so long; the error says
    /// who was awaited.
    pub async fn reset_within(
        &self,
        request: pb::ResetRequest,
        time: Option<Duration>,
    ) -> Result<pb::ResetResponse> {
        let filters = Filters::parse(&request.device_filters)?;
        let env = self.worker.env();
        let deadline = Deadline::new(&env.clock, time, None, OPEN_AHEAD);
        self.close_all().await;
        self.worker.cleanup_containers(&request.container);
        let mut asked = Asked::new("Reset", "clear their containers");
        for task in self.peers.tasks() {
            let remote = (task != env.task && filters.sees_task(&task))
                .then(|| self.peers.worker(&task))
                .flatten();
            if let Some(worker) = remote {
                let container = request.container.clone();
                // One that cannot does not keep the others from it.
                asked.ask(task, worker, |worker| async move {
                    let request = pb::CleanupAllRequest { container };
                    Ok(worker.cleanup_all(request).await)
                });
            }
        }
        for (_, cleared) in asked.answers(&deadline).await? {
            cleared?;
        }
        Ok(pb::ResetResponse {})
    }

    /// Ends everything because the server goes away. Clients hear it as such: those that can will come back.
    pub async fn stop(&self) {
        for session in self.sessions().values() {
            session.cancel.cancel(unavailable!(
                "The server is stopping; its steps are cancelled."
            ));
        }
        self.close_all().await;
    }

    async fn close_all(&self) {
        let sessions = std::mem::take(&mut *self.sessions());
        close_all(sessions.into_values().collect()).await;
    }

    /// Closes sessions that did nothing for as long as the options allow; how many there were.
    pub async fn collect_idle(&self) -> usize {
        let Some(idle) = self.options.session_idle else {
            return 0;
        };
        let idle: Vec<_> = {
            let mut sessions = self.sessions();
            let handles: Vec<String> = sessions
                .iter()
                .filter(|(_, session)| session.idle_for() >= idle)
                .map(|(handle, _)| handle.clone())
                .collect();
            handles
                .iter()
                .filter_map(|handle| sessions.remove(handle))
                .collect()
        };
        for session in &idle {
            tracing::info!(
                "session {} did nothing for {:?} and is closed",
                session.handle(),
                session.idle_for()
            );
        }
        let count = idle.len();
        close_all(idle).await;
        count
    }

    fn session(&self, handle: &str) -> Result<Arc<MasterSession>> {
        self.sessions()
            .get(handle)
            .cloned()
            .ok_or_else(|| aborted!("Session {handle} is not found."))
    }

    fn sessions(&self) -> MutexGuard<'_, FxHashMap<String, Arc<MasterSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
