//! `ConcatOffset`: where each part begins in a concatenation.
//!
//! TensorFlow: ConcatOffset(concat_dim: int32, shape: N * shape_type) -> offset: N * shape_type.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i32s, i64s};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "ConcatOffset",
    inputs: &["concat_dim: int32", "shape: N * shape_type"],
    outputs: &["offset: N * shape_type"],
    attrs: &["N: int >= 2", "shape_type: {int32, int64} = DT_INT32"],
    infer,
    gradient: Gradient::Stop("offsets are integers"),
    kernels: &[cpu(&[("shape_type", INDEX)], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "three",
            &[
                i32s(&[], &[1]),
                i32s(&[3], &[2, 2, 7]),
                i32s(&[3], &[2, 3, 7]),
                i32s(&[3], &[2, 9, 7]),
            ],
            &[
                i32s(&[3], &[0, 0, 0]),
                i32s(&[3], &[0, 2, 0]),
                i32s(&[3], &[0, 5, 0]),
            ],
        ),
        ex_attrs(
            "int64 from behind",
            &[("shape_type", "int64")],
            &[i32s(&[], &[-1]), i64s(&[1], &[4]), i64s(&[1], &[2])],
            &[i64s(&[1], &[0]), i64s(&[1], &[4])],
        ),
        ex_err(
            "axis",
            &[],
            &[i32s(&[], &[2]), i32s(&[1], &[4]), i32s(&[1], &[2])],
            Code::InvalidArgument,
            "Concat dim is out of range: 2 vs. 1",
        ),
        ex_err(
            "extents",
            &[],
            &[i32s(&[], &[0]), i32s(&[2], &[4, 1]), i32s(&[2], &[4, 2])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "ranks",
            &[],
            &[i32s(&[], &[0]), i32s(&[1], &[4]), i32s(&[2], &[4, 2])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    for index in 1..ctx.num_inputs() {
        ctx.set(index - 1, ctx.input(index).clone());
    }
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let wide = node.attrs.dtype("shape_type")? == DType::I64;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let axis = ctx.int(0)?;
        let first = ctx.ints(1)?;
        let rank = first.len() as i64;
        let axis_at = if axis < 0 { axis + rank } else { axis };
        if axis_at < 0 || axis_at >= rank {
            return Err(invalid_argument!(
                "Concat dim is out of range: {axis} vs. {rank}"
            ));
        }
        let axis = axis_at as usize;
        let mut offset = 0i64;
        for index in 1..ctx.num_inputs() {
            let input = ctx.input(index)?;
            if input.rank() != 1 {
                return Err(invalid_argument!(
                    "input {} should be a vector, but got shape {}",
                    index - 1,
                    input.shape()
                ));
            }
            let dims = ctx.ints(index)?;
            check(&first, &dims, axis, index - 1)?;
            let mut out = vec![0i64; first.len()];
            out[axis] = offset;
            offset = offset.wrapping_add(dims[axis]);
            let out = if wide {
                Tensor::vector(&out)
            } else {
                let narrow: Vec<i32> = out.iter().map(|value| *value as i32).collect();
                Tensor::vector(&narrow)
            };
            ctx.set(index - 1, out);
        }
        Ok(())
    })
}

fn check(first: &[i64], dims: &[i64], axis: usize, index: usize) -> Result<()> {
    if dims.len() != first.len() {
        return Err(invalid_argument!(
            "input {index} should contain {} elements, but got {}",
            first.len(),
            dims.len()
        ));
    }
    let mut pairs = first.iter().zip(dims).enumerate();
    if pairs.any(|(dim, (a, b))| dim != axis && a != b) {
        return Err(invalid_argument!(
            "All dimensions except {axis} must match. Input {index} has shape [{}] and doesn't match input 0 with shape [{}].",
            spaced(dims),
            spaced(first)
        ));
    }
    Ok(())
}

fn spaced(dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    dims.join(" ")
}
