//! Neural network ops: convolutions, pooling, activations, losses, normalisation.

mod activation;
mod batch_norm;
mod bias;
mod conv2d;
mod conv_attrs;
mod conv_shapes;
mod cross_entropy;
mod data_format;
mod depthwise;
pub(crate) mod ending;
mod fused_conv2d;
mod in_top_k;
mod l2_loss;
mod leaky_relu;
mod pool;
mod softmax;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "nn",
    ops: &[&fused_conv2d::OP, &l2_loss::OP],
    tables: &[
        &activation::OPS,
        &batch_norm::OPS,
        &bias::OPS,
        &conv2d::OPS,
        &cross_entropy::OPS,
        &data_format::OPS,
        &depthwise::OPS,
        &in_top_k::OPS,
        &leaky_relu::OPS,
        &pool::OPS,
        &softmax::OPS,
    ],
};
