//! `_MklSwish`, `_MklFusedMish`: every number by a smooth step of it.
//!
//! TensorFlow: _MklSwish(features: T) -> activations: T, x · sigmoid(x); _MklFusedMish, x · tanh(softplus(x)). Made by graph
//! optimisation where TensorFlow uses oneDNN.

use tensorfleet_graph::example::{ex, ex_ref, ramp, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_math::unary::UnaryElement;
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Element, bf16, f16};

use super::ending::{Ending, Function};
use crate::math::elementwise::{input_dtype, no_function};

const TYPES: &[DType] = &[DType::F16, DType::BF16, DType::F32];

const GATED: OpDef = OpDef {
    inputs: &["features: T"],
    outputs: &["activations: T"],
    infer: infer::same_as_first,
    gradient: Gradient::None("made by graph optimisation, after differentiation"),
    exactness: Exactness::Relative(2e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "_MklSwish",
        attrs: &["T: {float, bfloat16, half} = DT_FLOAT"],
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, Function::Swish))],
        examples: &[
            ex("zero", &[x(&[], &[0.0])], &[x(&[], &[0.0])]),
            ex("none", &[x(&[2, 0], &[])], &[x(&[2, 0], &[])]),
            ex_ref("curve", &[], &[ramp(&[3, 7], -5.0, 0.5)]),
        ],
        ..GATED
    },
    OpDef {
        name: "_MklFusedMish",
        attrs: &["T: {bfloat16, float, half}"],
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, Function::Mish))],
        examples: &[
            ex("zero", &[x(&[], &[0.0])], &[x(&[], &[0.0])]),
            ex("none", &[x(&[2, 0], &[])], &[x(&[2, 0], &[])]),
            ex_ref("curve", &[], &[ramp(&[3, 7], -5.0, 0.5)]),
        ],
        ..GATED
    },
];

fn build(node: &NodeInfo, function: Function) -> Result<AnyKernel> {
    match input_dtype(node) {
        DType::F32 => build_of::<f32>(function),
        DType::F16 => build_of::<f16>(function),
        DType::BF16 => build_of::<bf16>(function),
        other => Err(no_function(&node.op, other)),
    }
}

fn build_of<T: Element + Float + UnaryElement>(function: Function) -> Result<AnyKernel> {
    let ending = Ending::of(function);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut values = ctx.take(0)?;
        ending.finish_all(ctx.par(), values.slice_mut::<T>()?);
        ctx.set(0, values);
        Ok(())
    })
}
