//! One binary on all machines: which cluster there is and which of its tasks this process is.
//!
//! [`ClusterFlags`] gives any program the flags of a distributed TensorFlow trainer, inside a `clap` command or
//! without one, and the environment variable `TF_CONFIG`. [`Task`] is what they say: the cluster, the [`Role`]
//! of this process, its server and its target.
//!
//! The cluster comes from `--cluster`, else the `--*_hosts` flags, else `TF_CONFIG`: **flags win**, and where they
//! name a cluster nothing is read from `TF_CONFIG`. Where `TF_CONFIG` names it, `--job_name` and `--task_index`
//! still say who this process is. Job and index may be left out where there is just one choice. A `TF_CONFIG`
//! without `cluster` means what it means to TensorFlow: this process trains alone.
//!
//! ```
//! use tensorfleet::flags::ClusterFlags;
//!
//! // As typed: trainer --ps_hosts=… --worker_hosts=… --job_name=worker --task_index=1 --steps=100
//! let typed = ["--ps_hosts=a:2222", "--worker_hosts=b:2222,c:2222", "--job_name=worker", "--task_index=1", "--steps=100"];
//! let (flags, rest) = ClusterFlags::parse_known(typed)?;
//! let task = flags.task()?;
//! assert_eq!(task.cluster.num_tasks("worker")?, 2);
//! assert_eq!(task.target()?, "grpc://c:2222");
//! assert!(!task.role.is_ps && !task.role.is_chief);
//! assert_eq!(rest, ["--steps=100"]);
//! # Ok::<(), tensorfleet_status::Status>(())
//! ```
//!
//! A whole program:
//!
//! ```no_run
//! use clap::Parser;
//! use tensorfleet::flags::ClusterFlags;
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     cluster: ClusterFlags,
//!     #[arg(long, default_value_t = 1000)]
//!     steps: u64,
//! }
//!
//! let args = Args::parse();
//! let task = args.cluster.task_or_local()?;
//! let server = task.start_server()?;
//! if task.role.is_ps {
//!     server.join(); // serves variables until it is stopped
//! } else {
//!     println!("{} trains {} steps at {}", task.role, args.steps, server.target());
//! }
//! # Ok::<(), tensorfleet_status::Status>(())
//! ```

mod hosts;
mod known;
mod task;
#[cfg(test)]
mod tests;

use tensorfleet_cluster::{ClusterSpec, TaskId, TfConfig};
use tensorfleet_status::{Result, invalid_argument};

use hosts::HEADING;
pub use hosts::{HostFlags, no_cluster};
use task::WORKER;
pub use task::{Role, Task};

/// The job and the address of a program that was told nothing: a cluster of its own.
const LOCAL: (&str, [&str; 1]) = (WORKER, ["localhost:0"]);

/// `--ps_hosts --worker_hosts --chief_hosts --cluster --job_name --task_index`, and `TF_CONFIG`.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct ClusterFlags {
    /// Which tasks the cluster has.
    #[command(flatten)]
    pub hosts: HostFlags,
    /// The job of this task.
    #[arg(long = "job_name", alias = "job-name", value_name = "JOB", help_heading = HEADING)]
    pub job_name: Option<String>,
    /// The index of this task in its job.
    #[arg(long = "task_index", alias = "task-index", value_name = "N", help_heading = HEADING)]
    pub task_index: Option<u32>,
}

impl ClusterFlags {
    /// The flags among the arguments of this process, for programs that do not use `clap`. Other arguments are
    /// left alone. `TF_CONFIG` is read where the flags name no cluster.
    ///
    /// ```
    /// use tensorfleet::flags::ClusterFlags;
    ///
    /// let task = ClusterFlags::from_env_and_args()?.task_or_local()?;
    /// assert!(task.role.is_chief); // nobody said anything: a cluster of one
    /// # Ok::<(), tensorfleet_status::Status>(())
    /// ```
    pub fn from_env_and_args() -> Result<ClusterFlags> {
        Ok(ClusterFlags::parse_known(std::env::args().skip(1))?.0)
    }

    /// The flags among some arguments, and the other arguments. `--` ends the flags.
    pub fn parse_known<I>(arguments: I) -> Result<(ClusterFlags, Vec<String>)>
    where
        I: IntoIterator<Item: Into<String>>,
    {
        known::parse(arguments.into_iter().map(Into::into))
    }

    /// The cluster and the place of this process in it. That no cluster is named is an error.
    pub fn task(&self) -> Result<Task> {
        self.find()?.ok_or_else(|| {
            invalid_argument!(
                "{}: give --ps_hosts and --worker_hosts, --cluster or a cluster in the environment variable TF_CONFIG",
                no_cluster()
            )
        })
    }

    /// Like [`task`](Self::task), but where no cluster is named this process is one by itself: task 0 of job
    /// `worker`, on any free port.
    pub fn task_or_local(&self) -> Result<Task> {
        match self.find()? {
            Some(task) => Ok(task),
            None => Task::place(ClusterSpec::from_jobs([LOCAL])?, None, None),
        }
    }

    /// Like [`task`](Self::task); `None` where no cluster is named.
    pub fn find(&self) -> Result<Option<Task>> {
        self.find_with(hosts::tf_config().as_deref())
    }

    fn find_with(&self, tf_config: Option<&str>) -> Result<Option<Task>> {
        let job = self.job_name.as_deref().filter(|job| !job.is_empty());
        if let Some(cluster) = self.hosts.cluster()? {
            return Task::place(cluster, job, self.task_index).map(Some);
        }
        match tf_config {
            Some(text) => self.place_by(TfConfig::parse(text)?, job),
            None => Ok(None),
        }
    }

    /// The place that `TF_CONFIG` gives; what the flags say about the task counts more.
    fn place_by(&self, mut config: TfConfig, job: Option<&str>) -> Result<Option<Task>> {
        let said = config.task.take();
        // An index belongs to the job it was given with.
        let said_index = said.as_ref().map(|task| task.index);
        let index = match (job, &said) {
            (Some(job), Some(task)) if task.job != job => self.task_index,
            _ => self.task_index.or(said_index),
        };
        let job = job.map(str::to_owned).or(said.map(|task: TaskId| task.job));
        if !config.cluster.is_empty() {
            return Task::place_by(config, job.as_deref(), index).map(Some);
        }
        let Some(job) = job else {
            return Ok(None);
        };
        let role = Role::new(&config.cluster, &job, index.unwrap_or(0));
        if role.is_chief {
            return Ok(None);
        }
        if role.is_evaluator {
            return Task::place_by(config, Some(&job), index).map(Some);
        }
        Err(invalid_argument!(
            "TF_CONFIG has no \"cluster\", so there is no {role}: add the cluster; without one a process trains alone, \
             as its own chief"
        ))
    }
}
