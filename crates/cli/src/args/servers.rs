//! The commands that serve: `serve`, `local`, `up`, and what they share.

use tensorfleet::flags::ClusterFlags;

/// Serve one task of a cluster.
#[derive(clap::Args)]
#[command(after_help = "\
The cluster comes from --server_def, else --cluster, else the --*_hosts flags, else TF_CONFIG.
Job and task may be left out where there is just one choice. Flags may be spelt with - or _.

Examples:
  tensorfleet serve --ps_hosts=a:2222 --worker_hosts=b:2222,c:2222 --job_name=worker --task_index=1
  tensorfleet serve --cluster '{\"worker\": {\"0\": \"localhost:2222\"}}'
  TF_CONFIG='{\"cluster\": …, \"task\": {\"type\": \"ps\", \"index\": 0}}' tensorfleet serve")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
    #[command(flatten)]
    pub(crate) server_def: ServerDefArg,
    /// Stop when stdin says so or ends: how `up` keeps its tasks from outliving it.
    #[arg(long = "stop_with_stdin", hide = true)]
    pub(crate) stop_with_stdin: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The other way to name a cluster.
#[derive(clap::Args)]
pub(crate) struct ServerDefArg {
    /// A ServerDef in text form, or a file of it (text or binary).
    #[arg(
        long = "server_def",
        alias = "server-def",
        value_name = "TEXT|FILE",
        conflicts_with = "cluster",
        help_heading = "Cluster"
    )]
    pub(crate) server_def: Option<String>,
}

/// Serve a cluster of one task on this machine.
#[derive(clap::Args)]
pub(crate) struct LocalArgs {
    /// The port; 0 for any that is free.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Run a whole cluster on this machine.
#[derive(clap::Args)]
#[command(after_help = "\
Without --ps, --workers, --chief and --job it is --ps 1 --workers 1; otherwise it is what they say. A task that dies
ends the cluster, with exit code 1, unless --restart is given; one that is told to leave (tensorfleet stop) may.
Ctrl-C stops all tasks, a second one at once.

Examples:
  tensorfleet up --ps 2 --workers 2
  tensorfleet up --chief --workers 3 --job reader=2 --base_port 2222 --restart")]
pub(crate) struct UpArgs {
    /// Tasks of job ps.
    #[arg(long, value_name = "N")]
    pub(crate) ps: Option<u32>,
    /// Tasks of job worker.
    #[arg(long, alias = "worker", value_name = "N")]
    pub(crate) workers: Option<u32>,
    /// A task of job chief.
    #[arg(long)]
    pub(crate) chief: bool,
    /// Also print the TF_CONFIG of an evaluator, which looks on from outside and has no server.
    #[arg(long)]
    pub(crate) evaluator: bool,
    /// Tasks of another job. May be repeated.
    #[arg(long = "job", value_name = "NAME=N")]
    pub(crate) jobs: Vec<String>,
    /// The port of the first task, the others follow; free ones if left out.
    #[arg(long = "base_port", alias = "base-port", value_name = "PORT")]
    pub(crate) base_port: Option<u16>,
    /// The host in the addresses of the tasks: a name or address of this machine.
    #[arg(long, value_name = "HOST", default_value = "localhost")]
    pub(crate) host: String,
    /// Serve all tasks in this process.
    #[arg(long = "in-process", alias = "in_process", conflicts_with = "restart")]
    pub(crate) in_process: bool,
    /// Start tasks that die again.
    #[arg(long)]
    pub(crate) restart: bool,
    /// Print JSON, one line an event.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What every server can be told.
#[derive(clap::Args)]
pub(crate) struct ServerArgs {
    /// The config of sessions that give none: a ConfigProto in text form, or a file of it. Empty for none.
    #[arg(long, value_name = "TEXT|FILE", default_value = "")]
    pub(crate) config: String,
    /// CPU devices to offer (device_count).
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<u32>,
    /// Threads for kernels (intra_op_parallelism_threads).
    #[arg(
        long = "intra_op_threads",
        alias = "intra-op-threads",
        value_name = "N"
    )]
    pub(crate) intra_op_threads: Option<u32>,
    /// Run ops on a CPU where they ask for a device that is not there (allow_soft_placement).
    #[arg(long = "allow_soft_placement", alias = "allow-soft-placement")]
    pub(crate) allow_soft_placement: bool,
    /// Log the device of every node (log_device_placement).
    #[arg(long = "log_device_placement", alias = "log-device-placement")]
    pub(crate) log_device_placement: bool,
    /// Listen on this host instead of the own address; 0.0.0.0 for all interfaces.
    #[arg(long, value_name = "HOST")]
    pub(crate) bind: Option<String>,
    /// How long running steps may go on when the server stops.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub(crate) grace: f64,
    /// Close sessions that did nothing for this long; 0 keeps them.
    #[arg(
        long = "session_idle",
        alias = "session-idle",
        value_name = "SECONDS",
        default_value_t = 0.0
    )]
    pub(crate) session_idle: f64,
    /// Take another task for gone if it says nothing for this long while a call waits for it; 0 for never.
    #[arg(
        long = "peer_timeout",
        alias = "peer-timeout",
        value_name = "SECONDS",
        default_value_t = 60.0
    )]
    pub(crate) peer_timeout: f64,
    /// The largest message to send or take.
    #[arg(
        long = "max_message_bytes",
        alias = "max-message-bytes",
        value_name = "BYTES",
        default_value_t = 2_147_483_647
    )]
    pub(crate) max_message_bytes: u32,
    /// Treat tasks on the same machine like all others: by default they read large tensors out of each other's memory and
    /// talk about their steps on a Unix socket.
    #[arg(long = "no_direct_transfers", alias = "no-direct-transfers")]
    pub(crate) no_direct_transfers: bool,
    /// Who has this token may stop the server; without one only this machine may.
    #[arg(
        long = "admin_token",
        alias = "admin-token",
        env = "TENSORFLEET_ADMIN_TOKEN",
        hide_env_values = true
    )]
    pub(crate) admin_token: Option<String>,
    /// What to log to stderr: error, warn, info, debug, trace, or a filter such as tensorfleet_rpc=debug.
    #[arg(long, value_name = "FILTER", default_value = "warn,placement=info")]
    pub(crate) log: String,
}

