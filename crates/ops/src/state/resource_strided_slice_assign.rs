//! `ResourceStridedSliceAssign`: a value written over a strided slice of a resource variable.
//!
//! TensorFlow: ResourceStridedSliceAssign(ref: resource, begin: Index, end: Index, strides: Index, value: T), with the
//! mask attrs of StridedSlice. The value is broadcast to the slice.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

use super::NO_GRADIENT;
use super::target::{Target, settle};
use super::variable::check_dtype;
use crate::array::slicing::{Masks, Slicing};
use crate::types::{INDEX, MOVABLE};

pub(crate) static OP: OpDef = OpDef {
    name: "ResourceStridedSliceAssign",
    inputs: &[
        "ref: resource",
        "begin: Index",
        "end: Index",
        "strides: Index",
        "value: T",
    ],
    attrs: &[
        "T: type",
        "Index: {int32, int64}",
        "begin_mask: int = 0",
        "end_mask: int = 0",
        "ellipsis_mask: int = 0",
        "new_axis_mask: int = 0",
        "shrink_axis_mask: int = 0",
    ],
    stateful: true,
    gradient: NO_GRADIENT,
    kernels: &[cpu(&[("T", MOVABLE), ("Index", INDEX)], build)],
    exactness: Exactness::Bits,
    scripts: &[script(
        "a column, and what does not fit",
        "v = VarHandleOp() {dtype=float, shape=[2,3], shared_name='v'}
         c = float[2,3]{1, 2, 3, 4, 5, 6}
         init = AssignVariableOp(v, c)
         begin = int32[2]{0, 1}
         end = int32[2]{2, 2}
         step = int32[2]{1, 1}
         column = float[2]{8, 9}
         put = ResourceStridedSliceAssign(v, begin, end, step, column) {shrink_axis_mask=2}
         read = ReadVariableOp(v, ^put) {dtype=float}
         long = float[3]{7, 8, 9}
         bad = ResourceStridedSliceAssign(v, begin, end, step, long) {shrink_axis_mask=2}",
        &[
            "run put fails NOT_FOUND localhost/v",
            "run init",
            "fetch read => float[2,3]{1, 8, 3, 4, 9, 6}",
            "run bad fails INVALID_ARGUMENT ",
        ],
    )],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let masks = Masks::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let target = Target::of(ctx, 0)?;
        target.update(ctx, |var| {
            let value = ctx.input(4)?;
            check_dtype(var, value.dtype())?;
            let slicing = Slicing::of_inputs(ctx, 1, masks, var.shape())?;
            settle(var);
            slicing.put(ctx, value, var)
        })
    })
}
