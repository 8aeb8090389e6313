//! The commands that ask servers: `devices`, `status`, `doctor`, `stop`, `reset`.

use tensorfleet::flags::HostFlags;

use super::ServerDefArg;

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

/// Check a cluster.
#[derive(clap::Args)]
#[command(after_help = "\
The tasks are those of the targets' clusters, or of the cluster that is named as for `serve`: --server_def, else
--cluster, else the --*_hosts flags, else TF_CONFIG. Exit code 0 if the cluster is well, 1 if not; warnings are no
illness.

Examples:
  tensorfleet doctor --ps_hosts=a:2222 --worker_hosts=b:2222,c:2222
  tensorfleet doctor grpc://localhost:2222")]
pub(crate) struct DoctorArgs {
    /// Servers to start from, grpc://host:port or host:port; TensorFleet's tell the rest of their cluster.
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) cluster: HostFlags,
    #[command(flatten)]
    pub(crate) server_def: ServerDefArg,
    /// Wait for each answer at most this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
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
