//! A cluster's parts without its sockets: who is in it, and what masters and workers do.

mod server_def;
mod spec;
mod tf_config;

pub use server_def::ServerSpec;
pub use spec::{ClusterSpec, Tasks, split_address};
pub use tf_config::{TaskId, TfConfig};
