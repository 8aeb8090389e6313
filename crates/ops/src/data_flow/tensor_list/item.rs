//! `TensorListGetItem`, `TensorListSetItem`: one element by index.
//!
//! TensorFlow: TensorListGetItem(input_handle: variant, index: int32, element_shape: Tshape) -> item: element_dtype;
//! TensorListSetItem(input_handle: variant, index: int32, item: element_dtype) -> output_handle: variant, with attr
//! resize_if_index_out_of_bounds: bool = false.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use super::{
    LIST, check_dtype, check_size, known_shape, list_mut, list_of, shape_by_elements,
    shape_of_elements,
};
use crate::types::MOVABLE;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "TensorListGetItem",
        inputs: &[
            "input_handle: variant",
            "index: int32",
            "element_shape: Tshape",
        ],
        outputs: &["item: element_dtype"],
        attrs: &["element_dtype: type", "Tshape: {int32, int64} = DT_INT32"],
        gradient: Gradient::Rule(gradient_of_get),
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_get)],
        scripts: &[SET_THEN_GET, GET_ERRORS],
        ..LIST
    },
    OpDef {
        name: "TensorListSetItem",
        inputs: &[
            "input_handle: variant",
            "index: int32",
            "item: element_dtype",
        ],
        outputs: &["output_handle: variant"],
        attrs: &[
            "element_dtype: type",
            "resize_if_index_out_of_bounds: bool = false",
        ],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient_of_set),
        kernels: &[cpu(&[], build_set)],
        scripts: &[SET_THEN_GET, GROWN, SET_ERRORS],
        ..LIST
    },
];

const SET_THEN_GET: Script = script(
    "set, then get",
    "shape = int64[1]{-1}
     two = int32[]{2}
     zero = int32[]{0}
     one = int32[]{1}
     list = TensorListReserve(shape, two) {element_dtype=DT_DOUBLE}
     x = double[2]{1, 2}
     y = double[2]{3, 4}
     a = TensorListSetItem(list, one, x)
     b = TensorListSetItem(a, one, y)
     before = TensorListGetItem(a, one, shape) {element_dtype=DT_DOUBLE}
     after = TensorListGetItem(b, one, shape) {element_dtype=DT_DOUBLE}
     unset = TensorListGetItem(b, zero, shape) {element_dtype=DT_DOUBLE}",
    &["fetch before, after, unset => double[2]{1, 2}; double[2]{3, 4}; double[2]{0, 0}"],
);

const GROWN: Script = script(
    "grows when told to",
    "shape = int32[0]{}
     one = int32[]{1}
     three = int32[]{3}
     list = TensorListReserve(shape, one) {element_dtype=DT_FLOAT}
     x = float[]{7}
     set = TensorListSetItem(list, three, x) {resize_if_index_out_of_bounds=true}
     all = TensorListStack(set, shape) {element_dtype=DT_FLOAT}",
    &["fetch all => float[4]{0, 0, 0, 7}"],
);

const GET_ERRORS: Script = script(
    "what cannot be got",
    "shape = int32[1]{2}
     two = int32[]{2}
     zero = int32[]{0}
     list = TensorListReserve(shape, two) {element_dtype=DT_FLOAT}
     behind = TensorListGetItem(list, two, shape) {element_dtype=DT_FLOAT}
     dtype = TensorListGetItem(list, zero, shape) {element_dtype=DT_INT32}
     other = int32[1]{3}
     differ = TensorListGetItem(list, zero, other) {element_dtype=DT_FLOAT}",
    &[
        "fetch behind fails INVALID_ARGUMENT Trying to access element 2 in a list with 2 elements.",
        "fetch dtype fails INVALID_ARGUMENT Invalid data types; op elements int32 but list elements float",
        "fetch differ fails INVALID_ARGUMENT Incompatible shapes during merge: [3] vs. [2]",
    ],
);

