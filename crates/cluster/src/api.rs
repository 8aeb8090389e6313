//! What masters and workers ask of each other, whether they share a process or not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tensorfleet_proto as pb;
use tensorfleet_status::Result;

use crate::task::TaskName;

/// The answer to a call. Dropping it cancels the call.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A worker as its callers see it: TensorFlow's WorkerService.
pub trait WorkerApi: Send + Sync {
    /// Why the worker cannot be reached, if it could not be when it was last tried.
    fn trouble(&self) -> Option<String> {
        None
    }
    /// Which devices the worker has.
    fn get_status(&self, request: pb::GetStatusRequest) -> Answer<'_, pb::GetStatusResponse>;
    /// Opens a session under the master's handle.
    fn create_worker_session(
        &self,
        request: pb::CreateWorkerSessionRequest,
    ) -> Answer<'_, pb::CreateWorkerSessionResponse>;
    /// Forgets a session.
    fn delete_worker_session(
        &self,
        request: pb::DeleteWorkerSessionRequest,
    ) -> Answer<'_, pb::DeleteWorkerSessionResponse>;
    /// Takes this worker's part of a graph.
    fn register_graph(
        &self,
        request: pb::RegisterGraphRequest,
    ) -> Answer<'_, pb::RegisterGraphResponse>;
    /// Forgets a part.
    fn deregister_graph(
        &self,
        request: pb::DeregisterGraphRequest,
    ) -> Answer<'_, pb::DeregisterGraphResponse>;
    /// Runs a part for one step; answers when it ended.
    fn run_graph(&self, request: pb::RunGraphRequest) -> Answer<'_, pb::RunGraphResponse>;
    /// Forgets what is left of a step.
    fn cleanup_graph(
        &self,
        request: pb::CleanupGraphRequest,
    ) -> Answer<'_, pb::CleanupGraphResponse>;
    /// Clears containers.
    fn cleanup_all(&self, request: pb::CleanupAllRequest) -> Answer<'_, pb::CleanupAllResponse>;
    /// Hands a tensor of a step over as soon as it is there.
    fn recv_tensor(&self, request: pb::RecvTensorRequest) -> Answer<'_, pb::RecvTensorResponse>;
    /// Switches the recording of transfers on and off, and hands over what was recorded.
    fn logging(&self, request: pb::LoggingRequest) -> Answer<'_, pb::LoggingResponse>;
}

/// The other tasks of a cluster.
pub trait Peers: Send + Sync {
    /// Every task, this one too, in order.
    fn tasks(&self) -> Vec<TaskName>;
    /// How to call a task; `None` if the cluster has no such task.
    fn worker(&self, task: &TaskName) -> Option<Arc<dyn WorkerApi>>;
    /// The same servers under the names that a client gives them, seen from `own`.
    fn renamed(&self, cluster: &pb::ClusterDef, own: &TaskName) -> Result<Arc<dyn Peers>>;
}
