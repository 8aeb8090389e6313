//! `_FusedDepthwiseConv2dNative`: a convolution of every channel by itself, a bias for each, and a function of the sum.
//!
//! TensorFlow: _FusedDepthwiseConv2dNative(input: T, filter: T, args: num_args * T) -> output: T with attrs fused_ops (BiasAdd,
//! then perhaps one of Relu, Relu6, Elu, _FusedHardSwish). Made by graph optimisation where TensorFlow uses oneDNN. Elsewhere
//! its kernel computes nothing, and examples would have nothing to agree with: `fused_tests.rs` shows what it does.

use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::{DType, bf16, f16};

use super::conv_attrs::WindowAttrs;
use super::ending::{First, Fused, unsupported};
use super::{conv_shapes, depthwise, fused_conv2d};

pub(crate) static OP: OpDef = OpDef {
    name: "_FusedDepthwiseConv2dNative",
    inputs: &["input: T", "filter: T", "args: num_args * T"],
    outputs: &["output: T"],
    attrs: &[
        "T: {half, bfloat16, float, double}",
        "num_args: int >= 0",
        "strides: list(int)",
        "padding: {'SAME', 'VALID'}",
        "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
        "dilations: list(int) = [1, 1, 1, 1]",
        "fused_ops: list(string) = []",
        "epsilon: float = 0.0001",
        "leakyrelu_alpha: float = 0.2",
    ],
    infer: conv_shapes::convolved_by_channel,
    gradient: Gradient::None("made by graph optimisation, after differentiation"),
    kernels: &[cpu(&[("T", &[DType::F16, DType::BF16, DType::F32])], build)],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(2e-5),
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = WindowAttrs::new(node)?;
    let fused = Fused::new(node)?;
    if fused.first != First::Bias {
        return Err(unsupported(node));
    }
    macro_rules! convolve {
        ($ty:ty) => {
            AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
                let (input, filter) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
                let conv = depthwise::geometry(&attrs, input, filter)?;
                let out = fused_conv2d::with_bias::<$ty>(ctx, &conv, &fused)?;
                ctx.set(0, out);
                Ok(())
            })
        };
    }
    match node.attrs.dtype("T")? {
        DType::F32 => convolve!(f32),
        DType::F16 => convolve!(f16),
        DType::BF16 => convolve!(bf16),
        other => Err(internal!("no fused convolution of {other}")),
    }
}
