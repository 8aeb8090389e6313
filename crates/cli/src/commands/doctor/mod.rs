//! `tensorfleet doctor`: checks a cluster from outside and says what is wrong and what to do.
//!
//! | file | |
//! |---|---|
//! | `examine` | one server: resolve, connect, ask |
//! | `judge` | what the answers mean, for each task and for all together |
//! | `show` | the table, the findings, the JSON |
//!
//! Every wait is bounded by `--timeout`. Nothing is changed on any server.

mod examine;
mod judge;
mod show;

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use anyhow::{Result, bail};
use tensorfleet_cluster::{ClusterSpec, TaskName};
use tensorfleet_proto::ListDevicesRequest;
use tokio::task::JoinSet;

use crate::args::DoctorArgs;
use crate::cluster;
use crate::commands::{runtime, seconds};
use crate::output::Misuse;
pub(super) use examine::refuses;
use examine::{Examined, call, examine};
use judge::Finding;

/// One address and all that was found out about it.
struct Patient {
    /// Who should be there, if somebody said.
    expected: Option<TaskName>,
    address: String,
    examined: Examined,
    findings: Vec<Finding>,
}

impl Patient {
    fn new(expected: Option<TaskName>, address: String, examined: Examined) -> Patient {
        Patient {
            expected,
            address,
            examined,
            findings: Vec::new(),
        }
    }

    /// The task that should be there, or that is.
    fn task(&self) -> Option<&TaskName> {
        self.expected.as_ref().or(self.examined.task.as_ref())
    }

    fn is_well(&self) -> bool {
        !self.findings.iter().any(|finding| finding.serious)
    }
}

pub(crate) fn run(args: &DoctorArgs, out: &mut dyn Write) -> Result<()> {
    let timeout = seconds("--timeout", args.timeout)?;
    if !args.targets.is_empty() && cluster::is_named(args) {
        return Err(Misuse("name targets or a cluster, not both".to_owned()).into());
    }
    let mut patients = runtime()?.block_on(async {
        let (cluster, mut patients) = if args.targets.is_empty() {
            let cluster = cluster::cluster(args).map_err(|error| Misuse(format!("{error:#}")))?;
            let patients = admit(&cluster, Vec::new(), timeout).await;
            (Some(cluster), patients)
        } else {
            from_targets(&args.targets, timeout).await?
        };
        for patient in &mut patients {
            patient.examined.measure(timeout).await;
        }
        judge::each(&mut patients, cluster.as_ref(), timeout).await;
        if patients.iter().all(Patient::is_well) {
            check_sight(&mut patients, timeout).await;
        }
        anyhow::Ok(patients)
    })?;
    patients.sort_by(|a, b| a.task().cmp(&b.task()));
    let general = judge::together(&patients);
    let sick = patients.iter().filter(|patient| !patient.is_well()).count();
    if args.json {
        show::json(&patients, &general, out)?;
    } else {
        show::text(&patients, &general, out)?;
    }
    match sick {
        0 => Ok(()),
        sick => bail!(
            "the cluster is not well: {sick} of {} tasks",
            patients.len()
        ),
    }
}

/// Examines all tasks of a cluster, but for those whose examination is at hand.
async fn admit(cluster: &ClusterSpec, mut done: Vec<Patient>, timeout: Duration) -> Vec<Patient> {
    let mut waiting = JoinSet::new();
    let mut patients = Vec::new();
    for (job, index, address) in cluster.iter() {
        let task = TaskName::new(job, index as usize);
        if let Some(place) = done.iter().position(|patient| patient.address == address) {
            let known = done.swap_remove(place);
            patients.push(Patient::new(Some(task), known.address, known.examined));
            continue;
        }
        let address = address.to_owned();
        waiting.spawn(async move {
            let examined = examine(&address, timeout).await;
            Patient::new(Some(task), address, examined)
        });
    }
    patients.extend(waiting.join_all().await);
    // What is left of the targets is either a task under another name, or a stranger.
    done.retain(|target| {
        let same = |other: &Patient| target.examined.is_at(&other.examined.resolved);
        !patients.iter().any(same)
    });
    patients.extend(done);
    patients
}

/// Examines targets, and the cluster that the first of them knows of.
async fn from_targets(
    targets: &[String],
    timeout: Duration,
) -> Result<(Option<ClusterSpec>, Vec<Patient>)> {
    let mut waiting = JoinSet::new();
    for target in targets {
        let address = target.strip_prefix("grpc://").unwrap_or(target).to_owned();
        tensorfleet_cluster::split_address(&address)
            .map_err(|error| Misuse(format!("target {target}: {}", error.message())))?;
        waiting.spawn(async move {
            let examined = examine(&address, timeout).await;
            Patient::new(None, address, examined)
        });
    }
    let patients = waiting.join_all().await;
    let known = patients
        .iter()
        .find_map(|patient| patient.examined.cluster());
    match known {
        Some(cluster) => {
            let patients = admit(&cluster, patients, timeout).await;
            Ok((Some(cluster), patients))
        }
        None => Ok((None, patients)),
    }
}

/// Lets every task look for the others, as it does when it opens a session.
async fn check_sight(patients: &mut [Patient], timeout: Duration) {
    let examined = patients.iter().filter_map(Patient::task).cloned();
    let examined: BTreeSet<TaskName> = examined.collect();
    let mut waiting = JoinSet::new();
    for (place, patient) in patients.iter().enumerate() {
        let Some(client) = patient.examined.client.clone() else {
            continue;
        };
        waiting.spawn(async move {
            let request = ListDevicesRequest::default();
            (place, client.list_devices(&request, &call(timeout)).await)
        });
    }
    for (place, answer) in waiting.join_all().await {
        let Some(patient) = patients.get_mut(place) else {
            continue;
        };
        let tells = patient.examined.status.is_some();
        match answer {
            Err(error) => patient.findings.push(judge::blind(&error, timeout, tells)),
            Ok(seen) if !tells => {
                let devices = seen.remote_device.iter();
                let tasks = devices.filter_map(|device| TaskName::of_device(&device.name));
                let others = tasks.filter(|task| !examined.contains(task)).collect();
                patient.findings.extend(judge::secretive(&others));
            }
            Ok(_) => {}
        }
    }
}
