//! [`DeviceName`]: `/job:ps/replica:0/task:0/device:CPU:0`, whole or in part, in every spelling TensorFlow takes.
//!
//! A field that is not given, or given as `*`, is open and agrees with anything. Names are compared
//! field by field, never as texts: `/cpu:0/job:ps` and `/job:ps/device:CPU:0` are the same name.

mod merge;
mod parse;

use std::fmt;
use std::sync::Arc;

/// The name of a device or of a set of devices: open fields stand for any value.
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord, Debug)]
pub struct DeviceName {
    /// The job: a letter, then letters, digits and underscores.
    pub job: Option<Arc<str>>,
    /// The replica; 0 unless a server definition says otherwise.
    pub replica: Option<u32>,
    /// The task's index in its job.
    pub task: Option<u32>,
    /// The kind: `CPU`, `GPU`. Upper and lower case differ.
    pub device_type: Option<Arc<str>>,
    /// The position among the task's devices of this kind.
    pub index: Option<u32>,
}

impl DeviceName {
    /// The name with every field open: agrees with any device.
    pub const ANY: DeviceName = DeviceName {
        job: None,
        replica: None,
        task: None,
        device_type: None,
        index: None,
    };

    /// The name of one device of a task.
    pub fn full(job: &str, replica: u32, task: u32, device_type: &str, index: u32) -> DeviceName {
        DeviceName {
            device_type: Some(device_type.into()),
            index: Some(index),
            ..DeviceName::of_task(job, replica, task)
        }
    }

    /// All devices of a task.
    pub fn of_task(job: &str, replica: u32, task: u32) -> DeviceName {
        DeviceName {
            job: Some(job.into()),
            replica: Some(replica),
            task: Some(task),
            ..DeviceName::ANY
        }
    }

    /// Whether every field is open.
    pub fn is_any(&self) -> bool {
        *self == DeviceName::ANY
    }

    /// Whether every field is given: the name is of one device.
    pub fn is_full(&self) -> bool {
        self.has_task() && self.device_type.is_some() && self.index.is_some()
    }

    /// Whether job, replica and task are given.
    pub fn has_task(&self) -> bool {
        self.job.is_some() && self.replica.is_some() && self.task.is_some()
    }

    /// The name of the task alone, `/job:ps/replica:0/task:0`; `None` unless all three are given.
    pub fn task_name(&self) -> Option<String> {
        match (&self.job, self.replica, self.task) {
            (Some(job), Some(replica), Some(task)) => {
                Some(format!("/job:{job}/replica:{replica}/task:{task}"))
            }
            _ => None,
        }
    }

    /// The same name with type and index open.
    #[must_use]
    pub fn to_task(&self) -> DeviceName {
        DeviceName {
            device_type: None,
            index: None,
            ..self.clone()
        }
    }

    /// The name inside its task, `CPU:0`; `None` unless type and index are given.
    pub fn local_name(&self) -> Option<String> {
        match (&self.device_type, self.index) {
            (Some(device_type), Some(index)) => Some(format!("{device_type}:{index}")),
            _ => None,
        }
    }
}

/// Canonical: job, replica, task, device; fields that are open are left out.
impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "/job:{job}")?;
        }
        if let Some(replica) = self.replica {
            write!(f, "/replica:{replica}")?;
        }
        if let Some(task) = self.task {
            write!(f, "/task:{task}")?;
        }
        match (&self.device_type, self.index) {
            (None, None) => Ok(()),
            (Some(device_type), None) => write!(f, "/device:{device_type}:*"),
            (Some(device_type), Some(index)) => write!(f, "/device:{device_type}:{index}"),
            (None, Some(index)) => write!(f, "/device:*:{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn name(text: &str) -> DeviceName {
        DeviceName::parse(text).unwrap()
    }

    pub(super) fn any_name() -> impl Strategy<Value = DeviceName> {
        let job = proptest::option::of("[a-c]".prop_map(Into::into));
        let kind = proptest::option::of("(CPU|GPU|X_1)".prop_map(Into::into));
        let number = || proptest::option::of(0..3u32);
        (job, number(), number(), kind, number()).prop_map(
            |(job, replica, task, device_type, index)| DeviceName {
                job,
                replica,
                task,
                device_type,
                index,
            },
        )
    }

    #[test]
    fn takes_names_apart() {
        let cpu = DeviceName::full("ps", 0, 1, "CPU", 2);
        assert_eq!(cpu.task_name().unwrap(), "/job:ps/replica:0/task:1");
        assert_eq!(cpu.local_name().unwrap(), "CPU:2");
        assert!(cpu.is_full() && !cpu.to_task().is_full());
        assert!(name("/job:ps/task:1").task_name().is_none());
        assert!(cpu.is_same_task(&DeviceName::of_task("ps", 0, 1)));
        assert!(cpu.is_other_task(&name("/job:worker")));
        assert!(!cpu.is_other_task(&name("/job:ps")));
    }
}
