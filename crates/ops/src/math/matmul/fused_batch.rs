//! `_MklFusedBatchMatMulV2`: products of the matrices in the last two dimensions, by a number, and something added.
//!
//! TensorFlow: _MklFusedBatchMatMulV2(x: T, y: T, args: num_args * T) -> output: T with attrs adj_x, adj_y and fused_ops,
//! which are Mul with one element and Add with what broadcasts to the output. Made by graph optimisation where TensorFlow
//! uses oneDNN. Each step is rounded, as in the graph it was made of.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, f32s, ramp, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::binary::{Binary, BinaryElement, apply_lhs, scale};
use tensorfleet_math::gemm;
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, bf16, f16};

use super::batch::{Leading, Plan, infer};
use crate::math::elementwise::{broadcast, input_dtype, no_function, status};
use crate::nn::ending::unsupported;

const FUSED: (&str, &str) = ("fused_ops", "['Mul', 'Add']");

pub(crate) static OP: OpDef = OpDef {
    name: "_MklFusedBatchMatMulV2",
    inputs: &["x: T", "y: T", "args: num_args * T"],
    outputs: &["output: T"],
    attrs: &[
        "T: {bfloat16, float, half}",
        "adj_x: bool = false",
        "adj_y: bool = false",
        "num_args: int >= 0",
        "fused_ops: list(string) = []",
        "epsilon: float = 0.0001",
        "leakyrelu_alpha: float = 0.2",
    ],
    infer,
    gradient: Gradient::None("made by graph optimisation, after differentiation"),
    kernels: &[cpu(&[("T", &[DType::F16, DType::BF16, DType::F32])], build)],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    examples: &[
        ex_attrs(
            "half the product, and a row",
            &[FUSED],
            &[
                x(&[1, 1, 1, 2], &[1.0, 2.0]),
                x(&[1, 1, 2, 2], &[3.0, 4.0, 5.0, 6.0]),
                x(&[], &[0.5]),
                x(&[1, 1, 1, 2], &[0.5, -8.0]),
            ],
            &[x(&[1, 1, 1, 2], &[7.0, 0.0])],
        ),
        ex_ref(
            "adjoint, broadcast",
            &[FUSED, ("adj_y", "true")],
            &[
                ramp(&[2, 3, 2, 4], -1.0, 0.25),
                ramp(&[2, 3, 3, 4], 1.0, -0.125),
                x(&[], &[-0.5]),
                ramp(&[2, 1, 2, 3], 0.5, 0.5),
            ],
        ),
        ex_err(
            "unknown functions",
            &[("fused_ops", "['Mul', 'Tanh']")],
            &[
                f32s(&[1, 1, 1, 1], &[1.0]),
                f32s(&[1, 1, 1, 1], &[1.0]),
                f32s(&[], &[1.0]),
                f32s(&[1, 1, 1, 1], &[1.0]),
            ],
            Code::Unimplemented,
            "[Mul,Tanh]",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let names = node.attrs.bytes_list("fused_ops")?;
    let names: Vec<&[u8]> = names.iter().map(AsRef::as_ref).collect();
    if names.as_slice() != [b"Mul".as_slice(), b"Add"] {
        return Err(unsupported(node));
    }
    let found = node.attrs.int("num_args")?;
    if found != 2 {
        return Err(invalid_argument!(
            "{} must have 2 extra arguments, got {found}: factor, addend",
            node.op
        ));
    }
    let adjoint = [node.attrs.bool("adj_x")?, node.attrs.bool("adj_y")?];
    match input_dtype(node) {
        DType::F32 => build_of::<f32>(adjoint),
        DType::F16 => build_of::<f16>(adjoint),
        DType::BF16 => build_of::<bf16>(adjoint),
        other => Err(no_function(&node.op, other)),
    }
}

fn build_of<T>(adjoint: [bool; 2]) -> Result<AnyKernel>
where
    T: Element + gemm::Element + BinaryElement + Num,
{
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (x, y, factor, addend) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?);
        let plan = Plan::new(x.shape(), y.shape(), adjoint, Leading::Broadcast)?;
        let [factor] = *factor.slice::<T>()? else {
            return Err(invalid_argument!(
                "the factor must be one number, got shape {}",
                factor.shape()
            ));
        };
        let mut out = plan.run::<T>(ctx, x.slice::<T>()?, y.slice::<T>()?)?;
        let (sum, shape) = broadcast(out.shape(), addend.shape())?;
        if shape != *out.shape() {
            return Err(invalid_argument!(
                "what is added has shape {}, the product {}",
                addend.shape(),
                out.shape()
            ));
        }
        let values = out.slice_mut::<T>()?;
        scale(ctx.par(), factor, values);
        apply_lhs(ctx.par(), Binary::Add, &sum, values, addend.slice::<T>()?).map_err(status)?;
        ctx.set(0, out);
        Ok(())
    })
}
