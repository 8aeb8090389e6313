//! `tensorfleet serve` and `tensorfleet local`: one task of a cluster, until it is told to stop.

use std::io::Write;

use anyhow::Result;
use tensorfleet_cluster::{ClusterSpec, ServerSpec};
use tensorfleet_rpc::Server;

use crate::args::{LocalArgs, ServeArgs, ServerArgs};
use crate::cluster;
use crate::commands::runtime;
use crate::output::Misuse;
use crate::serving::{Settings, Signals, listen_to_stdin, until_stopped};

/// How the line begins that says a server is ready; its last word is the target.
pub(crate) const READY: &str = "tensorfleet serves";

pub(crate) fn run(args: &ServeArgs, out: &mut dyn Write) -> Result<()> {
    // A task that cannot be placed was asked for wrongly, whoever noticed.
    let spec = cluster::place(args).map_err(|error| Misuse(format!("{error:#}")))?;
    serve(spec, &args.server, args.stop_with_stdin, out)
}

pub(crate) fn run_local(args: &LocalArgs, out: &mut dyn Write) -> Result<()> {
    let address = format!("localhost:{}", args.port);
    let cluster = ClusterSpec::from_jobs([("local", [address])])?;
    let spec = ServerSpec::new(cluster, None, None)?;
    serve(spec, &args.server, false, out)
}

fn serve(
    spec: ServerSpec,
    args: &ServerArgs,
    stop_with_stdin: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let task = format!("/job:{}/task:{}", spec.job, spec.task);
    let servers = Settings::new(args)?.bind([spec])?;
    let runtime = runtime()?;
    let mut signals = runtime.block_on(async { Signals::new() })?;
    servers.iter().try_for_each(Server::start)?;
    for server in &servers {
        writeln!(out, "{READY} {task} at {}", server.target())?;
    }
    out.flush()?;
    let stdin = stop_with_stdin.then(listen_to_stdin);
    until_stopped(&runtime, &mut signals, &servers, stdin);
    Ok(())
}
