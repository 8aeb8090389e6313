//! What every TCP connection is set to.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// A machine that vanished is noticed after a minute of silence and four questions, 15 s apart. The
/// system answers for a program that is paused, so a client that is being debugged is not taken for gone.
const IDLE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_secs(15);
const RETRIES: u32 = 4;

/// Sends small messages at once and notices when the other machine vanishes.
pub(super) fn tune(stream: &TcpStream) {
    // These fail only on sockets that are closed already.
    let _ = stream.set_nodelay(true);
    let keepalive = TcpKeepalive::new()
        .with_time(IDLE)
        .with_interval(INTERVAL)
        .with_retries(RETRIES);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}
