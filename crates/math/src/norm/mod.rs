//! Batch normalisation and local response normalisation, with gradients.
//!
//! [`Layout`] makes one loop serve both data formats: [`Layout::nhwc`] and [`Layout::nchw`]. Data are `f16`, `bf16` or `f32`,
//! statistics `f32`, as in TensorFlow.
//!
//! | ops | call |
//! |---|---|
//! | FusedBatchNorm(V2, V3), training | [`batch_norm_train`] |
//! | FusedBatchNorm(V2, V3), inference | [`batch_norm_infer`] |
//! | FusedBatchNormGrad(V2, V3), both | [`batch_norm_grad`] |
//! | LRN, LRNGrad | [`lrn`], [`lrn_grad`] with [`Lrn`] |
//!
//! Sums are taken over blocks of fixed size, so results do not depend on the number of threads.

mod batch;
mod element;
mod local;
mod sums;
#[cfg(test)]
mod tests;

pub use batch::{
    BatchNorm, BatchNormGrad, Running, Statistics, batch_norm_grad, batch_norm_infer,
    batch_norm_train,
};
pub use element::NormElement;
pub use local::{Lrn, lrn, lrn_grad};
pub use sums::Layout;
