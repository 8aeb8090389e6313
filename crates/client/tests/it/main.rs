//! Graphs built with handles, run in this process and on servers.

mod builders;
mod building;
mod flow;
mod flow_gradients;
mod flow_models;
mod models;
mod tensorflow;
mod tensorflow_graphs;
mod training;
