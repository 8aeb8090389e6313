//! [`TaskName`]: who a server is.

use std::fmt;

use tensorfleet_kernel::DeviceName;

/// `/job:J/replica:0/task:T`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TaskName {
    /// The job.
    pub job: String,
    /// The index within the job.
    pub index: usize,
}

impl TaskName {
    /// Task `index` of a job.
    pub fn new(job: impl Into<String>, index: usize) -> TaskName {
        TaskName {
            job: job.into(),
            index,
        }
    }

    /// The task a full or task-only device name belongs to, if it names one.
    pub fn of_device(device: &str) -> Option<TaskName> {
        let name = DeviceName::parse(device).ok()?;
        Some(TaskName::new(&*name.job?, name.task? as usize))
    }
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/job:{}/replica:0/task:{}", self.job, self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints() {
        let task = TaskName::new("ps", 3);
        assert_eq!(task.to_string(), "/job:ps/replica:0/task:3");
        let device = format!("{task}/device:CPU:0");
        assert_eq!(TaskName::of_device(&device), Some(task));
        for text in ["", "/job:ps", "/task:1", "/job:a/task:x", "nonsense"] {
            assert_eq!(TaskName::of_device(text), None, "{text}");
        }
    }
}
