//! [`GrpcPeers`]: the tasks of a cluster, each behind one channel that is opened when it is needed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tensorfleet_cluster::{ClusterSpec, Peers, TaskName, Worker, WorkerApi};
use tensorfleet_math::par::Pool;
use tensorfleet_proto::ClusterDef;
use tensorfleet_status::Result;

use crate::direct::Reader;
use crate::grpc::{Channel, KeepAlive, Limits};
use crate::line::Lines;
use crate::remote::RemoteWorker;

/// The tasks of a cluster as one of them sees them.
pub(crate) struct GrpcPeers {
    own: TaskName,
    /// Set once the worker is made, which needs its peers; weak because it keeps them.
    local: Arc<OnceLock<Weak<Worker>>>,
    addresses: BTreeMap<TaskName, String>,
    limits: Limits,
    pool: Arc<Pool>,
    direct_transfers: bool,
    /// `None` if tasks on this machine are called as all others.
    lines: Option<Arc<Lines>>,
    keepalive: Option<KeepAlive>,
    opened: Mutex<BTreeMap<TaskName, Arc<RemoteWorker>>>,
}

impl GrpcPeers {
    pub(crate) fn new(
        own: TaskName,
        addresses: BTreeMap<TaskName, String>,
        limits: Limits,
        pool: Arc<Pool>,
        direct_transfers: bool,
        lines: Option<Arc<Lines>>,
        keepalive: Option<KeepAlive>,
    ) -> GrpcPeers {
        GrpcPeers {
            own,
            local: Arc::default(),
            addresses,
            limits,
            pool,
            direct_transfers,
            lines,
            keepalive,
            opened: Mutex::default(),
        }
    }

    /// Names the worker of this task. Only the first call has an effect.
    pub(crate) fn set_local(&self, worker: &Arc<Worker>) {
        let _ = self.local.set(Arc::downgrade(worker));
    }
}

/// Where each task of a cluster is.
pub(crate) fn addresses(cluster: &ClusterSpec) -> BTreeMap<TaskName, String> {
    let tasks = cluster.iter();
    tasks
        .map(|(job, index, address)| (TaskName::new(job, index as usize), address.to_owned()))
        .collect()
}

impl Peers for GrpcPeers {
    fn tasks(&self) -> Vec<TaskName> {
        self.addresses.keys().cloned().collect()
    }

    fn worker(&self, task: &TaskName) -> Option<Arc<dyn WorkerApi>> {
        if *task == self.own {
            let local = self.local.get()?.upgrade()?;
            return Some(local);
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worker) = opened.get(task) {
            return Some(worker.clone());
        }
        let channel = Channel::with_keepalive(
            self.addresses.get(task)?,
            self.limits.clone(),
            self.keepalive.clone(),
        );
        let reader = Reader::new(self.direct_transfers, self.pool.clone());
        let lines = self.lines.clone();
        let worker = Arc::new(RemoteWorker::new(task.clone(), channel, reader, lines));
        opened.insert(task.clone(), worker.clone());
        Some(worker)
    }

    fn renamed(&self, cluster: &ClusterDef, own: &TaskName) -> Result<Arc<dyn Peers>> {
        Ok(Arc::new(GrpcPeers {
            own: own.clone(),
            local: self.local.clone(),
            addresses: addresses(&ClusterSpec::from_cluster_def(cluster)?),
            limits: self.limits.clone(),
            pool: self.pool.clone(),
            direct_transfers: self.direct_transfers,
            lines: self.lines.clone(),
            keepalive: self.keepalive.clone(),
            opened: Mutex::default(),
        }))
    }
}
