//! The tasks of a cluster on this machine, each a process of this binary: which there are ([`Plan`]), and who looks
//! after them ([`Crew`]). `up` and `demo` both stand on this.
//!
//! A task ends when its stdin ends, so none outlives the process that keeps it, whatever kills that. Each is its own
//! process group: Ctrl-C comes to the keeping process alone, which then decides.

mod crew;
mod keeper;
mod last_words;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tensorfleet_cluster::ClusterSpec;
use tokio::process::Command;

pub(crate) use crew::{Crew, News};
pub(crate) use keeper::{Ended, Event};

use crate::output::Misuse;

/// The job of tasks that look on from outside the cluster.
pub(crate) const EVALUATOR: &str = "evaluator";

/// What shall run.
pub(crate) struct Plan {
    pub(crate) cluster: ClusterSpec,
    /// In the order of the cluster.
    pub(crate) tasks: Vec<Task>,
}

/// One task of it.
pub(crate) struct Task {
    pub(crate) job: String,
    pub(crate) index: u32,
    pub(crate) address: String,
}

impl Task {
    /// `/job:ps/task:0`.
    pub(crate) fn name(&self) -> String {
        format!("/job:{}/task:{}", self.job, self.index)
    }

    pub(crate) fn target(&self) -> String {
        format!("grpc://{}", self.address)
    }
}

impl Plan {
    /// A cluster at `host`: jobs and how many tasks each has, with a port for each task in this order.
    pub(crate) fn new(host: &str, jobs: Vec<(String, u32)>, ports: &[u16]) -> Result<Plan> {
        let mut ports = ports.iter();
        let addresses = jobs.into_iter().map(|(job, count)| {
            let ports = ports.by_ref().take(count as usize);
            let addresses: Vec<String> = ports.map(|port| format!("{host}:{port}")).collect();
            (job, addresses)
        });
        let cluster =
            ClusterSpec::from_jobs(addresses).map_err(|error| Misuse(error.to_string()))?;
        let tasks = cluster.iter().map(|(job, index, address)| Task {
            job: job.to_owned(),
            index,
            address: address.to_owned(),
        });
        let tasks = tasks.collect();
        Ok(Plan { cluster, tasks })
    }

    /// This binary with a subcommand that serves one task, such as `serve`.
    pub(crate) fn command(&self, task: &Task, subcommand: &str) -> Result<Command> {
        let program = std::env::current_exe().context("where is this program?")?;
        let mut command = Command::new(program);
        command
            .arg(subcommand)
            .arg(format!("--cluster={}", self.cluster.to_json()))
            .arg(format!("--job_name={}", task.job))
            .arg(format!("--task_index={}", task.index))
            .arg("--stop_with_stdin");
        Ok(command)
    }

    /// What a program of this task finds in `TF_CONFIG`.
    pub(crate) fn tf_config(&self, task: &Task) -> Value {
        self.tf_config_of(&task.job, task.index)
    }

    /// What the evaluator finds in `TF_CONFIG`.
    pub(crate) fn tf_config_of_evaluator(&self) -> Value {
        self.tf_config_of(EVALUATOR, 0)
    }

    fn tf_config_of(&self, job: &str, index: u32) -> Value {
        json!({"cluster": self.cluster.to_json(), "task": {"type": job, "index": index}})
    }

    /// The flags that name the cluster: hosts by job, as trainers take them.
    pub(crate) fn cluster_flags(&self) -> Vec<String> {
        let jobs = self.cluster.as_map().iter();
        jobs.map(|(job, tasks)| {
            let hosts: Vec<&str> = tasks.values().map(String::as_str).collect();
            format!("--{job}_hosts={}", hosts.join(","))
        })
        .collect()
    }
}
