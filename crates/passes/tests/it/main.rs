//! Partitioned graphs compute what whole ones compute.

mod harness;
mod programs;
mod properties;
mod shapes;
mod speed;
