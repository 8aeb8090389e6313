//! Graphs built with handles, run in this process and on servers.

mod building;
mod training;