impl ServerArgs {
    /// The flags that tell another process the same, but for the admin token, which no command line should show.
    pub(crate) fn flags(&self) -> Vec<String> {
        let ServerArgs {
            config,
            cpus,
            intra_op_threads,
            allow_soft_placement,
            log_device_placement,
            bind,
            grace,
            session_idle,
            peer_timeout,
            max_message_bytes,
            no_direct_transfers,
            admin_token: _,
            log,
        } = self;
        let mut flags = vec![
            format!("--config={config}"),
            format!("--grace={grace}"),
            format!("--session_idle={session_idle}"),
            format!("--peer_timeout={peer_timeout}"),
            format!("--max_message_bytes={max_message_bytes}"),
            format!("--log={log}"),
        ];
        flags.extend(cpus.map(|cpus| format!("--cpus={cpus}")));
        flags.extend(intra_op_threads.map(|threads| format!("--intra_op_threads={threads}")));
        flags.extend(bind.as_ref().map(|bind| format!("--bind={bind}")));
        let switches = [
            (allow_soft_placement, "--allow_soft_placement"),
            (log_device_placement, "--log_device_placement"),
            (no_direct_transfers, "--no_direct_transfers"),
        ];
        let switches = switches.into_iter().filter(|(on, _)| **on);
        flags.extend(switches.map(|(_, flag)| flag.to_owned()));
        flags
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        server: ServerArgs,
    }

    #[test]
    fn flags_tell_another_process_the_same() {
        let typed = [
            "--config=device_count { key: 'CPU' value: 2 }",
            "--grace=2.5",
            "--session_idle=60",
            "--peer_timeout=30",
            "--max_message_bytes=1000",
            "--log=debug",
            "--cpus=3",
            "--intra_op_threads=1",
            "--bind=0.0.0.0",
            "--allow_soft_placement",
            "--log_device_placement",
        ];
        let parse = |flags: Vec<String>| {
            Typed::parse_from([vec!["serve".to_owned()], flags].concat()).server
        };
        for count in [0, typed.len()] {
            let given = typed.iter().take(count).map(ToString::to_string).collect();
            let flags = parse(given).flags();
            assert_eq!(parse(flags.clone()).flags(), flags);
        }
        let given = typed.iter().map(ToString::to_string).collect();
        assert_eq!(parse(given).flags(), typed);
    }
}
