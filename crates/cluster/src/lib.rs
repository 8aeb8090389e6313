//! A cluster's parts without its sockets: who is in it, and what masters and workers do.
//!
//! [`Master`] opens sessions, prepares signatures and coordinates steps; [`Worker`] runs its task's
//! parts. They call each other through [`WorkerApi`] and find each other through [`Peers`], which the
//! `rpc` crate implements with gRPC and tests with whatever they like.

mod api;
mod cancelled;
pub mod ids;
mod master;
mod recent;
mod server_def;
mod spec;
mod task;
mod tf_config;
mod worker;

pub use api::{Answer, Peers, WorkerApi};
pub use master::{Master, MasterOptions};
pub use server_def::ServerSpec;
pub use spec::{ClusterSpec, Tasks, split_address};
pub use task::TaskName;
pub use tf_config::{TaskId, TfConfig};
pub use worker::{Worker, WorkerEnv};
