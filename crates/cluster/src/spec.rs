//! [`ClusterSpec`]: which tasks a cluster has and where they are.
//!
//! Jobs and indices are kept sorted, so that equal clusters print and serialise the same. Every
//! address is `host:port`; port 0 means "any free port" and is the only one that may occur twice.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use tensorfleet_proto::{ClusterDef, JobDef};
use tensorfleet_status::{Result, ensure, invalid_argument, not_found};

/// The tasks of one job: index → address.
pub type Tasks = BTreeMap<u32, String>;

/// The tasks of a cluster by job.
///
/// ```
/// use tensorfleet_cluster::ClusterSpec;
///
/// let cluster = ClusterSpec::from_jobs([("ps", vec!["ps0:2222"]), ("worker", vec!["w0:2222", "w1:2222"])])?;
/// assert_eq!(cluster.num_tasks("worker")?, 2);
/// assert_eq!(cluster.task_address("worker", 1)?, "w1:2222");
/// # Ok::<(), tensorfleet_status::Status>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ClusterSpec {
    jobs: BTreeMap<String, Tasks>,
}

impl ClusterSpec {
    /// A cluster of jobs that list the addresses of tasks 0, 1, 2, …
    pub fn from_jobs<J, A>(jobs: impl IntoIterator<Item = (J, A)>) -> Result<ClusterSpec>
    where
        J: Into<String>,
        A: IntoIterator<Item: Into<String>>,
    {
        ClusterSpec::from_sparse(
            jobs.into_iter()
                .map(|(job, addresses)| (job, (0..).zip(addresses))),
        )
    }

    /// A cluster of jobs that name index and address of each task; indices may have gaps.
    pub fn from_sparse<J, T, A>(jobs: impl IntoIterator<Item = (J, T)>) -> Result<ClusterSpec>
    where
        J: Into<String>,
        T: IntoIterator<Item = (u32, A)>,
        A: Into<String>,
    {
        let mut spec = ClusterSpec::default();
        for (job, tasks) in jobs {
            let job = job.into();
            let mut known = Tasks::new();
            for (index, address) in tasks {
                ensure!(
                    known.insert(index, address.into()).is_none(),
                    invalid_argument,
                    "task {index} of job \"{job}\" has two addresses"
                );
            }
            spec.add_job(job, known)?;
        }
        spec.check_addresses()?;
        Ok(spec)
    }

    /// The cluster that a message describes.
    pub fn from_cluster_def(def: &ClusterDef) -> Result<ClusterSpec> {
        let mut spec = ClusterSpec::default();
        for job in &def.job {
            let mut tasks = Tasks::new();
            for (index, address) in &job.tasks {
                let index = u32::try_from(*index).map_err(|_| {
                    invalid_argument!(
                        "task index {index} of job \"{}\" is negative: indices start at 0",
                        job.name
                    )
                })?;
                tasks.insert(index, address.clone());
            }
            spec.add_job(job.name.clone(), tasks)?;
        }
        spec.check_addresses()?;
        Ok(spec)
    }

    /// The cluster that a JSON object describes: job → list of addresses, or job → object index → address.
    pub fn from_json(json: &Value) -> Result<ClusterSpec> {
        let jobs = json.as_object().ok_or_else(|| {
            invalid_argument!(
                "a cluster must be an object from job names to addresses, such as {{\"worker\": [\"host:2222\"]}}, not {json}"
            )
        })?;
        let mut spec = ClusterSpec::default();
        for (job, tasks) in jobs {
            spec.add_job(job.clone(), tasks_from_json(job, tasks)?)?;
        }
        spec.check_addresses()?;
        Ok(spec)
    }

    /// Like [`from_json`](ClusterSpec::from_json), from text.
    pub fn parse_json(text: &str) -> Result<ClusterSpec> {
        let json = serde_json::from_str(text)
            .map_err(|error| invalid_argument!("the cluster is not JSON: {error}: {text}"))?;
        ClusterSpec::from_json(&json)
    }

    /// Whether there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The jobs' names, sorted.
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = &str> {
        self.jobs.keys().map(String::as_str)
    }

    /// The number of tasks of a job, gaps not counted.
    pub fn num_tasks(&self, job: &str) -> Result<usize> {
        Ok(self.tasks(job)?.len())
    }

    /// The indices of a job's tasks, ascending.
    pub fn task_indices(&self, job: &str) -> Result<Vec<u32>> {
        Ok(self.tasks(job)?.keys().copied().collect())
    }

