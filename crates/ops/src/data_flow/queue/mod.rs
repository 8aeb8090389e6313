//! Queues: tuples of tensors that one step puts in and another takes out.
//!
//! Enqueues wait for room and dequeues for elements without holding a thread. Every op exists twice: by
//! resource handle, and in the older form by reference to a container and a name. A barrier puts tuples together before they
//! go into a queue.

mod barrier;
pub(crate) mod barrier_ops;
mod batch;
pub(crate) mod close;
pub(crate) mod create;
pub(crate) mod dequeue;
pub(crate) mod enqueue;
mod spec;
mod store;
mod waiting;

pub(crate) use batch::corner;
pub(crate) use waiting::Queue;

use tensorfleet_graph::{Exactness, Gradient, OpDef};

/// What ops on queues by handle have in common.
const BY_HANDLE: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("what goes through a queue is cut off from where it came"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// What ops on queues by reference have in common.
const BY_REF: OpDef = OpDef {
    stateful: false,
    ..BY_HANDLE
};
