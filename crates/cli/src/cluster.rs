//! Which cluster the flags, or the environment, name: `--server_def`, else what every trainer's flags say.

use std::path::Path;

use anyhow::{Context, Result};
use prost::{Message, Name};
use tensorfleet::flags::no_cluster;
use tensorfleet_cluster::{ClusterSpec, ServerSpec};
use tensorfleet_proto::{ServerDef, text};

use crate::args::{DoctorArgs, ServeArgs};
use crate::output::Misuse;

/// Where the flags, or the environment, put this task.
pub(crate) fn place(args: &ServeArgs) -> Result<ServerSpec> {
    let Some(def) = &args.server_def.server_def else {
        let task = args.cluster.find()?;
        let task = task.ok_or_else(|| none("use `tensorfleet local` for a server of its own"))?;
        return Ok(task.server_spec()?);
    };
    let mut def: ServerDef = message(def, SERVER_DEF)?;
    if let Some(job) = &args.cluster.job_name {
        job.clone_into(&mut def.job_name);
    }
    if let Some(task) = args.cluster.task_index {
        def.task_index = i32::try_from(task)?;
    }
    Ok(ServerSpec::from_server_def(&def)?)
}

/// The cluster alone, whoever is asking.
pub(crate) fn cluster(args: &DoctorArgs) -> Result<ClusterSpec> {
    let Some(def) = &args.server_def.server_def else {
        let cluster = args.cluster.find()?;
        return cluster.ok_or_else(|| none("name a server of the cluster").into());
    };
    let def: ServerDef = message(def, SERVER_DEF)?;
    let cluster = def.cluster.context("--server_def names no cluster")?;
    Ok(ClusterSpec::from_cluster_def(&cluster)?)
}

/// Whether any flag names a cluster.
pub(crate) fn is_named(args: &DoctorArgs) -> bool {
    args.cluster.is_given() || args.server_def.server_def.is_some()
}

const SERVER_DEF: &str = "--server_def";

/// `otherwise` is what to do if there is no cluster to name.
fn none(otherwise: &str) -> Misuse {
    Misuse(format!(
        "{}: give --ps_hosts and --worker_hosts, --cluster, --server_def or a cluster in TF_CONFIG (or {otherwise})",
        no_cluster()
    ))
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
