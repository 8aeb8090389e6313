//! A typed builder for every op.
//!
//! A function takes the op's inputs and those attributes that have neither a default nor follow from the
//! inputs; ops without inputs take the graph first. What it returns has a method for every attribute with
//! a default, and ends in `output()` for ops with one output, `outputs()` for ops with several (a struct
//! with their names, or a vector), or `build()` for the node itself.
//!
//! ```
//! use tensorfleet_client::{DType, Graph, Session, ops};
//!
//! let g = Graph::new();
//! let a = g.constant([[1.0f32, 4.0, 2.0]]);
//! let product = ops::mat_mul(&a, &a).transpose_b(true).name("product").output();
//! let top = ops::top_k_v2(&a, g.constant(2i32)).outputs();
//! let noise = ops::random_uniform(g.constant([2i32, 3]), DType::F32).seed(7).output();
//!
//! let (product, indices, _) = Session::new(&g)?.run((&product, &top.indices, &noise))?;
//! assert_eq!(product.slice::<f32>()?, [21.0]);
//! assert_eq!(indices.slice::<i32>()?, [1, 2]);
//! # Ok::<(), tensorfleet_client::Status>(())
//! ```
//!
//! The files beside this one are written by `cargo xtask codegen` from the registry, one for each family
//! of ops. Ops that only the runtime itself makes (their names begin with `_`) are left out.

#[macro_use]
mod builder;

mod array;
mod call;
mod control_flow;
mod data_flow;
mod dataset;
mod image;
mod io;
mod linalg;
mod logging;
mod lookup;
mod math;
mod nn;
mod ragged;
mod random;
mod signal;

mod sparse;
mod state;
mod string;
mod summary;
mod training;

pub use array::*;
pub use call::*;
pub use control_flow::*;
pub use data_flow::*;
pub use dataset::*;
pub use image::*;
pub use io::*;
pub use linalg::*;
pub use logging::*;
pub use lookup::*;
pub use math::*;
pub use nn::*;
pub use ragged::*;
pub use random::*;
pub use signal::*;
pub use sparse::*;
pub use state::*;
pub use string::*;
pub use summary::*;
pub use training::*;