    /// The address of a task.
    pub fn task_address(&self, job: &str, index: u32) -> Result<&str> {
        let tasks = self.tasks(job)?;
        tasks.get(&index).map(String::as_str).ok_or_else(|| {
            let known: Vec<String> = tasks.keys().map(u32::to_string).collect();
            not_found!(
                "No task with index {index} in job '{job}'; its task indices are [{}]",
                known.join(", ")
            )
        })
    }

    /// The addresses of a job by index; `None` where an index is not used.
    pub fn job_tasks(&self, job: &str) -> Result<Vec<Option<&str>>> {
        let tasks = self.tasks(job)?;
        let last = tasks.keys().next_back().copied();
        // A far index must not make a list of billions: nobody has that many tasks.
        ensure!(
            last.is_none_or(|last| last < MAX_LISTED),
            invalid_argument,
            "job '{job}' has task index {}, too far to list: ask for single tasks",
            last.unwrap_or(0)
        );
        let mut list = vec![None; last.map_or(0, |last| last as usize + 1)];
        for (index, address) in tasks {
            if let Some(place) = list.get_mut(*index as usize) {
                *place = Some(address.as_str());
            }
        }
        Ok(list)
    }

    /// All tasks of all jobs.
    pub fn as_map(&self) -> &BTreeMap<String, Tasks> {
        &self.jobs
    }

    /// All tasks: (job, index, address), sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32, &str)> {
        self.jobs.iter().flat_map(|(job, tasks)| {
            tasks
                .iter()
                .map(move |(index, address)| (job.as_str(), *index, address.as_str()))
        })
    }

    /// The message that describes this cluster.
    pub fn as_cluster_def(&self) -> ClusterDef {
        let job = |(name, tasks): (&String, &Tasks)| JobDef {
            name: name.clone(),
            tasks: tasks
                .iter()
                .map(|(index, address)| (*index as i32, address.clone()))
                .collect(),
        };
        ClusterDef {
            job: self.jobs.iter().map(job).collect(),
        }
    }

    /// The JSON that [`from_json`](ClusterSpec::from_json) reads: a list for jobs without gaps, else an object.
    pub fn to_json(&self) -> Value {
        let tasks = |tasks: &Tasks| -> Value {
            if is_dense(tasks) {
                tasks.values().cloned().collect()
            } else {
                tasks
                    .iter()
                    .map(|(index, address)| (index.to_string(), Value::from(address.clone())))
                    .collect()
            }
        };
        self.jobs
            .iter()
            .map(|(job, known)| (job.clone(), tasks(known)))
            .collect()
    }

    /// The tasks of a job; NOT_FOUND naming the jobs there are.
    pub fn tasks(&self, job: &str) -> Result<&Tasks> {
        self.jobs.get(job).ok_or_else(|| {
            let known: Vec<String> = self.jobs().map(|name| format!("'{name}'")).collect();
            match known.is_empty() {
                true => not_found!("No such job in cluster: '{job}'; the cluster has no jobs"),
                false => not_found!(
                    "No such job in cluster: '{job}'; the jobs are {}",
                    known.join(", ")
                ),
            }
        })
    }

    fn add_job(&mut self, job: String, tasks: Tasks) -> Result<()> {
        let legal = job.starts_with(|first: char| first.is_ascii_alphabetic())
            && job.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        ensure!(
            legal,
            invalid_argument,
            "job name \"{job}\" cannot be part of a device name: use a letter, then letters, digits and underscores"
        );
        if let Some(last) = tasks.keys().next_back() {
            ensure!(
                i32::try_from(*last).is_ok(),
                invalid_argument,
                "task index {last} of job \"{job}\" is too large"
            );
        }
        ensure!(
            !self.jobs.contains_key(&job),
            invalid_argument,
            "Duplicate job ID in cluster specification: {job}"
        );
        self.jobs.insert(job, tasks);
        Ok(())
    }

    fn check_addresses(&self) -> Result<()> {
        let mut seen: BTreeMap<&str, (&str, u32)> = BTreeMap::new();
        for (job, index, address) in self.iter() {
            let (_, port) = split_address(address)
                .map_err(|status| status.context(format!("task {index} of job \"{job}\"")))?;
            if port == 0 {
                continue;
            }
            if let Some((other_job, other)) = seen.insert(address, (job, index)) {
                return Err(invalid_argument!(
                    "address \"{address}\" is given to task {other} of job \"{other_job}\" and to task {index} of job \"{job}\": every task needs its own"
                ));
            }
        }
        Ok(())
    }
}

