//! `All` and `Any`: conjunction and disjunction over axes.
//!
//! TensorFlow: Op(input: bool, reduction_indices: Tidx) -> output: bool, attr keep_dims.

use tensorfleet_graph::example::{bools, ex, ex_attrs, i32s, i64s};
use tensorfleet_graph::{Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::Par;
use tensorfleet_math::reduce::{self, Layout};
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

use super::{Plan, infer};
use crate::types::INDEX;

const GRID: &[bool] = &[true, false, true, true];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "All",
        kernels: &[cpu(&[("Tidx", INDEX)], |node| build(node, reduce::all))],
        examples: &[
            ex(
                "rows",
                &[bools(&[2, 2], GRID), i32s(&[], &[1])],
                &[bools(&[2], &[false, true])],
            ),
            ex(
                "all axes",
                &[bools(&[2, 2], GRID), i64s(&[2], &[0, 1])],
                &[bools(&[], &[false])],
            ),
            ex(
                "of nothing",
                &[bools(&[0, 2], &[]), i32s(&[], &[0])],
                &[bools(&[2], &[true, true])],
            ),
            ex(
                "no axes",
                &[bools(&[], &[false]), i32s(&[0], &[])],
                &[bools(&[], &[false])],
            ),
        ],
        ..REDUCTION
    },
    OpDef {
        name: "Any",
        kernels: &[cpu(&[("Tidx", INDEX)], |node| build(node, reduce::any))],
        examples: &[
            ex_attrs(
                "columns, dimensions kept",
                &[("keep_dims", "true")],
                &[
                    bools(&[2, 2], &[true, false, false, false]),
                    i32s(&[], &[-2]),
                ],
                &[bools(&[1, 2], &[true, false])],
            ),
            ex(
                "of nothing",
                &[bools(&[0], &[]), i32s(&[], &[0])],
                &[bools(&[], &[false])],
            ),
        ],
        ..REDUCTION
    },
];

const REDUCTION: OpDef = OpDef {
    inputs: &["input: bool", "reduction_indices: Tidx"],
    outputs: &["output: bool"],
    attrs: &["keep_dims: bool = false", "Tidx: {int32, int64} = DT_INT32"],
    infer,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

type Run = fn(&dyn Par, &Layout, &[bool], &mut [bool]);

fn build(node: &NodeInfo, run: Run) -> Result<AnyKernel> {
    let keep_dims = node.attrs.bool("keep_dims")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let plan = Plan::new(ctx, keep_dims)?;
        let out = if plan.is_trivial() {
            ctx.take(0)?.reshaped(plan.shape)?
        } else {
            let mut out = ctx.allocate(DType::Bool, plan.shape)?;
            let input = ctx.input(0)?.slice::<bool>()?;
            run(ctx.par(), &plan.layout, input, out.slice_mut::<bool>()?);
            out
        };
        ctx.set(0, out);
        Ok(())
    })
}
