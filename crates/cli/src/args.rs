//! What was typed. The doc comments are the help texts.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// TensorFleet: the distributed TensorFlow runtime.
#[derive(Parser)]
#[command(
    name = "tensorfleet",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a graph in this process: feed, fetch, print.
    Run(RunArgs),
    /// Show what is in a graph: unsupported ops first, then ops, functions, devices, nodes.
    Inspect(InspectArgs),
    /// List the supported ops with their dtypes and whether they have a gradient.
    Ops(OpsArgs),
    /// Look into a checkpoint.
    Checkpoint(CheckpointArgs),
    /// Serve one task of a cluster: a TensorFlow server for TensorFlow clients.
    Serve(ServeArgs),
    /// Serve a cluster of one task on this machine.
    Local(LocalArgs),
    /// List the devices of a server's cluster.
    Devices(TargetArgs),
    /// Show what a server is doing.
    Status(TargetArgs),
    /// Stop a server: running steps get a grace period.
    Stop(StopArgs),
    /// Close all sessions of a server and clear state on its cluster.
    Reset(ResetArgs),
}

/// Run a graph in this process.
#[derive(clap::Args)]
#[command(after_help = "\
Values of --feed: a JSON array or number, text for strings, a literal such as 'float[2]{1, 2}',
@file.npy or @file.json. The dtype is the one the graph declares.

Example:
  tensorfleet run examples/graphs/linear.pbtxt --feed x:0='[[1, 2], [3, 4]]' --fetch y:0")]
pub(crate) struct RunArgs {
    /// The graph: a binary GraphDef (.pb) or its text form (.pbtxt); a MetaGraphDef (.meta) works too.
    pub(crate) graph: PathBuf,
    /// Feed a tensor: NAME=VALUE. May be repeated.
    #[arg(long = "feed", value_name = "NAME=VALUE")]
    pub(crate) feeds: Vec<String>,
    /// Fetch a tensor: NODE:PORT. May be repeated.
    #[arg(long = "fetch", value_name = "NAME")]
    pub(crate) fetches: Vec<String>,
    /// Run a node without fetching. May be repeated.
    #[arg(long = "target", value_name = "NODE")]
    pub(crate) targets: Vec<String>,
    /// Run this node once before the others, such as an initializer. May be repeated; they run in order.
    #[arg(long = "init", value_name = "NODE")]
    pub(crate) inits: Vec<String>,
    /// Run the step this many times; the last results are shown.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Fail a step that takes longer than this many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Threads for kernels (0: one per core).
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: usize,
    /// Run the graph as it is, without rewrites.
    #[arg(long)]
    pub(crate) no_optimize: bool,
    /// Print the slowest nodes of the last step.
    #[arg(long)]
    pub(crate) trace: bool,
    /// Write each fetched tensor as a .npy file into this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what is in a graph.
#[derive(clap::Args)]
pub(crate) struct InspectArgs {
    /// The graph: .pb, .pbtxt or .meta.
    pub(crate) graph: PathBuf,
    /// Also list every node.
    #[arg(long)]
    pub(crate) nodes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the supported ops.
#[derive(clap::Args)]
pub(crate) struct OpsArgs {
    /// Only ops whose name contains this.
    pub(crate) filter: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Look into a checkpoint.
#[derive(clap::Args)]
pub(crate) struct CheckpointArgs {
    #[command(subcommand)]
    pub(crate) command: CheckpointCommand,
}

#[derive(Subcommand)]
pub(crate) enum CheckpointCommand {
    /// List the tensors of a checkpoint: dtype, shape, where they are stored.
    List {
        /// The prefix of the checkpoint's files, such as dir/model.ckpt-100.
        prefix: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print tensors of a checkpoint.
    Show {
        /// The prefix of the checkpoint's files.
        prefix: String,
        /// The tensors; all if none is named.
        names: Vec<String>,
        /// Print at most this many elements of each.
        #[arg(long, default_value_t = 32)]
        limit: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Read everything and check every checksum.
    Verify {
        /// The prefix of the checkpoint's files.
        prefix: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

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
    /// Addresses of the ps tasks, by comma.
    #[arg(long = "ps_hosts", visible_aliases = ["ps-hosts", "ps"], value_name = "HOST:PORT,…", value_delimiter = ',')]
    pub(crate) ps_hosts: Vec<String>,
    /// Addresses of the worker tasks, by comma.
    #[arg(long = "worker_hosts", visible_aliases = ["worker-hosts", "worker"], value_name = "HOST:PORT,…", value_delimiter = ',')]
    pub(crate) worker_hosts: Vec<String>,
    /// Addresses of the chief task.
    #[arg(
        long = "chief_hosts",
        visible_alias = "chief-hosts",
        value_name = "HOST:PORT",
        value_delimiter = ','
    )]
    pub(crate) chief_hosts: Vec<String>,
    /// The whole cluster as JSON or a file of it: {"job": ["host:port", …]} or {"job": {"index": "host:port"}}.
    #[arg(long, value_name = "JSON|FILE")]
    pub(crate) cluster: Option<String>,
    /// A ServerDef in text form, or a file of it (text or binary).
    #[arg(
        long = "server_def",
        alias = "server-def",
        value_name = "TEXT|FILE",
        conflicts_with = "cluster"
    )]
    pub(crate) server_def: Option<String>,
    /// The job of this task.
    #[arg(long = "job_name", alias = "job-name", value_name = "JOB")]
    pub(crate) job_name: Option<String>,
    /// The index of this task in its job.
    #[arg(long = "task_index", alias = "task-index", value_name = "N")]
    pub(crate) task_index: Option<u32>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
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
    /// The largest message to send or take.
    #[arg(
        long = "max_message_bytes",
        alias = "max-message-bytes",
        value_name = "BYTES",
        default_value_t = 2_147_483_647
    )]
    pub(crate) max_message_bytes: u32,
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

/// A server to ask.
#[derive(clap::Args)]
pub(crate) struct TargetArgs {
    /// The server: grpc://host:port or host:port.
    pub(crate) target: String,
    /// Give up after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub(crate) timeout: f64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stop a server.
#[derive(clap::Args)]
pub(crate) struct StopArgs {
    /// The server: grpc://host:port or host:port.
    pub(crate) target: String,
    /// How long running steps may go on; the server's own grace period if left out.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<f64>,
    /// The server's admin token; not needed from its own machine if it has none.
    #[arg(long, env = "TENSORFLEET_ADMIN_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Give up after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub(crate) timeout: f64,
}

/// Close all sessions and clear state.
#[derive(clap::Args)]
pub(crate) struct ResetArgs {
    /// The server: grpc://host:port or host:port.
    pub(crate) target: String,
    /// Clear this container; the default ones if none is named. May be repeated.
    #[arg(long = "container", value_name = "NAME")]
    pub(crate) containers: Vec<String>,
    /// Give up after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub(crate) timeout: f64,
}
