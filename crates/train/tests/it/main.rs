//! Training sessions on clusters of real servers, in one process; and comparisons with TensorFlow.

mod as_one;
mod bad_input;
mod cluster;
mod hooks;
mod optimizers;
mod recovery;
mod sync_recovery;
mod sync_replicas;
mod tensorflow;
