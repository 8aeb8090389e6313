//! `TensorListFromTensor`, `TensorListStack`: the rows of a tensor as a list, and back.
//!
//! TensorFlow: TensorListFromTensor(tensor: element_dtype, element_shape: shape_type) -> output_handle: variant;
//! TensorListStack(input_handle: variant, element_shape: int32) -> tensor: element_dtype, with attr num_elements: int = -1.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor, TensorList};

use super::{
    LIST, check_rows, element_shape, handle_to, known_shape, list_of, merged, rows,
    shape_by_elements, shape_of_rows,
};
use crate::array::moves;
use crate::types::MOVABLE;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "TensorListFromTensor",
        inputs: &["tensor: element_dtype", "element_shape: shape_type"],
        outputs: &["output_handle: variant"],
        attrs: &["element_dtype: type", "shape_type: {int32, int64}"],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient_of_from),
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_from)],
        cost: Cost::Measured,
        scripts: &[THERE_AND_BACK, FROM_ERRORS],
        ..LIST
    },
    OpDef {
        name: "TensorListStack",
        inputs: &["input_handle: variant", "element_shape: int32"],
        outputs: &["tensor: element_dtype"],
        attrs: &["element_dtype: type", "num_elements: int = -1"],
        gradient: Gradient::Rule(gradient_of_stack),
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_stack)],
        cost: Cost::Measured,
        scripts: &[THERE_AND_BACK, UNSET, EMPTY, STACK_ERRORS],
        ..LIST
    },
];

const THERE_AND_BACK: Script = script(
    "there and back",
    "row = int32[1]{2}
     unknown = int32[]{-1}
     scalar = int64[0]{}
     x = float[3,2]{1, 2, 3, 4, 5, 6}
     lx = TensorListFromTensor(x, row)
     x2 = TensorListStack(lx, unknown) {element_dtype=DT_FLOAT, num_elements=3}
     b = bool[2]{true, false}
     lb = TensorListFromTensor(b, scalar)
     b2 = TensorListStack(lb, unknown) {element_dtype=DT_BOOL}
     s = string[2,1]{a, b}
     ls = TensorListFromTensor(s, unknown)
     s2 = TensorListStack(ls, unknown) {element_dtype=DT_STRING}
     e = float[0,2]{}
     le = TensorListFromTensor(e, row)
     e2 = TensorListStack(le, unknown) {element_dtype=DT_FLOAT}
     z = float[2,0]{}
     lz = TensorListFromTensor(z, unknown)
     z2 = TensorListStack(lz, unknown) {element_dtype=DT_FLOAT}",
    &[
        "fetch x2, b2, s2 => float[3,2]{1, 2, 3, 4, 5, 6}; bool[2]{true, false}; string[2,1]{a, b}",
        "fetch e2, z2 => float[0,2]{}; float[2,0]{}",
    ],
);

const FROM_ERRORS: Script = script(
    "what is no list",
    "row = int32[1]{2}
     x = float[3,3]{1}
     s = float[]{1}
     a = TensorListFromTensor(x, row)
     b = TensorListFromTensor(s, row)",
    &[
        "run a fails INVALID_ARGUMENT Specified a list with shape [2] from a tensor with shape [3]",
        "run b fails INVALID_ARGUMENT Tensor must be at least a vector, but saw shape: []",
    ],
);

const UNSET: Script = script(
    "zeros where nothing was set",
    "row = int32[1]{2}
     unknown = int32[]{-1}
     three = int32[]{3}
     one = int32[]{1}
     list = TensorListReserve(unknown, three) {element_dtype=DT_INT32}
     set = TensorListSetItem(list, one, row)
     all = TensorListStack(set, unknown) {element_dtype=DT_INT32}
     none = TensorListStack(list, row) {element_dtype=DT_INT32}
     untold = TensorListStack(list, unknown) {element_dtype=DT_INT32}",
    &[
        "fetch all, none => int32[3,1]{0, 2, 0}; int32[3,2]{0}",
        "fetch untold fails INVALID_ARGUMENT Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: <unknown>",
    ],
);

const EMPTY: Script = script(
    "a list without elements",
    "row = int32[1]{2}
     some = int32[2]{-1, 2}
     max = int32[]{-1}
     list = EmptyTensorList(row, max) {element_dtype=DT_FLOAT}
     vague = EmptyTensorList(some, max) {element_dtype=DT_FLOAT}
     a = TensorListStack(list, max) {element_dtype=DT_FLOAT}
     b = TensorListStack(vague, some) {element_dtype=DT_FLOAT}",
    &[
        "fetch a => float[0,2]{}",
        "fetch b fails INVALID_ARGUMENT Tried to stack elements of an empty list with non-fully-defined element_shape: [?,2]",
    ],
);

