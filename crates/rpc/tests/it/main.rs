//! Servers in this process, driven by our own client; the same checks drive TensorFlow's server.

mod awaited;
mod cluster;
mod common;
mod direct;
mod disconnect;
mod discovery;
mod handles;
mod hostile;
mod lifecycle;
mod line;
mod local;
mod lost_peers;
mod many;
mod proxy;
mod remote_call;
mod stop;
mod tensorflow;
mod tidiness;
mod worker;
mod worker_partial;
