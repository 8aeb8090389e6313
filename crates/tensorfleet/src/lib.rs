//! Distributed TensorFlow in Rust: the crate that programs use.
//!
//! A *cluster* has *jobs* (`ps`, `worker`, `chief`, …), a job has *tasks*, each task is one [`Server`]. A program
//! builds a [`Graph`], says where its parts run, opens a [`Session`] on any server and runs steps:
//!
//! ```
//! use tensorfleet::{Graph, LocalCluster, Session, init};
//!
//! let cluster = LocalCluster::start(&[("ps", 1), ("worker", 1)])?;
//! let g = Graph::new();
//! let w = g.device("/job:ps/task:0").run(|| g.variable("w", &[2]).initializer(init::ones()).build());
//! let sum = g.device("/job:worker").run(|| (&w + &w).sum(&[]));
//!
//! let session = Session::connect(&g, cluster.target("worker", 0)?)?;
//! session.run(&g.global_variables_initializer())?;
//! assert_eq!(session.run(&sum)?.to_scalar::<f32>()?, 4.0);
//! # Ok::<(), tensorfleet::Status>(())
//! ```
//!
//! | what | where |
//! |---|---|
//! | graphs, tensors, variables, gradients, control flow, sessions | here |
//! | a typed builder for every op | [`ops`] |
//! | initial values | [`init`] |
//! | optimizers, savers, hooks, monitored sessions | [`train`] |
//! | datasets | [`input`] |
//! | clusters and servers | [`ClusterSpec`], [`Server`] |
//! | one binary on all machines: `--ps_hosts`, `--worker_hosts`, `--job_name`, `--task_index`, `TF_CONFIG` | [`flags`] |
//! | TensorFlow's messages | [`proto`] |
//!
//! The programs in `examples/` are the twins of what people write in distributed TensorFlow.

pub mod flags;
#[cfg(any(test, doctest))]
mod guide;

pub use tensorfleet_client::*;
pub use tensorfleet_cluster::{ClusterSpec, ServerSpec};
pub use tensorfleet_input as input;
pub use tensorfleet_proto as proto;
pub use tensorfleet_rpc::{LocalCluster, Server, ServerOptions};
pub use tensorfleet_tensor::Bytes;
pub use tensorfleet_train as train;

/// The tensor of a number, an array, a nested array, a slice, a vector or a text.
///
/// ```
/// let t = tensorfleet::tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
/// assert_eq!(t.shape().dims(), [2, 2]);
/// # Ok::<(), tensorfleet::Status>(())
/// ```
pub fn tensor(value: impl IntoTensor) -> Result<Tensor> {
    value.into_tensor()
}
