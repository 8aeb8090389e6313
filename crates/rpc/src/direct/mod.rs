//! Direct transfers: a task reads a large tensor out of the memory of another task on its machine.
//!
//! Over loopback every byte is copied into the kernel, out of it, and once more into the tensor. Here
//! one system call copies it once, as fast as memcpy, between memory that both tasks have anyway:
//! nothing is set up before and nothing is left behind by a task that dies.
//!
//! ```text
//! receiver ── RecvTensor {transport_options: Offer} ──────> sender
//!          <─ {no content, require_ack, Location} ───────── keeps the tensor: a lease
//!             reads content and proof (process_vm_readv)
//!          ── MarkRecvFinished ───────────────────────────> the lease ends
//! ```
//!
//! If the memory cannot be read, the receiver asks again under the same request id without an offer,
//! gets the content in the message, and makes this sender no more offers. TensorFlow's servers ignore
//! offers. A lease also ends with its step and after [`LEASE_TIME`](leases::LEASE_TIME).
//!
//! | file | what |
//! |---|---|
//! | `leases` | the sender's side: tensors that are being read |
//! | `reader` | the receiver's side |

mod leases;
mod reader;

use std::sync::OnceLock;

use prost::Message;
use tensorfleet_proto::RecvTensorResponse;
use tensorfleet_proto::google::protobuf::Any;

pub(crate) use leases::Leases;
pub(crate) use reader::Reader;

/// Smaller tensors are sent faster than two calls are made.
const DIRECT_FROM: usize = 128 << 10;

const OFFER: &str = "tensorfleet.Offer";
const LOCATION: &str = "tensorfleet.Location";

/// The receiver could read the sender's memory, if both are on the same machine.
#[derive(Clone, PartialEq, Message)]
struct Offer {
    /// The receiver's [`host`].
    #[prost(string, tag = "1")]
    host: String,
}

/// Where the bytes of a tensor are.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Location {
    /// The sender.
    #[prost(uint32, tag = "1")]
    pid: u32,
    /// Where the content begins.
    #[prost(fixed64, tag = "2")]
    address: u64,
    /// How long it is.
    #[prost(uint64, tag = "3")]
    len: u64,
    /// Where the request's id stands for as long as the content stays as it is.
    #[prost(fixed64, tag = "4")]
    proof: u64,
}

impl Location {
    /// Where the tensor of an answer is, if the answer does not bring it.
    pub(crate) fn of(answer: &RecvTensorResponse) -> Option<Location> {
        unpack(LOCATION, answer.transport_options.as_ref())
    }
}

fn pack(type_url: &str, message: &impl Message) -> Any {
    Any {
        type_url: type_url.to_owned(),
        value: message.encode_to_vec().into(),
    }
}

fn unpack<M: Message + Default>(type_url: &str, any: Option<&Any>) -> Option<M> {
    let any = any.filter(|any| any.type_url == type_url)?;
    M::decode(any.value.as_ref()).ok()
}

/// What processes that can name each other by pid have in common; `None` if that cannot be told.
pub(crate) fn host() -> Option<&'static str> {
    static HOST: OnceLock<String> = OnceLock::new();
    let find = || {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let pids = std::fs::read_link("/proc/self/ns/pid").ok()?;
        Some(format!("{} {}", boot.trim(), pids.display()))
    };
    if let Some(host) = HOST.get() {
        return Some(host);
    }
    // It may fail for want of file descriptors: then it is tried again.
    let found = find()?;
    Some(HOST.get_or_init(|| found))
}
