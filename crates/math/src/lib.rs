//! Numeric loops on slices and strides: no tensors, no graphs, no errors. Callers check shapes; loops take a [`par::Par`].
mod disjoint;

pub mod binary;
pub mod broadcast;
pub mod conv;
pub mod gemm;
pub mod movement;
pub mod num;
pub mod optimizer;
pub mod par;
pub mod random;
pub mod reduce;
pub mod segment;
pub mod unary;
