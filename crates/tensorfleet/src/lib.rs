//! Distributed TensorFlow in Rust: the crate that programs use.
//!
//! A *cluster* has *jobs* (`ps`, `worker`, `chief`, …), a job has *tasks*, each task is one [`Server`]. A program
//! builds a [`Graph`], says where its parts run, opens a [`Session`] on any server and runs steps:
//!
//! ```
//! use tensorfleet::train::{GradientDescent, Optimizer};
//! use tensorfleet::{DType, Graph, Server, Session, init};
//!
//! let server = Server::create_local(Default::default())?;
//!
//! let g = Graph::new();
//! let x = g.placeholder(DType::F32, &[-1, 1]);
//! let y = g.placeholder(DType::F32, &[-1, 1]);
//! let w = g.variable("w", &[1, 1]).initializer(init::zeros()).build();
//! let loss = (x.matmul(&w) - &y).square().mean(&[]);
//! let step = GradientDescent::new(0.1).minimize(&loss)?;
//!
//! let session = Session::connect(&g, server.target())?;
//! session.run(&g.global_variables_initializer())?;
//! let (xs, ys) = (tensorfleet::tensor([[1.0f32], [2.0]])?, tensorfleet::tensor([[3.0f32], [6.0]])?);
//! for _ in 0..50 {
//!     session.run_fed(&[(&x, xs.clone()), (&y, ys.clone())], &step)?;
//! }
//! assert!((session.run(&w)?.to_scalar::<f32>()? - 3.0).abs() < 1e-3);
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
//! The programs in `examples/` are the twins of what people write in distributed TensorFlow; each runs alone
//! (`cargo run --example trainer`) and says in its first lines how it runs on a cluster:
//!
//! | example | shows |
//! |---|---|
//! | `hello`, `any_server`, `pin_ops` | a server, sessions on many servers, ops on tasks of one's choice |
//! | `trainer` | parameter servers and workers in one binary, checkpoints, recovery |
//! | `sync_trainer` | workers that step together, with backup workers |
//! | `towers` | one model on several devices of a task |
//! | `embeddings`, `wide_and_deep`, `lstm` | partitioned tables, two optimizers, a loop with gradients |
//! | `dataset` | an input pipeline from CSV or TFRecord files |
//! | `restore_tensorflow`, `drive_tensorflow` | going on from TensorFlow's checkpoint, training on its server |

pub mod flags;
#[cfg(any(test, doctest))]
mod guide;

pub use tensorfleet_client::*;
pub use tensorfleet_cluster::{ClusterSpec, ServerSpec};
pub use tensorfleet_input as input;
pub use tensorfleet_proto as proto;
pub use tensorfleet_rpc::{LocalCluster, Server, ServerOptions};
pub use tensorfleet_tensor::{Bytes, TString};
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