const STACK_ERRORS: Script = script(
    "what cannot be stacked",
    "unknown = int32[]{-1}
     row = int32[1]{2}
     wide = int32[1]{3}
     list = EmptyTensorList(unknown, unknown) {element_dtype=DT_FLOAT}
     x = float[2]{1, 2}
     y = float[3]{1, 2, 3}
     a = TensorListPushBack(list, x)
     b = TensorListPushBack(a, y)
     differ = TensorListStack(b, unknown) {element_dtype=DT_FLOAT}
     told = TensorListStack(b, row) {element_dtype=DT_FLOAT}
     count = TensorListStack(a, row) {element_dtype=DT_FLOAT, num_elements=2}
     dtype = TensorListStack(a, row) {element_dtype=DT_INT32}
     known = TensorListFromTensor(row, unknown)
     shape = TensorListStack(known, wide) {element_dtype=DT_INT32}",
    &[
        "fetch differ fails INVALID_ARGUMENT Incompatible shapes during merge: [2] vs. [3]",
        "fetch told fails INVALID_ARGUMENT",
        "fetch count fails INVALID_ARGUMENT Operation expected a list with 2 elements but got a list with 1 elements.",
        "fetch dtype fails INVALID_ARGUMENT Invalid data types; op elements int32 but list elements float",
        "fetch shape fails INVALID_ARGUMENT",
    ],
);

fn build_from(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (shape, tensor) = (element_shape(ctx, 1)?, ctx.input(0)?);
        check_rows(tensor, &shape)?;
        let mut list = TensorList::new(dtype, shape);
        list.items = rows(tensor)?
            .map(|row| row.map(Some))
            .collect::<Result<_>>()?;
        ctx.set(0, handle_to(list));
        Ok(())
    })
}

fn build_stack(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    let num_elements = node.attrs.int("num_elements")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let list = list_of(ctx, 0, dtype)?;
        let size = list.items.len();
        ensure!(
            num_elements < 0 || size as i64 == num_elements,
            invalid_argument,
            "Operation expected a list with {num_elements} elements but got a list with {size} elements."
        );
        let known = known_shape(ctx, 1, list)?;
        ensure!(
            size > 0 || known.to_shape().is_some(),
            invalid_argument,
            "Tried to stack elements of an empty list with non-fully-defined element_shape: {known}"
        );
        let shape = shape_by_elements(known, &list.items)?;
        let full = shape.to_shape().ok_or_else(|| invalid_argument!(
            "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: {shape}"
        ))?;
        let tensor = stacked(ctx.par(), dtype, &full, list.items.iter())?;
        ctx.set(0, tensor);
        Ok(())
    })
}

/// The elements one after the other, zeros for those that were never set.
pub(super) fn stacked<'a>(
    par: &dyn Par,
    dtype: DType,
    element_shape: &Shape,
    elements: impl ExactSizeIterator<Item = &'a Option<Tensor>>,
) -> Result<Tensor> {
    let shape = Shape::new(&[elements.len() as i64])?.concat(element_shape)?;
    if shape.elements() == 0 {
        return Tensor::new(dtype, shape);
    }
    let zeros = Tensor::zeros(dtype, element_shape.clone())?;
    let mut parts = Vec::with_capacity(elements.len());
    for element in elements {
        let element = element.as_ref().unwrap_or(&zeros);
        if element.shape() != element_shape {
            merged(&element_shape.into(), &element.shape().into())?;
        }
        parts.push((element, element.elements()));
    }
    moves::concat(par, dtype, &parts, shape)
}

fn gradient_of_from(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, tensor, dtype) = (g.grad(0)?, g.input(0), g.attr("element_dtype")?);
    let shape = shape_of_rows(g, tensor)?;
    let stack = g.builder().op("TensorListStack").input(grad).input(shape);
    let stack = stack.attr("element_dtype", dtype).output()?;
    Ok(vec![Some(Grad::Dense(stack)), None])
}

fn gradient_of_stack(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let shape = shape_of_rows(g, grad)?;
    let list = g.apply("TensorListFromTensor", &[grad, shape])?;
    Ok(vec![Some(Grad::Dense(list)), None])
}
