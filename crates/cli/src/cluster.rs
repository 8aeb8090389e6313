//! Which cluster the flags, or the environment, name.

use std::path::Path;

use anyhow::{Context, Result};
use prost::{Message, Name};
use tensorfleet_cluster::{ClusterSpec, ServerSpec, TfConfig};
use tensorfleet_proto::{ServerDef, text};

use crate::args::{ClusterArgs, ServeArgs};
use crate::output::Misuse;

/// Where the flags, or the environment, put this task.
pub(crate) fn place(args: &ServeArgs) -> Result<ServerSpec> {
    let (job, task) = (args.job_name.as_deref(), args.task_index);
    let else_hint = "use `tensorfleet local` for a server of its own";
    Ok(match named(&args.cluster, else_hint)? {
        Named::ServerDef(mut def) => {
            if let Some(job) = job {
                job.clone_into(&mut def.job_name);
            }
            if let Some(task) = task {
                def.task_index = i32::try_from(task)?;
            }
            ServerSpec::from_server_def(&def)?
        }
        Named::Cluster(cluster) => ServerSpec::new(cluster, job, task)?,
        Named::TfConfig(config) => {
            let spec = ServerSpec::from_tf_config(&config)?;
            if job.is_none() && task.is_none() {
                return Ok(spec);
            }
            let task = task.or(Some(spec.task));
            ServerSpec::new(spec.cluster, job.or(Some(&spec.job)), task)?
        }
    })
}

/// The cluster alone, whoever is asking.
pub(crate) fn cluster(args: &ClusterArgs) -> Result<ClusterSpec> {
    Ok(match named(args, "name a server of the cluster")? {
        Named::ServerDef(def) => {
            ClusterSpec::from_cluster_def(&def.cluster.context("--server_def names no cluster")?)?
        }
        Named::Cluster(cluster) => cluster,
        Named::TfConfig(config) => config.cluster,
    })
}

/// Whether any flag names a cluster.
pub(crate) fn is_named(args: &ClusterArgs) -> bool {
    let hosts = [&args.ps_hosts, &args.worker_hosts, &args.chief_hosts];
    args.cluster.is_some()
        || args.server_def.is_some()
        || hosts.into_iter().any(|hosts| !hosts.is_empty())
}

/// The ways to name a cluster. The first that was used counts.
enum Named {
    ServerDef(Box<ServerDef>),
    Cluster(ClusterSpec),
    TfConfig(TfConfig),
}

/// `otherwise` is what to do if there is no cluster to name.
fn named(args: &ClusterArgs, otherwise: &str) -> Result<Named> {
    if let Some(def) = &args.server_def {
        return Ok(Named::ServerDef(Box::new(message(def, "--server_def")?)));
    }
    if let Some(cluster) = &args.cluster {
        let text = if cluster.trim_start().starts_with('{') {
            cluster.clone()
        } else {
            std::fs::read_to_string(cluster)
                .with_context(|| format!("--cluster: {cluster} is neither JSON nor a file"))?
        };
        return Ok(Named::Cluster(ClusterSpec::parse_json(&text)?));
    }
    let hosts = [
        ("ps", &args.ps_hosts),
        ("worker", &args.worker_hosts),
        ("chief", &args.chief_hosts),
    ];
    let jobs = hosts.into_iter().filter(|(_, hosts)| !hosts.is_empty());
    let jobs: Vec<(&str, Vec<String>)> = jobs.map(|(job, hosts)| (job, hosts.clone())).collect();
    if !jobs.is_empty() {
        return Ok(Named::Cluster(ClusterSpec::from_jobs(jobs)?));
    }
    match std::env::var("TF_CONFIG") {
        Ok(text) if !text.trim().is_empty() => Ok(Named::TfConfig(TfConfig::parse(&text)?)),
        _ => Err(Misuse(format!(
            "no cluster: give --ps_hosts and --worker_hosts, --cluster, --server_def or TF_CONFIG (or {otherwise})"
        ))
        .into()),
    }
}

/// A message from a file, text or binary, or from the argument itself.
pub(crate) fn message<M: Message + Name + Default>(argument: &str, flag: &str) -> Result<M> {
    let path = Path::new(argument);
    let bytes = if path.exists() {
        std::fs::read(path).with_context(|| format!("{flag}: {argument} cannot be read"))?
    } else {
        argument.as_bytes().to_vec()
    };
    let parsed = match std::str::from_utf8(&bytes) {
        Ok(content) => text::parse(content).map_err(|error| error.to_string()),
        Err(_) => Err("it is no text".to_owned()),
    };
    match parsed {
        Ok(message) => Ok(message),
        Err(_) if path.exists() && M::decode(bytes.as_slice()).is_ok() => {
            Ok(M::decode(bytes.as_slice())?)
        }
        Err(error) => Err(Misuse(format!(
            "{flag}: neither a file nor a {} in text form: {error}",
            M::NAME
        ))
        .into()),
    }
}
