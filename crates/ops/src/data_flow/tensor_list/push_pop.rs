//! `TensorListPushBack`, `TensorListPopBack`, `TensorListPushBackBatch`: a list as a stack.
//!
//! TensorFlow: TensorListPushBack(input_handle: variant, tensor: element_dtype) -> output_handle: variant;
//! TensorListPopBack(input_handle: variant, element_shape: int32) -> (output_handle: variant, tensor: element_dtype);
//! TensorListPushBackBatch(input_handles: variant, tensor: element_dtype) -> output_handles: variant, one row to each list.

use std::sync::Arc;

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Tensor, TensorList, Variant};

use super::{
    LIST, check_dtype, check_size, known_shape, list_mut, list_of, no_list, rows, shape_of_elements,
};
use crate::types::MOVABLE;

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "TensorListPopBack",
        inputs: &["input_handle: variant", "element_shape: int32"],
        outputs: &["output_handle: variant", "tensor: element_dtype"],
        attrs: &["element_dtype: type"],
        gradient: Gradient::Rule(gradient_of_pop),
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_pop)],
        scripts: &[STACK, POP_UNSET],
        ..LIST
    },
    OpDef {
        name: "TensorListPushBack",
        inputs: &["input_handle: variant", "tensor: element_dtype"],
        outputs: &["output_handle: variant"],
        attrs: &["element_dtype: type"],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient_of_push),
        kernels: &[cpu(&[], build_push)],
        scripts: &[STACK, SHARED, PUSH_ERRORS],
        ..LIST
    },
    OpDef {
        name: "TensorListPushBackBatch",
        inputs: &["input_handles: variant", "tensor: element_dtype"],
        outputs: &["output_handles: variant"],
        attrs: &["element_dtype: type"],
        infer: infer::same_as_first,
        gradient: Gradient::Stop("TensorFlow lets nothing through"),
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_push_batch)],
        scripts: &[BATCH],
        ..LIST
    },
];

const STACK: Script = script(
    "last in, first out",
    "shape = int32[0]{}
     max = int32[]{-1}
     empty = EmptyTensorList(shape, max) {element_dtype=DT_INT32}
     a = int32[]{1}
     b = int32[]{2}
     one = TensorListPushBack(empty, a)
     two = TensorListPushBack(one, b)
     last = TensorListPopBack(two, shape) {element_dtype=DT_INT32}
     first = TensorListPopBack(last, shape) {element_dtype=DT_INT32}
     none = TensorListPopBack(first, shape) {element_dtype=DT_INT32}
     length = TensorListLength(first)",
    &[
        "fetch last:1, first:1, length => int32[]{2}; int32[]{1}; int32[]{0}",
        "fetch none:1 fails INVALID_ARGUMENT Trying to pop from an empty list.",
    ],
);

const POP_UNSET: Script = script(
    "elements that were never set",
    "shape = int32[1]{2}
     unknown = int32[]{-1}
     two = int32[]{2}
     zero = int32[]{0}
     list = TensorListReserve(unknown, two) {element_dtype=DT_FLOAT}
     told = TensorListPopBack(list, shape) {element_dtype=DT_FLOAT}
     untold = TensorListPopBack(list, unknown) {element_dtype=DT_FLOAT}
     x = float[3]{1, 2, 3}
     set = TensorListSetItem(list, zero, x)
     beside = TensorListPopBack(set, unknown) {element_dtype=DT_FLOAT}
     known = TensorListReserve(shape, two) {element_dtype=DT_FLOAT}
     other = int32[1]{3}
     differ = TensorListPopBack(known, other) {element_dtype=DT_FLOAT}
     dtype = TensorListPopBack(known, shape) {element_dtype=DT_INT32}",
    &[
        "fetch told:1 => float[2]{0, 0}",
        "fetch untold:1 fails INVALID_ARGUMENT Trying to read an uninitialized tensor but element_shape is not fully defined.<unknown>",
        "fetch beside:1 fails INVALID_ARGUMENT Trying to read an uninitialized tensor but element_shape is not fully defined.<unknown>",
        "fetch differ:1 fails INVALID_ARGUMENT Incompatible shapes during merge: [3] vs. [2]",
        "fetch dtype:1 fails INVALID_ARGUMENT Invalid data types; op elements int32 but list elements float",
    ],
);

const SHARED: Script = script(
    "a list that others hold stays as it is",
    "shape = int32[0]{}
     max = int32[]{-1}
     empty = EmptyTensorList(shape, max) {element_dtype=DT_STRING}
     a = string[]{a}
     b = string[]{b}
     c = string[]{c}
     base = TensorListPushBack(empty, a)
     left = TensorListPushBack(base, b)
     right = TensorListPushBack(base, c)
     ls = TensorListStack(left, shape) {element_dtype=DT_STRING}
     rs = TensorListStack(right, shape) {element_dtype=DT_STRING}
     bs = TensorListStack(base, shape) {element_dtype=DT_STRING}",
    &["fetch ls, rs, bs => string[2]{a, b}; string[2]{a, c}; string[1]{a}"],
);

const PUSH_ERRORS: Script = script(
    "what cannot be pushed",
    "shape = int32[1]{2}
     max = int32[]{-1}
     list = EmptyTensorList(shape, max) {element_dtype=DT_FLOAT}
     x = float[3]{1, 2, 3}
     i = int32[2]{1, 2}
     a = TensorListPushBack(list, x)
     b = TensorListPushBack(list, i)",
    &[
        "run a fails INVALID_ARGUMENT Tried to append a tensor with incompatible shape to a list. Op element shape: [3] list shape: [2]",
        "run b fails INVALID_ARGUMENT Invalid data types; op elements int32 but list elements float",
    ],
);

