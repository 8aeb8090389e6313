//! Two-dimensional pooling over NHWC arrays.
//!
//! A [`Pool2d`] says how windows lie on the input; paddings and output sizes are worked out by the caller (SAME, VALID or
//! explicit alike). Windows are clipped to the input: padding takes no part in a maximum, nor in the count of an average.
//!
//! | ops | call |
//! |---|---|
//! | MaxPool(V2) | [`max_pool`] |
//! | MaxPoolWithArgmax, MaxPoolGradWithArgmax | [`max_pool_with_argmax`], [`max_pool_grad_with_argmax`] |
//! | MaxPoolGrad(V2), MaxPoolGradGrad(V2) | [`max_pool_grad`], [`max_pool_grad_grad`] |
//! | AvgPool, AvgPoolGrad | [`avg_pool`], [`avg_pool_grad`] |
//!
//! TensorFlow's CPU kernels take NHWC only; for NCHW transpose with [`crate::movement`].

mod argmax;
mod avg;
mod geometry;
mod max;
mod max_grad;
mod max_grad_grad;
#[cfg(test)]
mod tests;

pub use argmax::{max_pool_grad_with_argmax, max_pool_with_argmax};
pub use avg::{avg_pool, avg_pool_grad};
pub use geometry::Pool2d;
pub use max::{PoolElement, max_pool};
pub use max_grad::max_pool_grad;
pub use max_grad_grad::max_pool_grad_grad;
