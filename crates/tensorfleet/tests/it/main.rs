//! The examples run: alone, on TensorFlow's servers, and while tasks are killed.

mod alone;
mod lost_tasks;
mod program;
mod tensorflow;
