//! `EmptyTensorList`, `TensorListReserve`: a list without elements, and one whose elements are not set.
//!
//! TensorFlow: EmptyTensorList(element_shape: shape_type, max_num_elements: int32) -> handle: variant;
//! TensorListReserve(element_shape: shape_type, num_elements: int32) -> handle: variant; attrs element_dtype: type,
//! shape_type: {int32, int64}.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::TensorList;

use super::{LIST, check_size, element_shape, handle_to};
use crate::room::filled;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "EmptyTensorList",
        inputs: &["element_shape: shape_type", "max_num_elements: int32"],
        kernels: &[cpu(&[], build_empty)],
        scripts: &[LIMITED],
        ..CREATE
    },
    OpDef {
        name: "TensorListReserve",
        inputs: &["element_shape: shape_type", "num_elements: int32"],
        kernels: &[cpu(&[], build_reserve)],
        scripts: &[RESERVED],
        ..CREATE
    },
];

const CREATE: OpDef = OpDef {
    outputs: &["handle: variant"],
    attrs: &["element_dtype: type", "shape_type: {int32, int64}"],
    infer: infer::scalar,
    gradient: Gradient::Stop("shapes are no numbers to differentiate by"),
    ..LIST
};

const LIMITED: Script = script(
    "with a limit",
    "shape = int64[1]{-1}
     one = int32[]{1}
     list = EmptyTensorList(shape, one) {element_dtype=DT_FLOAT}
     length = TensorListLength(list)
     x = float[2]{1, 2}
     y = TensorListPushBack(list, x)
     z = TensorListPushBack(y, x)
     known = TensorListElementShape(z) {shape_type=DT_INT64}
     wrong = int32[]{2}
     bad = EmptyTensorList(wrong, one) {element_dtype=DT_FLOAT}
     matrix = int32[1,1]{2}
     worse = EmptyTensorList(matrix, one) {element_dtype=DT_FLOAT}
     many = int32[2]{1, 1}
     worst = EmptyTensorList(shape, many) {element_dtype=DT_FLOAT}",
    &[
        "fetch length => int32[]{0}",
        "fetch known fails INVALID_ARGUMENT Tried to push item into a full list list size: 1 max_num_elements: 1",
        "run bad fails INVALID_ARGUMENT The only valid scalar shape tensor is the fully unknown shape specified as -1.",
        "run worse fails INVALID_ARGUMENT",
        "run worst fails INVALID_ARGUMENT",
    ],
);

const RESERVED: Script = script(
    "elements that read as zeros",
    "shape = int32[1]{2}
     unknown = int32[]{-1}
     three = int32[]{3}
     one = int32[]{1}
     list = TensorListReserve(shape, three) {element_dtype=DT_FLOAT}
     length = TensorListLength(list)
     zeros = TensorListGetItem(list, one, unknown) {element_dtype=DT_FLOAT}
     minus = TensorListReserve(shape, unknown) {element_dtype=DT_FLOAT}
     vague = TensorListReserve(unknown, three) {element_dtype=DT_FLOAT}
     told = TensorListGetItem(vague, one, shape) {element_dtype=DT_FLOAT}
     untold = TensorListGetItem(vague, one, unknown) {element_dtype=DT_FLOAT}",
    &[
        "fetch length, zeros, told => int32[]{3}; float[2]{0, 0}; float[2]{0, 0}",
        "run minus fails INVALID_ARGUMENT The num_elements to reserve must be a non negative number, but got -1",
        "fetch untold fails INVALID_ARGUMENT Trying to read an uninitialized tensor but element_shape is not fully defined: <unknown> and no list element is set.",
    ],
);

fn build_empty(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let max = ctx.input(1)?;
        ensure!(
            max.rank() == 0,
            invalid_argument,
            "max_num_elements expected to be a scalar but got shape: {}",
            max.shape()
        );
        let mut list = TensorList::new(dtype, element_shape(ctx, 0)?);
        list.max_num_elements = ctx.int(1)?;
        ctx.set(0, handle_to(list));
        Ok(())
    })
}

fn build_reserve(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let count = ctx.input(1)?;
        ensure!(
            count.elements() == 1,
            invalid_argument,
            "The num_elements to reserve must be a tensor size 1, but got {}",
            count.shape()
        );
        let count = ctx.int(1)?;
        ensure!(
            count >= 0,
            invalid_argument,
            "The num_elements to reserve must be a non negative number, but got {count}"
        );
        check_size(count as usize)?;
        let mut list = TensorList::new(dtype, element_shape(ctx, 0)?);
        list.items = filled(None, count as usize)?;
        ctx.set(0, handle_to(list));
        Ok(())
    })
}
