//! Numeric loops on slices and strides: no tensors, no graphs, no errors. Callers check shapes; loops take a [`par::Par`].

pub mod activation;
pub mod binary;
pub mod broadcast;
pub mod cast;
pub mod conv;
mod disjoint;
pub mod fft;
pub mod gemm;
pub mod linalg;
pub mod map;
pub mod movement;
pub mod norm;
pub mod num;
pub mod optimizer;
pub mod par;
pub mod pool2d;
pub mod pool3d;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod resample;
pub mod segment;
pub mod select;
pub mod softmax;
pub mod special;
pub mod unary;
