//! [`ServerSpec`]: one task's place in its cluster, as a `ServerDef` says it, checked.
//!
//! Codes and texts of what is refused are those of TensorFlow's server. Nothing here binds a port.

use tensorfleet_kernel::DeviceName;
use tensorfleet_proto::{ClusterDeviceFilters, ConfigProto, ServerDef};
use tensorfleet_status::{Code, Result, Status, ensure, internal, invalid_argument};

use crate::spec::{ClusterSpec, split_address};

/// A server's cluster and which of its tasks it is.
#[derive(Clone, PartialEq, Debug)]
pub struct ServerSpec {
    /// The cluster.
    pub cluster: ClusterSpec,
    /// The own job, which the cluster has.
    pub job: String,
    /// The own index, which the job has.
    pub task: u32,
    /// The own replica: 0 but for jobs of several replicas.
    pub replica: u32,
    /// Listens here whatever the own address says, unless 0.
    pub port: u16,
    /// For sessions that give no options.
    pub default_session_config: Option<ConfigProto>,
    /// Which devices each task may see.
    pub device_filters: Option<ClusterDeviceFilters>,
}

impl ServerSpec {
    /// The place of a task; job and index may be left out where there is just one choice.
    pub fn new(cluster: ClusterSpec, job: Option<&str>, task: Option<u32>) -> Result<ServerSpec> {
        let job = match job {
            Some(job) => job.to_owned(),
            None => only_job(&cluster)?,
        };
        let task = match task {
            Some(task) => task,
            None => only_task(&cluster, &job)?,
        };
        let spec = ServerSpec {
            cluster,
            job,
            task,
            replica: 0,
            port: 0,
            default_session_config: None,
            device_filters: None,
        };
        spec.address()?;
        Ok(spec)
    }

    /// The place that a message gives.
    pub fn from_server_def(def: &ServerDef) -> Result<ServerSpec> {
        ensure!(
            def.protocol == "grpc",
            not_found,
            "No server factory registered for the given ServerDef: protocol: \"{}\" job_name: \"{}\" task_index: {}\nThe available server factories are: [ GRPC_SERVER ]; the protocol must be \"grpc\"",
            def.protocol,
            def.job_name,
            def.task_index
        );
        let cluster = match &def.cluster {
            Some(cluster) => ClusterSpec::from_cluster_def(cluster)?,
            None => ClusterSpec::default(),
        };
        let no_task = || no_such_task(&def.job_name, def.task_index);
        let port = u16::try_from(def.port)
            .map_err(|_| invalid_argument!("port {} is not in 0 to 65535", def.port))?;
        let spec = ServerSpec {
            cluster,
            job: def.job_name.clone(),
            task: u32::try_from(def.task_index).map_err(|_| no_task())?,
            replica: u32::try_from(def.replica)
                .map_err(|_| invalid_argument!("replica {} is negative", def.replica))?,
            port,
            default_session_config: def.default_session_config.clone(),
            device_filters: def.cluster_device_filters.clone(),
        };
        spec.address()?;
        ensure!(
            spec.replica == 0 || spec.port != 0,
            invalid_argument,
            "An explicit server port must be specified when using jobs with multiple replicas: job_name: \"{}\" replica: {}",
            spec.job,
            spec.replica
        );
        Ok(spec)
    }

    /// The message that describes this server.
    pub fn to_server_def(&self) -> ServerDef {
        ServerDef {
            cluster: Some(self.cluster.as_cluster_def()),
            job_name: self.job.clone(),
            task_index: self.task as i32,
            default_session_config: self.default_session_config.clone(),
            protocol: "grpc".to_owned(),
            port: i32::from(self.port),
            cluster_device_filters: self.device_filters.clone(),
            replica: self.replica as i32,
        }
    }

    /// The own address in the cluster.
    pub fn address(&self) -> Result<&str> {
        let Ok(tasks) = self.cluster.tasks(&self.job) else {
            return Err(internal!("Job \"{}\" was not defined in cluster", self.job));
        };
        match tasks.get(&self.task) {
            Some(address) => Ok(address),
            None => Err(no_such_task(&self.job, self.task)),
        }
    }

    /// The own host, `localhost` if the address leaves it out.
    pub fn host(&self) -> Result<&str> {
        match split_address(self.address()?)? {
            ("", _) => Ok("localhost"),
            (host, _) => Ok(host),
        }
    }

    /// The port to listen on; 0 for any that is free.
    pub fn listen_port(&self) -> Result<u16> {
        match self.port {
            0 => Ok(split_address(self.address()?)?.1),
            port => Ok(port),
        }
    }

    /// What clients pass to a session: `grpc://host:port` with the port that was bound.
    pub fn target(&self, bound_port: u16) -> Result<String> {
        Ok(format!("grpc://{}:{bound_port}", self.host()?))
    }

