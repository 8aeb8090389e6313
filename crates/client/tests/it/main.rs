//! Graphs built with handles, run in this process and on servers.

mod builders;
mod building;
mod flow;
mod flow_gradients;
mod models;
mod tensorflow;
mod training;
