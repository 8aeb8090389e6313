//! What the answers mean: findings, each with what to do.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tensorfleet_cluster::{ClusterSpec, TaskName, split_address};
use tensorfleet_status::{Code, Status};

use super::Patient;
use super::examine::{Failure, resolve};

/// Clocks that differ by more seconds than this are worth a word.
const SKEW: f64 = 1.0;

/// What to do where one target does not lead to the others.
const NAME_THE_CLUSTER: &str = "name the whole cluster, with --cluster='{\"JOB\": [\"HOST:PORT\", …]}' or with --ps_hosts and --worker_hosts, to examine the other tasks";

/// Something to know about a task or a cluster.
#[derive(Debug, PartialEq)]
pub(super) struct Finding {
    /// The cluster cannot work like this.
    pub(super) serious: bool,
    pub(super) what: String,
    pub(super) remedy: String,
}

impl Finding {
    fn serious(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding {
            serious: true,
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding {
            serious: false,
            ..Finding::serious(what, remedy)
        }
    }
}

/// Judges every task by itself and against the cluster it should be in.
pub(super) async fn each(
    patients: &mut [Patient],
    cluster: Option<&ClusterSpec>,
    timeout: Duration,
) {
    let several_hosts = cluster.is_some_and(has_several_hosts);
    for place in 0..patients.len() {
        let Some(patient) = patients.get(place) else {
            return;
        };
        let mut findings = address(patient, several_hosts);
        match &patient.examined.failure {
            Some(failure) => findings.push(failed(patient, failure, cluster)),
            None => findings.extend(identity(patient)),
        }
        if let (Some(asked), Some(own)) = (cluster, patient.examined.cluster()) {
            findings.extend(other_cluster(asked, &own, timeout).await);
        }
        findings.extend(twin(patient, patients));
        if let Some(patient) = patients.get_mut(place) {
            patient.findings = findings;
        }
    }
}

/// What is wrong with an address before anybody calls it.
fn address(patient: &Patient, several_hosts: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Ok((host, port)) = split_address(&patient.address) else {
        return findings;
    };
    if port == 0 {
        findings.push(Finding::serious(
            "port 0 means \"any free port\", which nobody else can know",
            "give the task a port of its own",
        ));
    }
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    let everywhere = [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];
    if host.is_empty() || ip.is_some_and(|ip| everywhere.contains(&ip)) {
        findings.push(Finding::warning(
            format!("\"{host}\" says where to listen, not where to call"),
            "put the machine's name into the cluster and listen everywhere with --bind 0.0.0.0",
        ));
    } else if several_hosts && is_loopback(host) {
        findings.push(Finding::warning(
            format!("{host} is another machine for every task, and the cluster has several hosts"),
            "put the machine's name or address into the cluster",
        ));
    } else if several_hosts && leads_home(patient) {
        findings.push(Finding::warning(
            format!(
                "{host} is a loopback address on this machine, and the cluster has several hosts"
            ),
            "look at /etc/hosts: the name must lead to an address that the other machines reach",
        ));
    }
    findings
}

fn is_loopback(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

fn leads_home(patient: &Patient) -> bool {
    let resolved = &patient.examined.resolved;
    !resolved.is_empty() && resolved.iter().all(|address| address.ip().is_loopback())
}

fn has_several_hosts(cluster: &ClusterSpec) -> bool {
    let hosts = cluster.iter().filter_map(|(_, _, address)| {
        let (host, _) = split_address(address).ok()?;
        Some(if is_loopback(host) { "localhost" } else { host })
    });
    hosts.collect::<BTreeSet<_>>().len() > 1
}

/// Why a server could not be asked.
fn failed(patient: &Patient, failure: &Failure, cluster: Option<&ClusterSpec>) -> Finding {
    let address = &patient.address;
    match failure {
        Failure::NoSuchName(error) => Finding::serious(
            format!("its name does not resolve ({error})"),
            "correct the name in the cluster, or make it known in DNS or /etc/hosts",
        ),
        Failure::Refused => Finding::serious(
            format!("connection refused: nobody listens on {address}"),
            match (&patient.expected, cluster) {
                (Some(task), Some(cluster)) => format!(
                    "start it on that machine: tensorfleet serve --cluster='{}' --job_name={} --task_index={}",
                    cluster.to_json(),
                    task.job,
                    task.index
                ),
                _ => {
                    "start it with tensorfleet serve (or tensorfleet local), or correct the address"
                        .to_owned()
                }
            },
        ),
        Failure::Unreachable(error) => Finding::serious(
            format!("no connection ({error})"),
            "is the machine up, is the address right, does a firewall drop the port?",
        ),
        Failure::Silent => Finding::serious(
            "it takes the connection and says nothing",
            format!(
                "is the process at {address} paused or stuck, or is it no server? Look at it on its machine, or give it a longer --timeout"
            ),
        ),
        Failure::Foreign(speaks) => Finding::serious(
            format!("something is there that {speaks}, not gRPC"),
            "another program has the port: give the task another one",
        ),
        Failure::NoAnswer(status) if status.code() == Code::Unimplemented => Finding::serious(
            "a gRPC server is there, but not one of TensorFlow's or ours",
            "another program has the port: give the task another one",
        ),
        Failure::NoAnswer(status) if status.code() == Code::DeadlineExceeded => Finding::serious(
            "it takes calls and does not answer them",
            "is the process paused or overloaded? A longer --timeout tells",
        ),
        Failure::NoAnswer(status) => Finding::serious(
            format!("it does not say who it is: {status}"),
            "look at its log",
        ),
    }
}

/// Whether the right task answered, and in what state.
fn identity(patient: &Patient) -> Vec<Finding> {
    let mut findings = Vec::new();
    match (&patient.examined.task, &patient.expected) {
        (None, _) => findings.push(Finding::serious(
            "it has no devices",
            "start it with at least one CPU: see --cpus and device_count in --config",
        )),
        (Some(is), Some(should)) if is != should => findings.push(Finding::serious(
            format!("{is} answers here, the cluster says {should}"),
            "start the server with the cluster's --job_name and --task_index, or exchange the addresses",
        )),
        _ => {}
    }
    if let Some(status) = &patient.examined.status
        && status.stopping
    {
        findings.push(Finding::serious(
            "it is stopping and takes no more calls",
            "wait until it has ended and start it again",
        ));
    }
    findings
}

/// Where the cluster that a server believes in differs from the one that was asked about.
async fn other_cluster(asked: &ClusterSpec, own: &ClusterSpec, timeout: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut unknown, mut more) = (Vec::new(), Vec::new());
    for (job, index, address) in asked.iter() {
        let Ok(other) = own.task_address(job, index) else {
            unknown.push(TaskName::new(job, index as usize).to_string());
            continue;
        };
        if address != other && !same_place(address, other, timeout).await {
            findings.push(Finding::serious(
                format!("its own cluster has /job:{job}/task:{index} at {other}, not at {address}"),
                "start all tasks with the same cluster",
            ));
        }
    }
    for (job, index, _) in own.iter() {
        if asked.task_address(job, index).is_err() {
            more.push(TaskName::new(job, index as usize).to_string());
        }
    }
    if !unknown.is_empty() {
        findings.push(Finding::warning(
            format!("its own cluster does not have {}", unknown.join(", ")),
            "sessions on it cannot use those tasks; if they should, start all tasks with the same cluster",
        ));
    }
    if !more.is_empty() {
        findings.push(Finding::warning(
            format!("its own cluster also has {}", more.join(", ")),
            "sessions on it wait for those tasks; if they should not, start all tasks with the same cluster",
        ));
    }
    findings
}

/// Whether two spellings lead to one address, as seen from here.
async fn same_place(a: &str, b: &str, timeout: Duration) -> bool {
    match (resolve(a, timeout).await, resolve(b, timeout).await) {
        (Ok(a), Ok(b)) => a.iter().any(|address| b.contains(address)),
        _ => false,
    }
}

/// Another task at the same place, under another spelling.
fn twin(patient: &Patient, all: &[Patient]) -> Option<Finding> {
    let same = |other: &&Patient| {
        other.address != patient.address && other.examined.is_at(&patient.examined.resolved)
    };
    let other = all.iter().find(same)?;
    Some(Finding::warning(
        format!("{} leads to the same place", other.address),
        "every task needs an address of its own",
    ))
}

/// A task that does not find the others. `tells` is whether it said where they should be.
pub(super) fn blind(error: &Status, timeout: Duration, tells: bool) -> Finding {
    let why = match error.code() {
        Code::DeadlineExceeded => format!("within {timeout:?}"),
        _ => format!("({error})"),
    };
    Finding::serious(
        format!("it does not reach all other tasks of its cluster {why}"),
        match tells {
            true => "run doctor on its machine: the names must resolve and the ports be open there as well".to_owned(),
            false => format!("it is a server of TensorFlow's, which does not tell where they are; {NAME_THE_CLUSTER}"),
        },
    )
}

/// A server of TensorFlow's, which knows the other tasks of its cluster but does not tell where they are; `others` are
/// those that it has and that were not examined.
pub(super) fn secretive(others: &BTreeSet<TaskName>) -> Option<Finding> {
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    (!others.is_empty()).then(|| {
        Finding::warning(
            format!(
                "it is a server of TensorFlow's, which does not tell where the other tasks of its cluster are; not \
                 examined: {}",
                others.join(", ")
            ),
            NAME_THE_CLUSTER,
        )
    })
}

/// What shows only when all tasks are seen together.
pub(super) fn together(patients: &[Patient]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let status = patients.iter().filter_map(|patient| {
        let status = patient.examined.status.as_ref()?;
        Some((patient, status.version.as_str()))
    });
    let versions: BTreeSet<&str> = status.map(|(_, version)| version).collect();
    if versions.len() > 1 {
        let list: Vec<&str> = versions.into_iter().collect();
        findings.push(Finding::warning(
            format!("the tasks run different versions: {}", list.join(", ")),
            "use one version, the newest, for all",
        ));
    }
    let mut clocks: Vec<(f64, &Patient)> = patients
        .iter()
        .filter_map(|patient| Some((patient.examined.skew?, patient)))
        .collect();
    clocks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    if let ([(slowest, last), ..], [.., (fastest, first)]) = (&clocks[..], &clocks[..])
        && fastest - slowest > SKEW
    {
        findings.push(Finding::warning(
            format!(
                "the clock at {} is {:.1} s ahead of the one at {}",
                first.address,
                fastest - slowest,
                last.address
            ),
            "let NTP set the machines' clocks: timestamps of logs, events and checkpoints do not fit together",
        ));
    }
    findings
}

#[cfg(test)]
mod tests;
