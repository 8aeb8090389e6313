//! Training sessions on clusters of real servers, in one process.

mod bad_input;
mod cluster;
mod hooks;
mod recovery;
