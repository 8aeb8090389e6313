//! Finding the devices of a session: every task that passes its filters is asked.

use std::sync::Arc;

use tensorfleet_kernel::DeviceName;
use tensorfleet_proto::{DeviceAttributes, GetStatusRequest};
use tensorfleet_status::{Result, internal};

use super::asked::Asked;
use super::deadline::Deadline;
use crate::api::{Peers, WorkerApi};
use crate::task::TaskName;

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

/// Where and how devices are looked for.
pub(super) struct Search<'a> {
    /// The call that needs them.
    pub(super) call: &'static str,
    /// The master's task and its devices.
    pub(super) local: &'a TaskName,
    pub(super) local_devices: Vec<DeviceAttributes>,
    pub(super) peers: &'a dyn Peers,
    pub(super) filters: &'a Filters,
    /// Whether the tasks have other names here than their servers were started with.
    pub(super) renames: bool,
    /// When to give up.
    pub(super) deadline: Deadline,
}

impl Search<'_> {
    /// Asks every task for its devices, for as long as the deadline and the caller allow.
    pub(super) async fn run(self) -> Result<Found> {
        let mut found = Found {
            tasks: vec![SessionTask {
                name: self.local.clone(),
                remote: None,
            }],
            devices: self.local_devices,
        };
        let mut asked = Asked::new(self.call, "tell their devices");
        for task in self.peers.tasks() {
            if task == *self.local || !self.filters.sees_task(&task) {
                continue;
            }
            let worker = self
                .peers
                .worker(&task)
                .ok_or_else(|| internal!("no channel to {task}"))?;
            found.tasks.push(SessionTask {
                name: task.clone(),
                remote: Some(worker.clone()),
            });
            asked.ask(task, worker, |worker| async move {
                worker.get_status(GetStatusRequest {}).await
            });
        }
        let answers = asked.answers(&self.deadline).await?;
        for task in &found.tasks[1..] {
            let devices = answers.iter().find(|(name, _)| *name == task.name);
            for device in devices
                .into_iter()
                .flat_map(|(_, it)| &it.device_attributes)
            {
                if !self.renames {
                    warn_of_other(&task.name, &device.name);
                }
                found.devices.push(renamed(device, &task.name));
            }
        }
        // A server always sees its own devices.
        found.devices.retain(|device| {
            TaskName::of_device(&device.name).as_ref() == Some(self.local)
                || DeviceName::parse(&device.name).is_ok_and(|name| self.filters.sees(&name))
        });
        Ok(found)
    }
}

/// As in TensorFlow, a server answers for the task whose address it has, whoever it thinks it is.
fn warn_of_other(task: &TaskName, device: &str) {
    if let Some(other) = TaskName::of_device(device).filter(|other| other != task) {
        tracing::warn!(
            "the server at the address of {task} says it is {other}: its {device} is used as a device of {task}. Do both have the same cluster?"
        );
    }
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
