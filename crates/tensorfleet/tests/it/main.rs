//! The examples run: alone, on TensorFlow's servers, and while tasks are killed.

mod alone;
#[path = "../../examples/data/mod.rs"]
mod data;
mod gradients;
mod lost_tasks;
mod program;
mod tasks;
mod tensorflow;
