//! `tensorfleet status`: what a server is doing.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use tensorfleet_cluster::ClusterSpec;
use tensorfleet_proto::GetStatusRequest;
use tensorfleet_rpc::admin::{StatusRequest, StatusResponse};
use tensorfleet_status::Code;

use crate::args::TargetArgs;
use crate::output;

pub(crate) fn run(args: &TargetArgs, out: &mut dyn Write) -> Result<()> {
    let (status, devices) = super::ask(
        &args.target,
        None,
        args.timeout,
        |client, options| async move {
            let worker = client.get_status(&GetStatusRequest {}, &options).await?;
            let status = match client.admin_status(&StatusRequest {}, &options).await {
                Ok(status) => Some(status),
                // Any other TensorFlow server: it says no more than its devices.
                Err(error) if error.code() == Code::Unimplemented => None,
                Err(error) => return Err(error),
            };
            Ok((status, worker.device_attributes))
        },
    )?;
    let devices: Vec<String> = devices.into_iter().map(|device| device.name).collect();
    if args.json {
        let value = match &status {
            Some(status) => json!({
                "server": "tensorfleet",
                "version": status.version,
                "task": status.task,
                "pid": status.pid,
                "uptime_seconds": status.uptime_seconds,
                "sessions": status.sessions,
                "worker_sessions": status.worker_sessions,
                "steps": status.steps,
                "tensor_bytes": status.tensor_bytes,
                "recycled_bytes": status.recycled_bytes,
                "lent_tensors": status.lent_tensors,
                "lent_bytes": status.lent_bytes,
                "lines": status.lines,
                "stopping": status.stopping,
                "clock_seconds": status.clock_micros as f64 / 1e6,
                "cluster": cluster(status),
                "devices": devices,
            }),
            None => json!({"server": "tensorflow", "devices": devices}),
        };
        return output::json(out, &value);
    }
    let mut rows = match &status {
        Some(status) => described(status),
        None => vec![row("server", "another TensorFlow server".to_owned())],
    };
    rows.push(row("devices", devices.join(", ")));
    output::table(out, &rows)?;
    Ok(())
}

/// The cluster it was started in, as `--cluster` takes it.
fn cluster(status: &StatusResponse) -> Option<Value> {
    let cluster = ClusterSpec::from_cluster_def(status.cluster.as_ref()?);
    Some(cluster.ok()?.to_json())
}

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

fn described(status: &StatusResponse) -> Vec<Vec<String>> {
    let state = if status.stopping { ", stopping" } else { "" };
    vec![
        row("server", format!("tensorfleet {}{state}", status.version)),
        row("task", status.task.clone()),
        row("pid", status.pid.to_string()),
        row("uptime", format!("{:.1} s", status.uptime_seconds)),
        row(
            "sessions",
            format!(
                "{} of clients, {} on the worker",
                status.sessions, status.worker_sessions
            ),
        ),
        row("steps", format!("{} with tensors under way", status.steps)),
        row(
            "tensors",
            format!(
                "{} live, {} kept for reuse",
                output::bytes(status.tensor_bytes),
                output::bytes(status.recycled_bytes)
            ),
        ),
        row(
            "same machine",
            format!(
                "{} lines, {} read by other tasks",
                status.lines,
                output::bytes(status.lent_bytes)
            ),
        ),
    ]
}