/// The longest list that [`ClusterSpec::job_tasks`] makes.
const MAX_LISTED: u32 = 1 << 20;

/// Host and port of an address; `:2222` has an empty host.
pub fn split_address(address: &str) -> Result<(&str, u16)> {
    let bad = |why: &str| {
        invalid_argument!("Could not interpret \"{address}\" as a host-port pair: {why}")
    };
    if let Some((scheme, _)) = address.split_once("://") {
        return Err(bad(&format!("leave out \"{scheme}://\"")));
    }
    let (host, port) = address
        .rsplit_once(':')
        .filter(|(host, port)| !(port.ends_with(']') && host.starts_with('[')))
        .ok_or_else(|| bad(&format!("it has no port, write \"{address}:2222\"")))?;
    if host.contains(['/', ' ']) {
        return Err(bad("the host has characters that no host name has"));
    }
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err(bad(&format!(
            "write an IPv6 address in brackets, \"[{host}]:{port}\""
        )));
    }
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad(&format!("the port \"{port}\" is not a number")));
    }
    match port.parse() {
        Ok(port) => Ok((host, port)),
        Err(_) => Err(bad(&format!("port {port} is above 65535"))),
    }
}

fn is_dense(tasks: &Tasks) -> bool {
    tasks
        .keys()
        .next_back()
        .is_none_or(|last| *last as usize + 1 == tasks.len())
}

fn tasks_from_json(job: &str, json: &Value) -> Result<Tasks> {
    let address = |index: u32, value: &Value| match value.as_str() {
        Some(address) => Ok((index, address.to_owned())),
        None => Err(invalid_argument!(
            "the address of task {index} of job \"{job}\" must be a string, not {value}"
        )),
    };
    match json {
        Value::Array(list) => (0..)
            .zip(list)
            .map(|(index, value)| address(index, value))
            .collect(),
        Value::Object(map) => {
            let mut tasks = Tasks::new();
            for (key, value) in map {
                let index = key.trim().parse().map_err(|_| {
                    invalid_argument!(
                        "\"{key}\" is no task index of job \"{job}\": the keys must be numbers from 0"
                    )
                })?;
                let (index, address) = address(index, value)?;
                ensure!(
                    tasks.insert(index, address).is_none(),
                    invalid_argument,
                    "task {index} of job \"{job}\" has two addresses"
                );
            }
            Ok(tasks)
        }
        _ => Err(invalid_argument!(
            "the tasks for job '{job}' must be a list of addresses or an object from indices to addresses, not {json}"
        )),
    }
}

/// As TensorFlow's Python prints it: `ClusterSpec({'ps': ['host:2222'], 'worker': {1: 'other:2222'}})`.
impl fmt::Display for ClusterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = |(index, address): (&u32, &String)| format!("{index}: '{address}'");
        let jobs = self.jobs.iter().map(|(job, tasks)| {
            if is_dense(tasks) && !tasks.is_empty() {
                let list: Vec<String> = tasks.values().map(|addr| format!("'{addr}'")).collect();
                format!("'{job}': [{}]", list.join(", "))
            } else {
                let list: Vec<String> = tasks.iter().map(task).collect();
                format!("'{job}': {{{}}}", list.join(", "))
            }
        });
        let jobs: Vec<String> = jobs.collect();
        write!(f, "ClusterSpec({{{}}})", jobs.join(", "))
    }
}

