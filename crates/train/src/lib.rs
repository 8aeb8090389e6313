//! Training: what stands between a graph and a trained model.

mod global_step;

pub use global_step::{create_global_step, get_global_step, get_or_create_global_step};
