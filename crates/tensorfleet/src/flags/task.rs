//! [`Task`]: this process's place in its cluster, and [`Role`], what it does there.

use std::fmt;

use tensorfleet_cluster::{ClusterSpec, ServerSpec, TfConfig};
use tensorfleet_proto::ConfigProto;
use tensorfleet_rpc::{Server, ServerOptions};
use tensorfleet_status::{Code, Result, Status, failed_precondition};

/// Jobs whose task 0 leads the others.
const CHIEFS: [&str; 2] = ["chief", "master"];
/// The job that leads where there is no chief.
pub(super) const WORKER: &str = "worker";
/// The job that holds variables.
const PS: &str = "ps";
/// The job that looks on from outside the cluster.
const EVALUATOR: &str = "evaluator";

/// What this process is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// Its job.
    pub job: String,
    /// Its index in the job.
    pub task_index: u32,
    /// Whether it initialises variables and saves checkpoints: task 0 of job `chief` or `master`, or of job
    /// `worker` where the cluster has neither.
    pub is_chief: bool,
    /// Whether it only holds variables and serves them.
    pub is_ps: bool,
    /// Whether it evaluates from outside the cluster.
    pub is_evaluator: bool,
}

impl Role {
    /// The role of a task of a cluster.
    ///
    /// ```
    /// use tensorfleet::flags::Role;
    /// use tensorfleet_cluster::ClusterSpec;
    ///
    /// let cluster = ClusterSpec::from_jobs([("ps", ["a:1"]), ("worker", ["b:1"])])?;
    /// assert!(Role::new(&cluster, "worker", 0).is_chief);
    /// let cluster = ClusterSpec::from_jobs([("chief", ["a:1"]), ("worker", ["b:1"])])?;
    /// assert!(!Role::new(&cluster, "worker", 0).is_chief);
    /// # Ok::<(), tensorfleet_status::Status>(())
    /// ```
    pub fn new(cluster: &ClusterSpec, job: &str, task_index: u32) -> Role {
        let has_chief = cluster.jobs().any(|job| CHIEFS.contains(&job));
        let leads = CHIEFS.contains(&job) || (job == WORKER && !has_chief);
        Role {
            job: job.to_owned(),
            task_index,
            is_chief: leads && task_index == 0,
            is_ps: job == PS,
            is_evaluator: job == EVALUATOR,
        }
    }

    /// The name of its task in device names: `/job:worker/task:1`.
    pub fn device(&self) -> String {
        format!("/job:{}/task:{}", self.job, self.task_index)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.device())?;
        f.write_str(if self.is_chief { " (chief)" } else { "" })
    }
}

/// The cluster and this process's place in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// All tasks.
    pub cluster: ClusterSpec,
    /// This one.
    pub role: Role,
    /// `None` for evaluators, which are outside.
    spec: Option<ServerSpec>,
    /// Where sessions go if not to the own server.
    session_master: Option<String>,
}

impl Task {
    /// The place of a task; job and index may be left out where there is just one choice.
    pub fn place(cluster: ClusterSpec, job: Option<&str>, index: Option<u32>) -> Result<Task> {
        let config = TfConfig {
            cluster,
            ..TfConfig::default()
        };
        Task::place_by(config, job, index)
    }

    /// The place of a task in the cluster that `TF_CONFIG` names.
    pub(super) fn place_by(
        config: TfConfig,
        job: Option<&str>,
        index: Option<u32>,
    ) -> Result<Task> {
        config.check_rpc_layer()?;
        let cluster = config.cluster;
        if let (Some(EVALUATOR), Err(_)) = (job, cluster.tasks(EVALUATOR)) {
            return Ok(Task {
                role: Role::new(&cluster, EVALUATOR, index.unwrap_or(0)),
                cluster,
                spec: None,
                session_master: config.session_master,
            });
        }
        let only_job = cluster.jobs().next().filter(|_| cluster.jobs().len() == 1);
        if let (Some(job), Some(index)) = (job.or(only_job), index) {
            cluster
                .task_address(job, index)
                .map_err(|status| not_there(status, job, index))?;
        }
        let spec = ServerSpec::new(cluster, job, index)?;
        Ok(Task {
            cluster: spec.cluster.clone(),
            role: Role::new(&spec.cluster, &spec.job, spec.task),
            spec: Some(spec),
            session_master: config.session_master,
        })
    }

    /// What the server of this task is made of.
    pub fn server_spec(&self) -> Result<ServerSpec> {
        self.spec.clone().ok_or_else(|| {
            failed_precondition!(
                "{} is an evaluator: evaluators are outside the cluster and have no server; run its graph in a session of its own",
                self.role.device()
            )
        })
    }

    /// Starts the server of this task.
    ///
    /// ```
    /// use tensorfleet::flags::Task;
    /// use tensorfleet_cluster::ClusterSpec;
    ///
    /// let task = Task::place(ClusterSpec::from_jobs([("ps", ["localhost:0"])])?, None, None)?;
    /// let server = task.start_server()?;
    /// assert!(server.target().starts_with("grpc://localhost:"));
    /// # server.stop();
    /// # Ok::<(), tensorfleet_status::Status>(())
    /// ```
    pub fn start_server(&self) -> Result<Server> {
        self.start_server_with(None, ServerOptions::default())
    }

    /// Like [`start_server`](Self::start_server), with the config of sessions that bring none, and options.
    pub fn start_server_with(
        &self,
        config: Option<ConfigProto>,
        options: ServerOptions,
    ) -> Result<Server> {
        let mut spec = self.server_spec()?;
        spec.default_session_config = config;
        let server = Server::new(spec, options)?;
        server.start()?;
        Ok(server)
    }

    /// What sessions of this process connect to: its own server, unless `TF_CONFIG` names another
    /// (`session_master`). With port 0 only the started server knows: [`Server::target`].
    pub fn target(&self) -> Result<String> {
        if let Some(master) = &self.session_master {
            return Ok(master.clone());
        }
        let spec = self.server_spec()?;
        match spec.listen_port()? {
            0 => Err(failed_precondition!(
                "the port of {} is chosen when its server starts: ask the server for its target, or give it a port",
                self.role.device()
            )),
            port => spec.target(port),
        }
    }
}

/// The cluster says which jobs or indices there are; this says what to correct.
fn not_there(status: Status, job: &str, index: u32) -> Status {
    status
        .with_code(Code::InvalidArgument)
        .context(format!("--job_name={job} --task_index={index}"))
}
