//! `ListDiff`: the elements of `x` that are not in `y`, and where they stand in `x`.
//!
//! TensorFlow: ListDiff(x: T, y: T) -> (out: T, idx: out_idx).

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::{Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use super::gather::gather_rows;
use super::keys::Keys;
use crate::types::{INDEX, REAL_NUMBERS, dtypes};

/// Everything with equality that TensorFlow takes.
const TYPES: &[DType] = dtypes![REAL_NUMBERS, &[DType::String]];

pub(crate) static OP: OpDef = OpDef {
    name: "ListDiff",
    inputs: &["x: T", "y: T"],
    outputs: &["out: T", "idx: out_idx"],
    attrs: &["T: type", "out_idx: {int32, int64} = DT_INT32"],
    kernels: &[cpu(&[("T", TYPES), ("out_idx", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "numbers",
            &[x(&[5], &[1.0, 2.0, 3.0, 1.0, 2.0]), x(&[2], &[1.0, 3.0])],
            &[x(&[2], &[2.0, 2.0]), i32s(&[2], &[1, 4])],
        ),
        ex_attrs(
            "strings",
            &[("out_idx", "int64")],
            &[strs(&[2], &["a", "b"]), strs(&[1], &["a"])],
            &[strs(&[1], &["b"]), i64s(&[1], &[1])],
        ),
        ex(
            "nothing to take away",
            &[f32s(&[2], &[1.0, f64::NAN]), f32s(&[1], &[f64::NAN])],
            &[f32s(&[2], &[1.0, f64::NAN]), i32s(&[2], &[0, 1])],
        ),
        ex(
            "empty",
            &[x(&[0], &[]), x(&[0], &[])],
            &[x(&[0], &[]), i32s(&[0], &[])],
        ),
        ex_err(
            "matrix",
            &[],
            &[f32s(&[1, 1], &[1.0]), f32s(&[1], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let wide = node.attrs.dtype("out_idx")? == DType::I64;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        for (name, input) in [("x", x), ("y", y)] {
            if input.rank() != 1 {
                return Err(invalid_argument!(
                    "{name} should be a 1D vector, got shape {}",
                    input.shape()
                ));
            }
        }
        let kept = Keys::of(x)?.without(&Keys::of(y)?);
        let positions = Tensor::vector(&kept);
        let out = gather_rows(ctx, x, &positions, 0, 0)?;
        let idx = if wide {
            positions
        } else {
            let narrow: Vec<i32> = kept.iter().map(|position| *position as i32).collect();
            Tensor::vector(&narrow)
        };
        ctx.set(0, out);
        ctx.set(1, idx);
        Ok(())
    })
}
