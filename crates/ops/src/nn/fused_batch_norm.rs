//! `_FusedBatchNormEx`: a batch normalisation and a function of it.
//!
//! TensorFlow: _FusedBatchNormEx(x: T, scale: U, offset: U, mean: U, variance: U, side_input: num_side_inputs * T) -> the outputs
//! of FusedBatchNormV3, with activation_mode Identity or Relu. Made by graph optimisation where TensorFlow uses oneDNN, and
//! on GPUs, which alone take side inputs. Elsewhere its kernel computes nothing: `fused_tests.rs` shows what it does.

use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, unimplemented};

use super::batch_norm::{F32, NORM, TYPES, V3_OUTPUTS, build_then};
use super::ending::{Ending, Function};

pub(crate) static OP: OpDef = OpDef {
    name: "_FusedBatchNormEx",
    inputs: &[
        "x: T",
        "scale: U",
        "offset: U",
        "mean: U",
        "variance: U",
        "side_input: num_side_inputs * T",
    ],
    outputs: V3_OUTPUTS,
    attrs: &[
        "T: {half, float, bfloat16}",
        "U: {float}",
        "epsilon: float = 0.0001",
        "exponential_avg_factor: float = 1.0",
        "num_side_inputs: int >= 0 = 0",
        "activation_mode: string = 'Identity'",
        "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
        "is_training: bool = true",
    ],
    gradient: Gradient::None("made by graph optimisation, after differentiation"),
    kernels: &[cpu(&[("T", TYPES), ("U", F32)], build)],
    ..NORM
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let sides = node.attrs.int("num_side_inputs")?;
    if sides != 0 {
        return Err(unimplemented!(
            "_FusedBatchNormEx with {sides} side inputs has no CPU kernel"
        ));
    }
    let ending = match node.attrs.str("activation_mode")? {
        "Identity" => Ending::default(),
        "Relu" => Ending::of(Function::Relu),
        other => {
            return Err(unimplemented!(
                "_FusedBatchNormEx with activation {other} has no CPU kernel"
            ));
        }
    };
    build_then(node, ending)
}
