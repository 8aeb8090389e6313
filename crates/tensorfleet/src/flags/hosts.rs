//! [`HostFlags`]: which tasks a cluster has, whoever is asking.

use tensorfleet_cluster::{ClusterSpec, TfConfig};
use tensorfleet_status::{Result, invalid_argument};

/// Where the help of a program shows these flags.
pub(super) const HEADING: &str = "Cluster";

/// `--ps_hosts --worker_hosts --chief_hosts --cluster`: for programs that are no task of the cluster.
///
/// ```
/// use clap::Parser;
/// use tensorfleet::flags::HostFlags;
///
/// #[derive(Parser)]
/// struct Args {
///     #[command(flatten)]
///     hosts: HostFlags,
/// }
///
/// let args = Args::parse_from(["watch", "--ps", "a:2222", "--worker", "b:2222,c:2222"]);
/// let cluster = args.hosts.cluster()?.expect("the flags name one");
/// assert_eq!(cluster.task_address("worker", 1)?, "c:2222");
/// # Ok::<(), tensorfleet_status::Status>(())
/// ```
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct HostFlags {
    /// Addresses of the ps tasks, by comma.
    #[arg(long = "ps_hosts", visible_aliases = ["ps-hosts", "ps"], value_name = "HOST:PORT,…", value_delimiter = ',', help_heading = HEADING)]
    pub ps_hosts: Vec<String>,
    /// Addresses of the worker tasks, by comma.
    #[arg(long = "worker_hosts", visible_aliases = ["worker-hosts", "worker"], value_name = "HOST:PORT,…", value_delimiter = ',', help_heading = HEADING)]
    pub worker_hosts: Vec<String>,
    /// Addresses of the chief task.
    #[arg(
        long = "chief_hosts",
        visible_alias = "chief-hosts",
        value_name = "HOST:PORT",
        value_delimiter = ',',
        help_heading = HEADING
    )]
    pub chief_hosts: Vec<String>,
    /// The whole cluster as JSON or a file of it: {"job": ["host:port", …]} or {"job": {"index": "host:port"}}.
    #[arg(long, value_name = "JSON|FILE", help_heading = HEADING)]
    pub cluster: Option<String>,
}

impl HostFlags {
    /// Whether any flag names a cluster.
    pub fn is_given(&self) -> bool {
        self.cluster.is_some() || self.jobs().next().is_some()
    }

    /// The cluster that the flags name; `None` where they name none.
    pub fn cluster(&self) -> Result<Option<ClusterSpec>> {
        if let Some(cluster) = &self.cluster {
            return read_cluster(cluster).map(Some);
        }
        if !self.is_given() {
            return Ok(None);
        }
        ClusterSpec::from_jobs(self.jobs()).map(Some)
    }

    /// The cluster that the flags name, else `TF_CONFIG`; `None` where neither names one.
    pub fn find(&self) -> Result<Option<ClusterSpec>> {
        if let Some(cluster) = self.cluster()? {
            return Ok(Some(cluster));
        }
        let Some(text) = tf_config() else {
            return Ok(None);
        };
        let cluster = TfConfig::parse(&text)?.cluster;
        Ok((!cluster.is_empty()).then_some(cluster))
    }

    /// The jobs that have hosts. `--ps_hosts=` is how scripts say "none".
    fn jobs(&self) -> impl Iterator<Item = (&'static str, Vec<&str>)> {
        let jobs = [
            ("ps", &self.ps_hosts),
            ("worker", &self.worker_hosts),
            ("chief", &self.chief_hosts),
        ];
        jobs.into_iter().filter_map(|(job, hosts)| {
            let hosts = hosts.iter().map(|host| host.trim());
            let hosts: Vec<&str> = hosts.filter(|host| !host.is_empty()).collect();
            (!hosts.is_empty()).then_some((job, hosts))
        })
    }
}

/// What `TF_CONFIG` says, if anything.
pub(super) fn tf_config() -> Option<String> {
    let text = std::env::var("TF_CONFIG").ok()?;
    (!text.trim().is_empty()).then_some(text)
}

/// How an error begins where no cluster is named: whoever set `TF_CONFIG` hears that it was read.
///
/// ```
/// assert!(tensorfleet::flags::no_cluster().starts_with("no cluster"));
/// ```
pub fn no_cluster() -> &'static str {
    match tf_config() {
        Some(_) => "no cluster (TF_CONFIG is set but has no \"cluster\")",
        None => "no cluster",
    }
}

fn read_cluster(argument: &str) -> Result<ClusterSpec> {
    if argument.trim_start().starts_with('{') {
        return ClusterSpec::parse_json(argument).map_err(|status| status.context("--cluster"));
    }
    let text = std::fs::read_to_string(argument).map_err(|error| {
        invalid_argument!("--cluster: {argument} is neither JSON nor a file: {error}")
    })?;
    ClusterSpec::parse_json(&text).map_err(|status| status.context(format!("--cluster {argument}")))
}
