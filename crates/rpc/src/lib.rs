//! gRPC servers and clients for masters and workers. The only crate that knows gRPC.

pub mod admin;
mod direct;
pub mod grpc;
mod idle;
mod lanes;
mod line;
mod listen;
mod local_cluster;
mod master_client;
mod peers;
mod remote;
mod server;
mod services;
mod session;
mod stop;

pub use local_cluster::{LocalCluster, free_ports};
pub use master_client::MasterClient;
pub use server::{Server, ServerOptions};
pub use session::{Callable, ConnectOptions, PartialRun, Session};
