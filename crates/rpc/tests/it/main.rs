//! Servers in this process, driven by our own client; the same checks drive TensorFlow's server.

mod cluster;
mod common;
mod direct;
mod disconnect;
mod hostile;
mod lifecycle;
mod local;
mod many;
mod stop;
mod tensorflow;
mod tidiness;
mod worker;
mod worker_partial;
