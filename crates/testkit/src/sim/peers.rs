//! [`SimPeers`]: the other tasks as a master or worker calls them, through the simulated network.

use std::sync::{Arc, OnceLock, Weak};

use tensorfleet_cluster::{Answer, Peers, TaskName, Worker, WorkerApi};
use tensorfleet_proto as pb;
use tensorfleet_proto::services::worker as path;
use tensorfleet_status::{Result, unimplemented};

use super::net::{Call, Party};
use super::process::{Life, Process};
use super::world::World;

/// The cluster as one life of a task sees it.
pub(super) struct SimPeers {
    world: Arc<World>,
    life: Arc<Life>,
    local: OnceLock<Weak<Worker>>,
}

impl SimPeers {
    pub(super) fn new(world: Arc<World>, life: Arc<Life>) -> SimPeers {
        SimPeers {
            world,
            life,
            local: OnceLock::new(),
        }
    }

    /// Names the worker of this task. Only the first call has an effect.
    pub(super) fn set_local(&self, worker: &Arc<Worker>) {
        let _ = self.local.set(Arc::downgrade(worker));
    }
}

impl Peers for SimPeers {
    fn tasks(&self) -> Vec<TaskName> {
        self.world.setup.tasks.clone()
    }

    fn worker(&self, task: &TaskName) -> Option<Arc<dyn WorkerApi>> {
        if *task == self.life.name {
            let local = self.local.get()?.upgrade()?;
            return Some(local);
        }
        let to = self.world.setup.tasks.iter().position(|t| t == task)?;
        Some(Arc::new(SimWorker {
            world: self.world.clone(),
            from: self.life.clone(),
            to,
        }))
    }

    fn renamed(&self, _: &pb::ClusterDef, _: &TaskName) -> Result<Arc<dyn Peers>> {
        Err(unimplemented!("simulated clusters are not renamed"))
    }
}

/// Another task's worker.
struct SimWorker {
    world: Arc<World>,
    from: Arc<Life>,
    to: usize,
}

impl SimWorker {
    fn call<Q, A, F>(
        &self,
        (path, step): (&'static str, i64),
        wait_for_ready: bool,
        request: Q,
        serve: impl Fn(Arc<Process>, Q) -> F + Clone + Send + 'static,
    ) -> Answer<'_, A>
    where
        Q: Clone + Send + 'static,
        A: Send + 'static,
        F: Future<Output = Result<A>> + Send + 'static,
    {
        let call = Call {
            path,
            step,
            wait_for_ready,
        };
        let from = Party::Task(self.from.clone());
        let world = self.world.clone();
        Box::pin(world.call(from, self.to, call, request, serve))
    }
}

/// A method that the worker of the process answers.
macro_rules! served {
    ($method:ident) => {
        |process: Arc<Process>, request| async move { process.worker.$method(request).await }
    };
}

impl WorkerApi for SimWorker {
    fn get_status(&self, request: pb::GetStatusRequest) -> Answer<'_, pb::GetStatusResponse> {
        self.call((path::GET_STATUS, 0), true, request, served!(get_status))
    }

    fn create_worker_session(
        &self,
        request: pb::CreateWorkerSessionRequest,
    ) -> Answer<'_, pb::CreateWorkerSessionResponse> {
        let serve = served!(create_worker_session);
        self.call((path::CREATE_WORKER_SESSION, 0), false, request, serve)
    }

    fn delete_worker_session(
        &self,
        request: pb::DeleteWorkerSessionRequest,
    ) -> Answer<'_, pb::DeleteWorkerSessionResponse> {
        let serve = served!(delete_worker_session);
        self.call((path::DELETE_WORKER_SESSION, 0), false, request, serve)
    }

    fn register_graph(
        &self,
        request: pb::RegisterGraphRequest,
    ) -> Answer<'_, pb::RegisterGraphResponse> {
        self.call(
            (path::REGISTER_GRAPH, 0),
            false,
            request,
            served!(register_graph),
        )
    }

    fn deregister_graph(
        &self,
        request: pb::DeregisterGraphRequest,
    ) -> Answer<'_, pb::DeregisterGraphResponse> {
        let serve = served!(deregister_graph);
        self.call((path::DEREGISTER_GRAPH, 0), false, request, serve)
    }

    fn run_graph(&self, request: pb::RunGraphRequest) -> Answer<'_, pb::RunGraphResponse> {
        let world = self.world.clone();
        let serve = move |process: Arc<Process>, request: pb::RunGraphRequest| {
            let (world, life) = (world.clone(), process.life.clone());
            let (session, step) = (request.session_handle.clone(), request.step_id);
            async move {
                let answer = process.worker.run_graph(request).await;
                if answer.as_ref().is_ok_and(|answer| answer.status_code == 0) {
                    world.took_part(&life, &session, step);
                }
                answer
            }
        };
        self.call((path::RUN_GRAPH, request.step_id), false, request, serve)
    }

    fn cleanup_graph(
        &self,
        request: pb::CleanupGraphRequest,
    ) -> Answer<'_, pb::CleanupGraphResponse> {
        self.call(
            (path::CLEANUP_GRAPH, request.step_id),
            true,
            request,
            served!(cleanup_graph),
        )
    }

    fn cleanup_all(&self, request: pb::CleanupAllRequest) -> Answer<'_, pb::CleanupAllResponse> {
        self.call((path::CLEANUP_ALL, 0), true, request, served!(cleanup_all))
    }

    fn recv_tensor(&self, request: pb::RecvTensorRequest) -> Answer<'_, pb::RecvTensorResponse> {
        let world = self.world.clone();
        let serve = move |process: Arc<Process>, request: pb::RecvTensorRequest| {
            let (world, life, step) = (world.clone(), process.life.clone(), request.step_id);
            async move {
                let answer = process.worker.recv_tensor(request).await;
                if answer.is_ok() {
                    world.took_part(&life, "", step);
                }
                answer
            }
        };
        self.call((path::RECV_TENSOR, request.step_id), false, request, serve)
    }

    fn logging(&self, request: pb::LoggingRequest) -> Answer<'_, pb::LoggingResponse> {
        self.call((path::LOGGING, 0), false, request, served!(logging))
    }
}
