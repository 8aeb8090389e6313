//! Distributed TensorFlow in Rust: the crate that programs use.
//!
//! | module | is |
//! |---|---|
//! | [`flags`] | one binary on all machines: `--ps_hosts`, `--worker_hosts`, `--job_name`, `--task_index`, `TF_CONFIG` |

pub mod flags;
