//! Finding the devices of a session: every task that passes its filters is asked.

use std::sync::Arc;
use std::time::Duration;

use tensorfleet_kernel::DeviceName;
use tensorfleet_proto::{DeviceAttributes, GetStatusRequest};
use tensorfleet_status::{Result, Status, internal};
use tokio::task::JoinSet;

use crate::api::{Peers, WorkerApi};
use crate::task::TaskName;

/// How often the log says who is awaited.
const REMIND_EVERY: Duration = Duration::from_secs(10);

/// A task of a session.
#[derive(Clone)]
pub(super) struct SessionTask {
    pub(super) name: TaskName,
    /// `None` for the task of the master itself.
    pub(super) remote: Option<Arc<dyn WorkerApi>>,
}

/// Tasks and devices of a session.
pub(super) struct Found {
    /// The master's own task first.
    pub(super) tasks: Vec<SessionTask>,
    /// The devices of the tasks in the same order.
    pub(super) devices: Vec<DeviceAttributes>,
}

/// Which tasks and devices a session sees: those that agree with one of its filters, all if it has none.
pub(super) struct Filters(Vec<DeviceName>);

impl Filters {
    pub(super) fn parse(filters: &[String]) -> Result<Filters> {
        let parsed: Result<Vec<_>> = filters
            .iter()
            .map(|filter| DeviceName::parse(filter).map_err(|error| error.context("device filter")))
            .collect();
        Ok(Filters(parsed?))
    }

    fn sees(&self, name: &DeviceName) -> bool {
        self.0.is_empty() || self.0.iter().any(|filter| filter.is_compatible(name))
    }

    pub(super) fn sees_task(&self, task: &TaskName) -> bool {
        u32::try_from(task.index)
            .is_ok_and(|index| self.sees(&DeviceName::of_task(&task.job, 0, index)))
    }
}

/// Asks every task for its devices, for as long as it takes: the caller's deadline ends the wait.
pub(super) async fn find_devices(
    local: &TaskName,
    local_devices: Vec<DeviceAttributes>,
    peers: &dyn Peers,
    filters: &Filters,
) -> Result<Found> {
    let mut found = Found {
        tasks: vec![SessionTask {
            name: local.clone(),
            remote: None,
        }],
        devices: local_devices,
    };
    let mut asked = JoinSet::new();
    let mut waiting = Vec::new();
    for task in peers.tasks() {
        if task == *local || !filters.sees_task(&task) {
            continue;
        }
        let worker = peers
            .worker(&task)
            .ok_or_else(|| internal!("no channel to {task}"))?;
        waiting.push(task.clone());
        found.tasks.push(SessionTask {
            name: task.clone(),
            remote: Some(worker.clone()),
        });
        asked.spawn(async move {
            let answer = worker.get_status(GetStatusRequest {}).await;
            (task, answer)
        });
    }
    let mut answers = Vec::new();
    let mut remind = tokio::time::interval(REMIND_EVERY);
    remind.tick().await;
    while !asked.is_empty() {
        tokio::select! {
            biased;
            Some(joined) = asked.join_next() => {
                let (task, answer) = joined
                    .map_err(|error| internal!("asking for devices failed: {error}"))?;
                waiting.retain(|other| *other != task);
                match answer {
                    Ok(answer) => answers.push((task, answer.device_attributes)),
                    Err(error) => return Err(refused(&task, error)),
                }
            }
            _ = remind.tick() => for task in &waiting {
                tracing::info!("CreateSession still waiting for response from worker: {task}");
            },
        }
    }
    for task in &found.tasks[1..] {
        let devices = answers.iter().find(|(name, _)| *name == task.name);
        for device in devices.into_iter().flat_map(|(_, devices)| devices) {
            found.devices.push(renamed(device, &task.name));
        }
    }
    // A server always sees its own devices.
    found.devices.retain(|device| {
        TaskName::of_device(&device.name).as_ref() == Some(local)
            || DeviceName::parse(&device.name).is_ok_and(|name| filters.sees(&name))
    });
    Ok(found)
}

fn refused(task: &TaskName, error: Status) -> Status {
    tracing::warn!("CreateSession failed because worker {task} returned error: {error}");
    error
}

/// The device under the name its task has in this cluster.
pub(super) fn renamed(device: &DeviceAttributes, task: &TaskName) -> DeviceAttributes {
    let mut device = device.clone();
    if TaskName::of_device(&device.name).as_ref() != Some(task) {
        let local = device.name.rsplit('/').next().unwrap_or_default();
        device.name = format!("{task}/{local}");
    }
    device
}
