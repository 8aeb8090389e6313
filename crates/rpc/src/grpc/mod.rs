//! Unary gRPC straight on HTTP/2: framing, statuses, deadlines, a server loop and a client channel.
//!
//! A message is encoded into [`Segments`](tensorfleet_tensor::Segments) and decoded from [`Frames`], so
//! tensors are neither copied into a message on their way out nor joined before they are parsed.
//!
//! | file | what |
//! |---|---|
//! | `client`, `connect`, `keepalive` | a channel: its calls, its connection, whether the peer is still there |
//! | `server` | accepts connections and answers calls |
//! | `message`, `frames` | a message's bytes |
//! | `status`, `timeout` | what headers and trailers say |
//! | `socket`, `cork`, `progress` | the TCP connection below |

mod client;
mod connect;
mod cork;
mod frames;
mod gather;
mod keepalive;
pub(crate) mod message;
mod progress;
mod server;
mod socket;
pub(crate) mod status;
mod timeout;

pub use client::{CallOptions, Channel};
pub(crate) use cork::Burst;
pub use frames::Frames;
pub use keepalive::KeepAlive;
pub(crate) use keepalive::silent;
pub use message::encode;
pub(crate) use server::guarded;
pub use server::{Call, Service, serve};

/// Tuning of connections; both ends use the same.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest message sent or received.
    pub max_message_bytes: usize,
    /// How much of one call may be under way before the receiver has taken it.
    pub stream_window: u32,
    /// The same for all calls of a connection together.
    pub connection_window: u32,
    /// The largest HTTP/2 frame we take.
    pub max_frame_bytes: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_message_bytes: i32::MAX as usize,
            stream_window: 16 << 20,
            connection_window: 64 << 20,
            max_frame_bytes: 256 << 10,
        }
    }
}

/// What every gRPC request and answer carries.
const CONTENT_TYPE: &str = "application/grpc";
