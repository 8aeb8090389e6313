//! What was typed. The doc comments are the help texts.
//!
//! | file | commands |
//! |---|---|
//! | this one | what works without a server: `run`, `inspect`, `ops`, `checkpoint` |
//! | `servers` | what serves: `serve`, `local`, `up` |
//! | `demo` | `demo` |
//! | `clients` | what asks servers: `devices`, `status`, `doctor`, `stop`, `reset` |

mod clients;
mod demo;
mod servers;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub(crate) use clients::{DoctorArgs, ResetArgs, StopArgs, TargetArgs};
pub(crate) use demo::{DemoArgs, DemoWorkerArgs, TrainingArgs};
pub(crate) use servers::{LocalArgs, ServeArgs, ServerArgs, ServerDefArg, UpArgs};

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
    /// Train a network on a cluster of processes on this machine, and watch it.
    Demo(DemoArgs),
    /// One worker of the demo.
    #[command(hide = true, name = "demo-worker")]
    DemoWorker(Box<DemoWorkerArgs>),
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
    /// Run a whole cluster on this machine, one process per task.
    Up(UpArgs),
    /// List the devices of a server's cluster.
    Devices(TargetArgs),
    /// Show what a server is doing.
    Status(TargetArgs),
    /// Check a cluster: names, connections, tasks, clocks, versions; says what is wrong and what to do.
    Doctor(DoctorArgs),
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
///
/// It is named by the prefix of its files, such as dir/model.ckpt-100, or by their directory: then it is the latest
/// one, which the directory's file `checkpoint` names.
#[derive(clap::Args)]
pub(crate) struct CheckpointArgs {
    #[command(subcommand)]
    pub(crate) command: CheckpointCommand,
}

#[derive(Subcommand)]
pub(crate) enum CheckpointCommand {
    /// List the tensors of a checkpoint: dtype, shape, where they are stored.
    List {
        /// The prefix of the checkpoint's files, or their directory.
        checkpoint: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print tensors of a checkpoint.
    Show {
        /// The prefix of the checkpoint's files, or their directory.
        checkpoint: String,
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
        /// The prefix of the checkpoint's files, or their directory.
        checkpoint: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
