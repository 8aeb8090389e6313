//! One server: resolve its name, connect, hear what it speaks, ask who it is.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tensorfleet_cluster::{ClusterSpec, TaskName, split_address};
use tensorfleet_proto::GetStatusRequest;
use tensorfleet_rpc::MasterClient;
use tensorfleet_rpc::admin::{StatusRequest, StatusResponse};
use tensorfleet_rpc::grpc::{CallOptions, Limits};
use tensorfleet_status::{Code, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// How an HTTP/2 client begins: the preface and empty settings. Every gRPC server answers with settings.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Where a frame has its type, and the type of settings.
const FRAME_TYPE: usize = 3;
const SETTINGS: u8 = 4;

/// Calls that are timed; the fastest counts.
const SAMPLES: usize = 3;

/// What was found out about a server. What is not known is empty.
#[derive(Default)]
pub(super) struct Examined {
    pub(super) resolved: Vec<SocketAddr>,
    /// Why the examination ended early.
    pub(super) failure: Option<Failure>,
    pub(super) client: Option<MasterClient>,
    pub(super) devices: Vec<String>,
    /// Who answered, by its devices.
    pub(super) task: Option<TaskName>,
    /// What a TensorFleet server says; others say no more than their devices.
    pub(super) status: Option<StatusResponse>,
    pub(super) round_trip: Option<Duration>,
    /// Seconds that its clock is ahead of ours.
    pub(super) skew: Option<f64>,
}

/// How far it got.
#[derive(Debug, PartialEq)]
pub(super) enum Failure {
    NoSuchName(String),
    Refused,
    /// No connection, and not refused either.
    Unreachable(String),
    /// It takes connections and says nothing.
    Silent,
    /// It speaks something else.
    Foreign(&'static str),
    /// It speaks gRPC but does not answer as TensorFlow's servers do.
    NoAnswer(Status),
}

impl Examined {
    /// The cluster it believes to be in.
    pub(super) fn cluster(&self) -> Option<ClusterSpec> {
        let def = self.status.as_ref()?.cluster.as_ref()?;
        ClusterSpec::from_cluster_def(def).ok()
    }

    /// Whether it is at one of these addresses.
    pub(super) fn is_at(&self, addresses: &[SocketAddr]) -> bool {
        self.resolved.iter().any(|own| addresses.contains(own))
    }

    /// Times some calls, and compares clocks.
    pub(super) async fn measure(&mut self, limit: Duration) {
        let Some(client) = &self.client else {
            return;
        };
        for _ in 0..SAMPLES {
            let (begin, sent) = (Instant::now(), now());
            let clock = if self.status.is_some() {
                let answer = client.admin_status(&StatusRequest {}, &call(limit)).await;
                answer.ok().map(|status| status.clock_micros as f64 / 1e6)
            } else {
                let answer = client.get_status(&GetStatusRequest {}, &call(limit)).await;
                answer.ok().map(|_| 0.0)
            };
            let Some(clock) = clock else {
                return;
            };
            let elapsed = begin.elapsed();
            if self.round_trip.is_none_or(|best| elapsed < best) {
                self.round_trip = Some(elapsed);
                let there = sent + elapsed.as_secs_f64() / 2.0;
                self.skew = (clock > 0.0).then_some(clock - there);
            }
        }
    }
}

pub(super) fn call(limit: Duration) -> CallOptions {
    CallOptions {
        deadline: Instant::now().checked_add(limit),
        wait_for_ready: false,
    }
}

fn now() -> f64 {
    // Before 1970 all clocks are equally wrong.
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

pub(super) async fn examine(address: &str, limit: Duration) -> Examined {
    let mut examined = Examined::default();
    if let Err(failure) = ask(address, limit, &mut examined).await {
        examined.failure = Some(failure);
    }
    examined
}

async fn ask(address: &str, limit: Duration, examined: &mut Examined) -> Result<(), Failure> {
    examined.resolved = resolve(address, limit).await?;
    let stream = connect(&examined.resolved, limit).await?;
    listen(stream, limit).await?;
    let client = MasterClient::new(address, Limits::default(), None).map_err(Failure::NoAnswer)?;
    let worker = client.get_status(&GetStatusRequest {}, &call(limit)).await;
    let worker = worker.map_err(Failure::NoAnswer)?;
    let names = worker.device_attributes.into_iter();
    examined.devices = names.map(|device| device.name).collect();
    let first = examined.devices.first();
    examined.task = first.and_then(|device| TaskName::of_device(device));
    examined.status = match client.admin_status(&StatusRequest {}, &call(limit)).await {
        Ok(status) => Some(status),
        Err(error) if error.code() == Code::Unimplemented => None,
        Err(error) => return Err(Failure::NoAnswer(error)),
    };
    examined.client = Some(client);
    Ok(())
}

/// All addresses of a name.
pub(super) async fn resolve(address: &str, limit: Duration) -> Result<Vec<SocketAddr>, Failure> {
    // An empty host is this machine, for servers as well.
    let address = match split_address(address) {
        Ok(("", port)) => format!("localhost:{port}"),
        _ => address.to_owned(),
    };
    let found = match timeout(limit, tokio::net::lookup_host(&address)).await {
        Ok(Ok(found)) => found.collect::<Vec<_>>(),
        Ok(Err(error)) => return Err(Failure::NoSuchName(error.to_string())),
        Err(_) => return Err(Failure::NoSuchName(format!("no answer within {limit:?}"))),
    };
    match found.is_empty() {
        true => Err(Failure::NoSuchName("the name has no address".to_owned())),
        false => Ok(found),
    }
}

async fn connect(addresses: &[SocketAddr], limit: Duration) -> Result<TcpStream, Failure> {
    match timeout(limit, TcpStream::connect(addresses)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => Err(Failure::Refused),
        Ok(Err(error)) => Err(Failure::Unreachable(error.to_string())),
        Err(_) => Err(Failure::Unreachable(format!("no answer within {limit:?}"))),
    }
}

/// Whether the machine is there and nobody listens.
pub(in crate::commands) async fn refuses(address: &str, limit: Duration) -> bool {
    let Ok(addresses) = resolve(address, limit).await else {
        return false;
    };
    matches!(connect(&addresses, limit).await, Err(Failure::Refused))
}

/// Says hello as HTTP/2 does and hears what comes back.
async fn listen(mut stream: TcpStream, limit: Duration) -> Result<(), Failure> {
    let mut answer = [0; 16];
    let exchange = async {
        stream.write_all(HELLO).await?;
        let mut length = 0;
        // The end of the connection, or enough to tell.
        while length <= FRAME_TYPE {
            match stream
                .read(answer.get_mut(length..).unwrap_or_default())
                .await?
            {
                0 => break,
                more => length += more,
            }
        }
        std::io::Result::Ok(length)
    };
    match timeout(limit, exchange).await {
        Err(_) => Err(Failure::Silent),
        Ok(Err(error)) => Err(Failure::Unreachable(error.to_string())),
        Ok(Ok(length)) => match answer.get(..length).unwrap_or_default() {
            [] => Err(Failure::Foreign("hangs up")),
            [b'H', b'T', b'T', b'P', ..] => Err(Failure::Foreign("speaks HTTP/1")),
            [b'S', b'S', b'H', b'-', ..] => Err(Failure::Foreign("speaks SSH")),
            // An alert or a handshake.
            [0x15 | 0x16, 3, ..] => Err(Failure::Foreign("wants TLS")),
            heard if heard.get(FRAME_TYPE) == Some(&SETTINGS) => Ok(()),
            _ => Err(Failure::Foreign("speaks no HTTP/2")),
        },
    }
}