const SET_ERRORS: Script = script(
    "what cannot be set",
    "shape = int32[1]{2}
     two = int32[]{2}
     zero = int32[]{0}
     list = TensorListReserve(shape, two) {element_dtype=DT_FLOAT}
     x = float[2]{1, 2}
     y = float[3]{1, 2, 3}
     behind = TensorListSetItem(list, two, x)
     wide = TensorListSetItem(list, zero, y)
     dtype = TensorListSetItem(list, zero, shape)",
    &[
        "run behind fails INVALID_ARGUMENT Trying to modify element 2 in a list with 2 elements.",
        "run wide fails INVALID_ARGUMENT Tried to set a tensor with incompatible shape at a list index. Item element shape: [3] list shape: [2]",
        "run dtype fails INVALID_ARGUMENT Invalid data types; op elements int32 but list elements float",
    ],
);

fn build_get(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let item = get(ctx, dtype)?;
        ctx.set(0, item);
        Ok(())
    })
}

fn get(ctx: &KernelCtx<'_>, dtype: DType) -> Result<Tensor> {
    let list = list_of(ctx, 0, dtype)?;
    let index = ctx.int(1)?;
    let found = usize::try_from(index)
        .ok()
        .and_then(|at| list.items.get(at));
    match found {
        Some(Some(item)) => Ok(item.clone()),
        Some(None) => {
            let shape = shape_by_elements(known_shape(ctx, 2, list)?, &list.items)?;
            let full = shape.to_shape().ok_or_else(|| invalid_argument!(
                "Trying to read an uninitialized tensor but element_shape is not fully defined: {shape} and no list element is set."
            ))?;
            Tensor::zeros(dtype, full)
        }
        None => Err(invalid_argument!(
            "Trying to access element {index} in a list with {} elements.",
            list.items.len()
        )),
    }
}

fn build_set(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    let grows = node.attrs.bool("resize_if_index_out_of_bounds")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let index = ctx.int(1)?;
        let (mut handle, item) = (ctx.take(0)?, ctx.take(2)?);
        let list = list_mut(&mut handle)?;
        check_dtype(dtype, list)?;
        let size = list.items.len();
        let position = usize::try_from(index).ok().filter(|at| grows || *at < size);
        let Some(position) = position else {
            return Err(invalid_argument!(
                "Trying to modify element {index} in a list with {size} elements."
            ));
        };
        ensure!(
            list.element_shape.admits(item.shape()),
            invalid_argument,
            "Tried to set a tensor with incompatible shape at a list index. Item element shape: {} list shape: {}",
            item.shape(),
            list.element_shape
        );
        if position >= size {
            check_size(position + 1)?;
            list.items.resize(position + 1, None);
        }
        list.items[position] = Some(item);
        ctx.set(0, handle);
        Ok(())
    })
}

fn gradient_of_get(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, list, index) = (g.grad(0)?, g.input(0), g.input(1));
    let dtype = g.attr("element_dtype")?;
    let length = g.apply("TensorListLength", &[list])?;
    let shape = shape_of_elements(g, list)?;
    let reserve = g.builder().op("TensorListReserve");
    let reserve = reserve.input(shape).input(length);
    let zeros = reserve.attr("element_dtype", dtype).output()?;
    let grads = g.apply("TensorListSetItem", &[zeros, index, grad])?;
    Ok(vec![Some(Grad::Dense(grads)), None, None])
}

fn gradient_of_set(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, list, index, item) = (g.grad(0)?, g.input(0), g.input(1), g.input(2));
    let dtype = g.attr("element_dtype")?;
    let grows = g.attrs().bool("resize_if_index_out_of_bounds")?;
    let zeros = g.apply("ZerosLike", &[item])?;
    let mut of_list = g.apply("TensorListSetItem", &[grad, index, zeros])?;
    if grows {
        let length = g.apply("TensorListLength", &[list])?;
        of_list = g.apply("TensorListResize", &[of_list, length])?;
    }
    let shape = g.shape(item)?;
    let get = g.builder().op("TensorListGetItem");
    let get = get.input(grad).input(index).input(shape);
    let of_item = get.attr("element_dtype", dtype).output()?;
    Ok(vec![
        Some(Grad::Dense(of_list)),
        None,
        Some(Grad::Dense(of_item)),
    ])
}
