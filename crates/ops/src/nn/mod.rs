//! Neural network ops: convolutions, pooling, activations, losses, normalisation.

mod activation;
mod avg_pool;
mod batch_norm;
mod batch_norm_grad;
mod bias;
mod conv2d;
mod conv_attrs;
mod conv_gradients;
mod conv_shapes;
mod cross_entropy;
mod data_format;
mod depthwise;
pub(crate) mod ending;
mod fused_batch_norm;
mod fused_conv2d;
mod fused_depthwise;
#[cfg(test)]
mod fused_tests;
mod gated;
mod in_top_k;
mod instance_norm;
mod l2_loss;
mod leaky_relu;
mod max_pool;
mod max_pool_grad;
mod pool;
mod softmax;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "nn",
    ops: &[
        &fused_batch_norm::OP,
        &fused_conv2d::OP,
        &fused_depthwise::OP,
        &l2_loss::OP,
    ],
    tables: &[
        &activation::OPS,
        &avg_pool::OPS,
        &batch_norm::OPS,
        &bias::OPS,
        &conv2d::OPS,
        &cross_entropy::OPS,
        &data_format::OPS,
        &depthwise::OPS,
        &gated::OPS,
        &in_top_k::OPS,
        &instance_norm::OPS,
        &leaky_relu::OPS,
        &max_pool::OPS,
        &max_pool_grad::OPS,
        &softmax::OPS,
    ],
};
