//! Our own service on the same port: what a server is doing, and how to stop it.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, header};
use tensorfleet_cluster::{Master, Worker};
use tensorfleet_proto::ClusterDef;
use tensorfleet_status::{Result, invalid_argument, permission_denied};
use tensorfleet_tensor::memory_usage;

use crate::stop::StopOrders;

use crate::direct::Leases;

/// `Status`: what the server is doing.
pub const STATUS: &str = "/tensorfleet.Admin/Status";
/// `Stop`: ends the server after a grace period.
pub const STOP: &str = "/tensorfleet.Admin/Stop";

/// Asks for [`StatusResponse`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct StatusRequest {}

/// What a server is doing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StatusResponse {
    /// The version of the program.
    #[prost(string, tag = "1")]
    pub version: String,
    /// Its task, `/job:J/replica:0/task:T`.
    #[prost(string, tag = "2")]
    pub task: String,
    /// The process.
    #[prost(uint32, tag = "3")]
    pub pid: u32,
    /// Seconds since it started.
    #[prost(double, tag = "4")]
    pub uptime_seconds: f64,
    /// Sessions open on its master.
    #[prost(uint64, tag = "5")]
    pub sessions: u64,
    /// Sessions open on its worker, its own master's too.
    #[prost(uint64, tag = "6")]
    pub worker_sessions: u64,
    /// Steps with tensors under way.
    #[prost(uint64, tag = "7")]
    pub steps: u64,
    /// Bytes in large live tensors.
    #[prost(uint64, tag = "8")]
    pub tensor_bytes: u64,
    /// Bytes of freed tensors kept for reuse.
    #[prost(uint64, tag = "9")]
    pub recycled_bytes: u64,
    /// Whether it is stopping.
    #[prost(bool, tag = "10")]
    pub stopping: bool,
    /// What its clock says: microseconds since 1970.
    #[prost(int64, tag = "11")]
    pub clock_micros: i64,
    /// The cluster it was started in, with the port it has bound.
    #[prost(message, optional, tag = "12")]
    pub cluster: Option<ClusterDef>,
    /// Tensors that tasks on the same machine are reading.
    #[prost(uint64, tag = "13")]
    pub lent_tensors: u64,
    /// Bytes that tasks on the same machine were given to read, since the start.
    #[prost(uint64, tag = "14")]
    pub lent_bytes: u64,
    /// Lines to tasks on the same machine.
    #[prost(uint64, tag = "15")]
    pub lines: u64,
}

/// Asks the server to stop.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StopRequest {
    /// How long running steps may go on; unset for the server's own grace period.
    #[prost(double, optional, tag = "1")]
    pub grace_seconds: Option<f64>,
}

/// The server is stopping.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StopResponse {}

/// The state behind the service.
pub(crate) struct Admin {
    pub(crate) token: Option<String>,
    pub(crate) stop: StopOrders,
    pub(crate) started: Instant,
    pub(crate) cluster: ClusterDef,
}

impl Admin {
    pub(crate) fn status(
        &self,
        master: &Master,
        worker: &Worker,
        leases: &Leases,
        lines: usize,
    ) -> StatusResponse {
        let (lent_tensors, lent_bytes) = leases.usage();
        let (worker_sessions, steps) = worker.usage();
        let (live, recycled) = memory_usage();
        StatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            task: worker.env().task.to_string(),
            pid: std::process::id(),
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            sessions: master.session_count() as u64,
            worker_sessions: worker_sessions as u64,
            steps: steps as u64,
            tensor_bytes: live as u64,
            recycled_bytes: recycled as u64,
            stopping: self.stop.is_stopping(),
            clock_micros: clock_micros(),
            cluster: Some(self.cluster.clone()),
            lent_tensors: lent_tensors as u64,
            lent_bytes,
            lines: lines as u64,
        }
    }

    /// Administration needs the token; without one, it must come from this machine.
    pub(crate) fn check(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<()> {
        let given = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        match (&self.token, given) {
            (Some(token), Some(given)) if same(token, given) => Ok(()),
            (Some(_), _) => Err(permission_denied!(
                "stopping this server needs its admin token: give it with --token or TENSORFLEET_ADMIN_TOKEN"
            )),
            (None, _) if peer.ip().to_canonical().is_loopback() => Ok(()),
            (None, _) => Err(permission_denied!(
                "this server has no admin token, so it can only be stopped from its own machine; {} is not",
                peer.ip()
            )),
        }
    }

    pub(crate) fn stop(&self, request: StopRequest) -> Result<StopResponse> {
        let grace = match request.grace_seconds {
            None => None,
            Some(seconds) => Some(
                Duration::try_from_secs_f64(seconds)
                    .map_err(|_| invalid_argument!("a grace of {seconds} seconds is no time"))?,
            ),
        };
        self.stop.stop(grace);
        Ok(StopResponse {})
    }
}

fn clock_micros() -> i64 {
    // A clock before 1970 or after the year 290,000 is not worth more than zero.
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros().try_into().unwrap_or(0))
}

/// Compares in a time that tells nothing about where two texts differ.
fn same(token: &str, given: &str) -> bool {
    token.len() == given.len()
        && token
            .bytes()
            .zip(given.bytes())
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
}
