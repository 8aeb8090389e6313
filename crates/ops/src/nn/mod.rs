//! Neural network ops: convolutions, pooling, activations, losses, normalisation.

mod activation;
mod avg_pool;
mod batch_norm;
mod batch_norm_grad;
mod bias;
mod block_lstm;
mod clustering;
mod conv;
mod conv2d;
mod conv3d;
pub(crate) mod conv_attrs;
mod conv_gradients;
mod conv_shapes;
mod cross_entropy;
mod ctc_decode;
mod ctc_loss;
mod data_format;
mod depthwise;
mod dilation;
pub(crate) mod ending;
mod fractional;
mod fractional_grad;
mod fused_batch_norm;
mod fused_conv2d;
mod fused_depthwise;
mod fused_pad_conv;
#[cfg(test)]
mod fused_tests;
mod gated;
mod global_norm;
mod gru;
mod in_top_k;
mod instance_norm;
mod l2_loss;
mod leaky_relu;
mod lrn;
mod lstm;
mod max_pool;
mod max_pool_argmax;
mod max_pool_grad;
mod pool;
mod pool3d;
mod softmax;
mod volume;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "nn",
    ops: &[
        &conv::OP,
        &ctc_loss::OP,
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
        &block_lstm::OPS,
        &clustering::OPS,
        &conv2d::OPS,
        &conv3d::OPS,
        &cross_entropy::OPS,
        &ctc_decode::OPS,
        &data_format::OPS,
        &depthwise::OPS,
        &dilation::OPS,
        &fractional::OPS,
        &fractional_grad::OPS,
        &fused_pad_conv::OPS,
        &gated::OPS,
        &global_norm::OPS,
        &gru::OPS,
        &in_top_k::OPS,
        &instance_norm::OPS,
        &leaky_relu::OPS,
        &lrn::OPS,
        &lstm::OPS,
        &max_pool::OPS,
        &max_pool_argmax::OPS,
        &max_pool_grad::OPS,
        &pool3d::OPS,
        &softmax::OPS,
    ],
};