const BATCH: Script = script(
    "one row to each list",
    "shape = int32[1]{2}
     max = int32[]{-1}
     a = EmptyTensorList(shape, max) {element_dtype=DT_FLOAT}
     b = EmptyTensorList(shape, max) {element_dtype=DT_FLOAT}
     lists = Pack([a, b])
     x = float[2,2]{1, 2, 3, 4}
     pushed = TensorListPushBackBatch(lists, x)
     parts = Unpack(pushed) {num=2}
     as = TensorListStack(parts:0, shape) {element_dtype=DT_FLOAT}
     bs = TensorListStack(parts:1, shape) {element_dtype=DT_FLOAT}
     y = float[3,2]{1}
     many = TensorListPushBackBatch(lists, y)
     s = float[]{1}
     scalar = TensorListPushBackBatch(lists, s)
     z = float[2,3]{1}
     wide = TensorListPushBackBatch(lists, z)
     dtype = TensorListPushBackBatch(lists, shape)",
    &[
        "fetch as, bs => float[1,2]{1, 2}; float[1,2]{3, 4}",
        "run many fails INVALID_ARGUMENT Expected tensor.shape[0] == input_handles.size, but saw 3 vs. 2",
        "run scalar fails INVALID_ARGUMENT Expected tensor to be at least a vector, but saw shape: []",
        "run wide fails INVALID_ARGUMENT Tried to append a tensor with incompatible shape to a list at index 0. Op element shape: [3] list shape: [2]",
    ],
);

fn build_push(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (mut handle, element) = (ctx.take(0)?, ctx.take(1)?);
        push(list_mut(&mut handle)?, dtype, element, "")?;
        ctx.set(0, handle);
        Ok(())
    })
}

/// Adds an element; `place` says in error texts where the list is.
fn push(list: &mut TensorList, dtype: DType, element: Tensor, place: &str) -> Result<()> {
    ensure!(
        list.element_shape.admits(element.shape()),
        invalid_argument,
        "Tried to append a tensor with incompatible shape to a list{place}. Op element shape: {} list shape: {}",
        element.shape(),
        list.element_shape
    );
    check_dtype(dtype, list)?;
    let size = list.items.len();
    ensure!(
        list.max_num_elements < 0 || (size as i64) < list.max_num_elements,
        invalid_argument,
        "Tried to push item into a full list list size: {size} max_num_elements: {}",
        list.max_num_elements
    );
    check_size(size + 1)?;
    list.items.push(Some(element));
    Ok(())
}

fn build_pop(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let list = list_of(ctx, 0, dtype)?;
        let zeros = match list.items.last() {
            None => return Err(invalid_argument!("Trying to pop from an empty list.")),
            Some(None) => Some(zeros(ctx, list)?),
            Some(Some(_)) => None,
        };
        let mut handle = ctx.take(0)?;
        let last = list_mut(&mut handle)?.items.pop().flatten();
        ctx.set(0, handle);
        if let Some(element) = last.or(zeros) {
            ctx.set(1, element);
        }
        Ok(())
    })
}

/// What an element that was never set reads as.
fn zeros(ctx: &KernelCtx<'_>, list: &TensorList) -> Result<Tensor> {
    let shape = known_shape(ctx, 1, list)?;
    let full = shape.to_shape().ok_or_else(|| {
        invalid_argument!(
            "Trying to read an uninitialized tensor but element_shape is not fully defined.{shape}"
        )
    })?;
    Tensor::zeros(list.element_dtype, full)
}

fn build_push_batch(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (mut handles, tensor) = (ctx.take(0)?, ctx.take(1)?);
        ensure!(
            tensor.rank() > 0,
            invalid_argument,
            "Expected tensor to be at least a vector, but saw shape: {}",
            tensor.shape()
        );
        ensure!(
            tensor.shape().dim(0) == handles.elements(),
            invalid_argument,
            "Expected tensor.shape[0] == input_handles.size, but saw {} vs. {}",
            tensor.shape().dim(0),
            handles.elements()
        );
        let variants = handles.slice_mut::<Variant>()?;
        for (index, (variant, row)) in variants.iter_mut().zip(rows(&tensor)?).enumerate() {
            let place = format!(" at index {index}");
            match variant {
                Variant::List(list) => push(Arc::make_mut(list), dtype, row?, &place)?,
                other => return Err(no_list(std::slice::from_ref(other))),
            }
        }
        ctx.set(0, handles);
        Ok(())
    })
}

fn gradient_of_push(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, element, dtype) = (g.grad(0)?, g.input(1), g.attr("element_dtype")?);
    let shape = g.shape(element)?;
    let pop = g.builder().op("TensorListPopBack").input(grad).input(shape);
    let pop = pop.attr("element_dtype", dtype).build()?;
    let grads = [pop.output(0), pop.output(1)];
    Ok(grads.map(|grad| Some(Grad::Dense(grad))).to_vec())
}

fn gradient_of_pop(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let dtype = g.attr("element_dtype")?;
    let list = match g.grad_or_none(0) {
        Some(list) => list,
        None => {
            let popped = g.output(0);
            let shape = shape_of_elements(g, popped)?;
            let builder = g.builder();
            let unlimited = builder.constant(Tensor::scalar(-1i32))?;
            let empty = builder.op("EmptyTensorList").input(shape).input(unlimited);
            empty.attr("element_dtype", dtype).output()?
        }
    };
    let element = g.grad(1)?;
    let list = g.apply("TensorListPushBack", &[list, element])?;
    Ok(vec![Some(Grad::Dense(list)), None])
}