    /// The own task's name, `/job:ps/replica:0/task:0`.
    pub fn task_name(&self) -> DeviceName {
        DeviceName::of_task(&self.job, self.replica, self.task)
    }
}

fn no_such_task(job: &str, task: impl std::fmt::Display) -> Status {
    internal!("Task {task} was not defined in job \"{job}\"")
}

fn only_job(cluster: &ClusterSpec) -> Result<String> {
    let jobs: Vec<&str> = cluster.jobs().collect();
    match jobs[..] {
        [job] => Ok(job.to_owned()),
        [] => Err(invalid_argument!(
            "the cluster has no jobs: name at least the own task's job and address"
        )),
        _ => Err(invalid_argument!(
            "Must specify an explicit `job_name`: one of {}",
            jobs.join(", ")
        )),
    }
}

fn only_task(cluster: &ClusterSpec, job: &str) -> Result<u32> {
    let indices = cluster
        .task_indices(job)
        .map_err(|status| status.with_code(Code::InvalidArgument))?;
    match indices[..] {
        [index] => Ok(index),
        _ => Err(invalid_argument!(
            "Must specify an explicit `task_index`: job '{job}' has {indices:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn def(job: &str, task: i32, protocol: &str) -> ServerDef {
        let cluster = ClusterSpec::from_jobs([("ps", ["localhost:0", "10.0.0.1:2222"])]).unwrap();
        ServerDef {
            cluster: Some(cluster.as_cluster_def()),
            job_name: job.to_owned(),
            task_index: task,
            protocol: protocol.to_owned(),
            ..ServerDef::default()
        }
    }

    #[test]
    fn refuses_with_tensorflows_codes_and_texts() {
        let check = |def: &ServerDef, code: Code, text: &str| {
            let error = ServerSpec::from_server_def(def).unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.message().contains(text), "{error}");
        };
        check(
            &def("worker", 0, "grpc"),
            Code::Internal,
            "Job \"worker\" was not defined in cluster",
        );
        check(
            &def("ps", 3, "grpc"),
            Code::Internal,
            "Task 3 was not defined in job \"ps\"",
        );
        check(
            &def("ps", -1, "grpc"),
            Code::Internal,
            "Task -1 was not defined in job \"ps\"",
        );
        for protocol in ["", "http"] {
            check(
                &def("ps", 0, protocol),
                Code::NotFound,
                "No server factory registered for the given ServerDef",
            );
        }
        let mut replica = def("ps", 0, "grpc");
        replica.replica = 1;
        check(&replica, Code::InvalidArgument, "explicit server port");
        let mut port = def("ps", 0, "grpc");
        port.port = -5;
        check(&port, Code::InvalidArgument, "port -5");
    }

    #[test]
    fn knows_its_own_address() {
        let mut message = def("ps", 1, "grpc");
        let spec = ServerSpec::from_server_def(&message).unwrap();
        assert_eq!(spec.address().unwrap(), "10.0.0.1:2222");
        assert_eq!(spec.listen_port().unwrap(), 2222);
        assert_eq!(spec.target(2222).unwrap(), "grpc://10.0.0.1:2222");
        assert_eq!(spec.task_name().to_string(), "/job:ps/replica:0/task:1");
        assert_eq!(spec.to_server_def(), message);
        message.port = 99;
        let spec = ServerSpec::from_server_def(&message).unwrap();
        assert_eq!(spec.listen_port().unwrap(), 99);
        let bare = ClusterSpec::from_jobs([("local", [":0"])]).unwrap();
        let bare = ServerSpec::new(bare, None, None).unwrap();
        assert_eq!(bare.target(7).unwrap(), "grpc://localhost:7");
    }

    #[test]
    fn defaults_where_there_is_one_choice() {
        let spec = |json: &str, job: Option<&str>, task: Option<u32>| {
            ServerSpec::new(ClusterSpec::parse_json(json).unwrap(), job, task)
                .map(|spec| format!("{}:{}", spec.job, spec.task))
                .map_err(|error| error.message().to_owned())
        };
        let sparse = r#"{"worker": {"4": "h:1"}}"#;
        assert_eq!(spec(sparse, None, None).unwrap(), "worker:4");
        let two = r#"{"ps": ["h:1"], "worker": ["h:2", "h:3"]}"#;
        assert_eq!(spec(two, Some("ps"), None).unwrap(), "ps:0");
        assert_eq!(
            spec(two, None, None).unwrap_err(),
            "Must specify an explicit `job_name`: one of ps, worker"
        );
        assert_eq!(
            spec(two, Some("worker"), None).unwrap_err(),
            "Must specify an explicit `task_index`: job 'worker' has [0, 1]"
        );
        assert!(spec("{}", None, None).unwrap_err().contains("no jobs"));
        assert!(
            spec(two, Some("x"), Some(0))
                .unwrap_err()
                .contains("not defined")
        );
    }
}
