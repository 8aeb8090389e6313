//! [`Device`]: where kernels run and state lives.

use std::fmt;
use std::sync::Arc;

use crate::resource::ResourceManager;

/// The kind of a device. Kernels are registered per kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DeviceType {
    /// The host's processor.
    Cpu,
}

impl DeviceType {
    /// TensorFlow's name: `CPU`.
    pub fn name(self) -> &'static str {
        match self {
            DeviceType::Cpu => "CPU",
        }
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A device of this process.
pub struct Device {
    /// The full name, `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub name: String,
    /// The kind.
    pub device_type: DeviceType,
    /// Random, new for every start of the process: peers notice restarts by it.
    pub incarnation: u64,
    /// The container of resources that name none: the job's name.
    pub default_container: String,
    /// The state that lives here.
    pub resources: Arc<ResourceManager>,
}

impl Device {
    /// CPU `index` of a job's task.
    pub fn cpu(job: &str, task: usize, index: usize, incarnation: u64) -> Device {
        Device {
            name: format!("/job:{job}/replica:0/task:{task}/device:CPU:{index}"),
            device_type: DeviceType::Cpu,
            incarnation,
            default_container: job.to_owned(),
            resources: Arc::new(ResourceManager::new()),
        }
    }
}
