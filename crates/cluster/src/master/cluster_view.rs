//! [`ClusterView`]: the cluster as a session sees it: the server's, or one that its client brings.

use std::sync::Arc;

use tensorfleet_proto::{ClusterDef, ConfigProto, DeviceAttributes};
use tensorfleet_status::{Result, invalid_argument};

use super::discovery::renamed;
use crate::api::Peers;
use crate::task::TaskName;

/// A session's cluster.
pub(super) struct ClusterView {
    /// The name of the master's task in it.
    pub(super) own: TaskName,
    /// Its tasks.
    pub(super) peers: Arc<dyn Peers>,
    /// What the client sent, if it did.
    pub(super) propagated: Option<ClusterDef>,
    /// Whether the session's state is its own.
    pub(super) isolated: bool,
}

impl ClusterView {
    /// `target` is what the client called the master by.
    pub(super) fn new(
        server: &TaskName,
        peers: Arc<dyn Peers>,
        config: &ConfigProto,
        target: &str,
    ) -> Result<ClusterView> {
        let cluster = config.cluster_def.clone().unwrap_or_default();
        if cluster.job.is_empty() {
            return Ok(ClusterView {
                own: server.clone(),
                peers,
                propagated: None,
                isolated: config.isolate_session_state,
            });
        }
        let own = find_master(&cluster, target)?;
        if own == *server {
            return Err(invalid_argument!(
                "The ClusterSpec names the job and task index to be the same names that were provided when the server booted. This is currently not allowed. Job: {}, task index: {}",
                own.job,
                own.index
            ));
        }
        let shared = config.experimental.as_ref().is_some_and(|experimental| {
            experimental.share_session_state_in_clusterspec_propagation
        });
        Ok(ClusterView {
            peers: peers.renamed(&cluster, &own)?,
            own,
            propagated: Some(cluster),
            isolated: !shared || config.isolate_session_state,
        })
    }

    /// The server's devices under the names they have here.
    pub(super) fn local_devices(&self, devices: Vec<DeviceAttributes>) -> Vec<DeviceAttributes> {
        devices
            .iter()
            .map(|device| renamed(device, &self.own))
            .collect()
    }
}

/// The task whose address is the target.
fn find_master(cluster: &ClusterDef, target: &str) -> Result<TaskName> {
    let address = target
        .split_once("://")
        .map_or(target, |(_, address)| address);
    let mut found = cluster.job.iter().flat_map(|job| {
        let tasks = job.tasks.iter().filter(|(_, task)| *task == address);
        tasks.map(|(index, _)| (job.name.as_str(), *index))
    });
    let Some((job, index)) = found.next() else {
        return Err(invalid_argument!(
            "The master (current machine) is not included in the provided cluster_def. Its address is {address}; the cluster_def has {}",
            cluster
                .job
                .iter()
                .flat_map(|job| job.tasks.values())
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        ));
    };
    if let Some((other, other_index)) = found.next() {
        return Err(invalid_argument!(
            "The cluster_def gives the master's address {address} to two tasks: {job}:{index} and {other}:{other_index}"
        ));
    }
    let index = usize::try_from(index)
        .map_err(|_| invalid_argument!("task index {index} of job {job} is negative"))?;
    Ok(TaskName::new(job, index))
}
