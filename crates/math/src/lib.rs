//! Numeric loops on slices and strides: no tensors, no graphs, no errors. Callers check shapes; loops take a [`par::Par`].

pub mod conv;
mod disjoint;
pub mod gemm;
pub mod movement;
pub mod par;
pub mod random;
mod vectorize;
