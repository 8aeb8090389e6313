//! Connecting: a name, a socket, and a peer that speaks HTTP/2, or the reason why not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use h2::{Ping, PingPong};
use tokio::net::TcpStream;

use super::Limits;
use super::cork::Cork;
use super::progress::{Progress, Traffic};
use super::socket::tune;

/// A host that says nothing for so long is taken for gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection whose other end has spoken.
pub(super) struct Connected {
    pub(super) sender: SendRequest<Bytes>,
    /// Must be driven.
    pub(super) connection: Connection<Progress<Cork<TcpStream>>, Bytes>,
    /// `None` only if somebody took it before.
    pub(super) ping: Option<PingPong>,
    pub(super) traffic: Arc<Traffic>,
    /// Whether the other end is on this machine.
    pub(super) same_host: bool,
}

/// Connects to `host:port`, or says why it cannot. `patience` is how long its silence is borne otherwise.
pub(super) async fn connect(
    address: &str,
    limits: &Limits,
    patience: Option<Duration>,
) -> Result<Connected, String> {
    let most = patience.unwrap_or(CONNECT_TIMEOUT).min(CONNECT_TIMEOUT);
    let connected = tokio::time::timeout(most, try_connect(address, limits));
    let connected = connected
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {most:?}")));
    connected.map_err(|reason| format!("{address}: {reason}"))
}

async fn try_connect(address: &str, limits: &Limits) -> Result<Connected, String> {
    let resolved = tokio::net::lookup_host(address).await;
    let resolved: Vec<SocketAddr> = resolved
        .map_err(|error| format!("the name cannot be resolved: {error}"))?
        .collect();
    let stream = TcpStream::connect(resolved.as_slice())
        .await
        .map_err(|error| error.to_string())?;
    tune(&stream);
    let same_host = match (stream.local_addr(), stream.peer_addr()) {
        (Ok(ours), Ok(theirs)) => ours.ip() == theirs.ip(),
        _ => false,
    };
    let (stream, traffic) = Progress::new(Cork::new(stream));
    let (sender, mut connection) = h2::client::Builder::new()
        .initial_window_size(limits.stream_window)
        .initial_connection_window_size(limits.connection_window)
        .max_frame_size(limits.max_frame_bytes)
        .enable_push(false)
        .handshake::<_, Bytes>(stream)
        .await
        .map_err(|error| error.to_string())?;
    let mut ping = connection.ping_pong();
    if let Some(ping) = &mut ping {
        // Whether it speaks HTTP/2 is only known by an answer.
        tokio::select! {
            biased;
            ended = &mut connection => return Err(match ended {
                Err(error) if traffic.read() > 0 => {
                    format!("it is no gRPC server: it does not speak HTTP/2 ({error})")
                }
                _ => "the connection was closed before a call was made".to_owned(),
            }),
            pong = ping.ping(Ping::opaque()) => {
                pong.map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(Connected {
        sender,
        connection,
        ping,
        traffic,
        same_host,
    })
}