impl fmt::Debug for ClusterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_status::Code;

    fn sample() -> ClusterSpec {
        ClusterSpec::parse_json(
            r#"{"worker": {"1": "w1:2222", "3": "w3:2222"}, "ps": ["ps0:2222", "ps1:2222"]}"#,
        )
        .unwrap()
    }

    #[test]
    fn answers_like_tensorflows_cluster_spec() {
        let spec = sample();
        assert_eq!(spec.jobs().collect::<Vec<_>>(), ["ps", "worker"]);
        assert_eq!(spec.num_tasks("worker").unwrap(), 2);
        assert_eq!(spec.task_indices("worker").unwrap(), [1, 3]);
        assert_eq!(spec.task_address("worker", 3).unwrap(), "w3:2222");
        assert_eq!(
            spec.job_tasks("worker").unwrap(),
            [None, Some("w1:2222"), None, Some("w3:2222")]
        );
        assert_eq!(
            spec.to_string(),
            "ClusterSpec({'ps': ['ps0:2222', 'ps1:2222'], 'worker': {1: 'w1:2222', 3: 'w3:2222'}})"
        );
    }

    #[test]
    fn every_form_gives_the_same_cluster() {
        let spec = sample();
        let sparse = ClusterSpec::from_sparse([
            ("ps", [(0, "ps0:2222"), (1, "ps1:2222")]),
            ("worker", [(1, "w1:2222"), (3, "w3:2222")]),
        ]);
        assert_eq!(sparse.unwrap(), spec);
        let from_def = ClusterSpec::from_cluster_def(&spec.as_cluster_def());
        assert_eq!(from_def.unwrap(), spec);
        assert_eq!(ClusterSpec::from_json(&spec.to_json()).unwrap(), spec);
        assert_eq!(spec.clone(), spec);
        assert_ne!(ClusterSpec::default(), spec);
        let empty = ClusterSpec::from_jobs([("e", Vec::<String>::new())]).unwrap();
        assert_eq!(empty.to_string(), "ClusterSpec({'e': {}})");
        assert!(empty.job_tasks("e").unwrap().is_empty());
    }

    #[test]
    fn names_culprit_and_remedy() {
        let spec = sample();
        let unknown = spec.num_tasks("chief").unwrap_err();
        assert_eq!(unknown.code(), Code::NotFound);
        assert_eq!(
            unknown.message(),
            "No such job in cluster: 'chief'; the jobs are 'ps', 'worker'"
        );
        assert_eq!(
            spec.task_address("worker", 0).unwrap_err().message(),
            "No task with index 0 in job 'worker'; its task indices are [1, 3]"
        );
        for (json, needle) in [
            (r#"{"a": ["h:1", "h:1"]}"#, "every task needs its own"),
            (r#"{"a": ["h"]}"#, "write \"h:2222\""),
            (r#"{"a": ["h:x"]}"#, "\"x\" is not a number"),
            (r#"{"a": ["h:"]}"#, "\"\" is not a number"),
            (r#"{"a": ["h:70000"]}"#, "above 65535"),
            (r#"{"a": ["grpc://h:1"]}"#, "leave out \"grpc://\""),
            (r#"{"a": ["::1:80"]}"#, "in brackets, \"[::1]:80\""),
            (r#"{"a": ["[::1]"]}"#, "no port"),
            (r#"{"a": [7]}"#, "must be a string, not 7"),
            (r#"{"a": "h:1"}"#, "must be a list"),
            (r#"{"a": {"x": "h:1"}}"#, "\"x\" is no task index"),
            (r#"{"a": {"-1": "h:1"}}"#, "\"-1\" is no task index"),
            (r#"{"a": {"4000000000": "h:1"}}"#, "too large"),
            (r#"{"a": {"1": "h:1", "01": "i:1"}}"#, "two addresses"),
            (r#"{"a-b": ["h:1"]}"#, "job name \"a-b\""),
            (r#"["h:1"]"#, "must be an object"),
            (r#"{"a": "#, "not JSON"),
        ] {
            let error = ClusterSpec::parse_json(json).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{json}");
            assert!(error.message().contains(needle), "{json}: {error}");
        }
    }

    #[test]
    fn bad_messages_are_refused() {
        let job = |name: &str, index: i32, address: &str| JobDef {
            name: name.into(),
            tasks: [(index, address.to_owned())].into(),
        };
        for (jobs, needle) in [
            (vec![job("a", -1, "h:1")], "negative"),
            (
                vec![job("a", 0, "h:1"), job("a", 0, "i:1")],
                "Duplicate job ID",
            ),
            (vec![job("", 0, "h:1")], "job name \"\""),
        ] {
            let error = ClusterSpec::from_cluster_def(&ClusterDef { job: jobs }).unwrap_err();
            assert!(error.message().contains(needle), "{error}");
        }
        let far = ClusterSpec::from_sparse([("a", [(i32::MAX as u32, "h:1")])]).unwrap();
        assert!(far.job_tasks("a").is_err());
    }

    #[test]
    fn port_zero_may_occur_twice() {
        assert!(ClusterSpec::from_jobs([("a", ["localhost:0", "localhost:0"])]).is_ok());
        assert_eq!(split_address("[::1]:80").unwrap(), ("[::1]", 80));
        assert_eq!(split_address(":80").unwrap(), ("", 80));
    }
}
