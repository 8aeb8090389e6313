//! `TensorListGather`, `TensorListScatter`, `TensorListScatterV2`, `TensorListScatterIntoExistingList`: elements by index
//! as one tensor, and back.
//!
//! TensorFlow: TensorListGather(input_handle: variant, indices: int32, element_shape: int32) -> values: element_dtype;
//! TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32) ->
//! output_handle: variant, the first version without num_elements; TensorListScatterIntoExistingList(input_handle: variant,
//! tensor: element_dtype, indices: int32) -> output_handle: variant.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Cost, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Tensor, TensorList};

use super::stack::stacked;
use super::{
    LIST, check_rows, check_size, element_shape, handle_to, known_shape, list_mut, list_of, rows,
    shape_by_elements, shape_of_elements, shape_of_rows,
};
use crate::types::MOVABLE;

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "TensorListGather",
        inputs: &[
            "input_handle: variant",
            "indices: int32",
            "element_shape: int32",
        ],
        outputs: &["values: element_dtype"],
        attrs: &["element_dtype: type"],
        gradient: Gradient::Rule(gradient_of_gather),
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_gather)],
        cost: Cost::Measured,
        scripts: &[THERE_AND_BACK, GATHER_ERRORS],
        ..LIST
    },
    OpDef {
        name: "TensorListScatter",
        inputs: &[
            "tensor: element_dtype",
            "indices: int32",
            "element_shape: shape_type",
        ],
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_scatter)],
        scripts: &[THERE_AND_BACK],
        ..SCATTER
    },
    OpDef {
        name: "TensorListScatterIntoExistingList",
        inputs: &[
            "input_handle: variant",
            "tensor: element_dtype",
            "indices: int32",
        ],
        attrs: &["element_dtype: type"],
        gradient: Gradient::Rule(gradient_of_scatter_into),
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_scatter_into)],
        scripts: &[INTO],
        ..SCATTER
    },
    OpDef {
        name: "TensorListScatterV2",
        inputs: &[
            "tensor: element_dtype",
            "indices: int32",
            "element_shape: shape_type",
            "num_elements: int32",
        ],
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_scatter)],
        scripts: &[SIZED, SCATTER_ERRORS],
        ..SCATTER
    },
];

const SCATTER: OpDef = OpDef {
    outputs: &["output_handle: variant"],
    attrs: &["element_dtype: type", "shape_type: {int32, int64}"],
    infer: infer::scalar,
    gradient: Gradient::Rule(gradient_of_scatter),
    cost: Cost::Measured,
    ..LIST
};

const THERE_AND_BACK: Script = script(
    "there and back",
    "row = int32[1]{2}
     unknown = int32[]{-1}
     x = float[2,2]{1, 2, 3, 4}
     to = int32[2]{3, 1}
     list = TensorListScatter(x, to, row)
     length = TensorListLength(list)
     from = int32[4]{1, 0, 3, 3}
     y = TensorListGather(list, from, unknown) {element_dtype=DT_FLOAT}
     none = int32[0]{}
     z = TensorListGather(list, none, unknown) {element_dtype=DT_FLOAT}
     s = string[2]{a, b}
     texts = TensorListScatter(s, to, unknown)
     t = TensorListGather(texts, to, unknown) {element_dtype=DT_STRING}",
    &[
        "fetch length, y, z => int32[]{4}; float[4,2]{3, 4, 0, 0, 1, 2, 1, 2}; float[0,2]{}",
        "fetch t => string[2]{a, b}",
    ],
);

const GATHER_ERRORS: Script = script(
    "what cannot be gathered",
    "row = int32[1]{2}
     unknown = int32[]{-1}
     two = int32[]{2}
     list = TensorListReserve(unknown, two) {element_dtype=DT_FLOAT}
     all = int32[2]{0, 1}
     behind = int32[2]{0, 2}
     before = int32[1]{-1}
     none = int32[0]{}
     a = TensorListGather(list, all, row) {element_dtype=DT_FLOAT}
     b = TensorListGather(list, all, unknown) {element_dtype=DT_FLOAT}
     c = TensorListGather(list, behind, row) {element_dtype=DT_FLOAT}
     d = TensorListGather(list, none, unknown) {element_dtype=DT_FLOAT}
     e = TensorListGather(list, all, row) {element_dtype=DT_INT32}
     f = TensorListGather(list, before, row) {element_dtype=DT_FLOAT}",
    &[
        "fetch a => float[2,2]{0}",
        "fetch b fails INVALID_ARGUMENT Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: <unknown>",
        "fetch c fails INVALID_ARGUMENT Trying to gather element 2 in a list with 2 elements.",
        "fetch d fails INVALID_ARGUMENT Tried to gather 0-elements from a list with non-fully-defined shape: <unknown>",
        "fetch e fails INVALID_ARGUMENT Invalid data types; op elements int32 but list elements float",
        "fetch f fails INVALID_ARGUMENT Trying to gather element -1 in a list with 2 elements.",
    ],
);

const SIZED: Script = script(
    "to a list of a given size",
    "unknown = int64[]{-1}
     shape = int32[0]{}
     x = float[2]{1, 2}
     to = int32[2]{2, 0}
     any = int32[]{-1}
     four = int32[]{4}
     list = TensorListScatterV2(x, to, unknown, four)
     all = TensorListStack(list, shape) {element_dtype=DT_FLOAT}
     short = TensorListScatterV2(x, to, unknown, any)
     some = TensorListStack(short, shape) {element_dtype=DT_FLOAT}
     twice = int32[2]{1, 1}
     last = TensorListScatterV2(x, twice, unknown, any)
     wins = TensorListStack(last, shape) {element_dtype=DT_FLOAT}",
    &["fetch all, some, wins => float[4]{2, 0, 1, 0}; float[3]{2, 0, 1}; float[2]{0, 2}"],
);

const SCATTER_ERRORS: Script = script(
    "what cannot be scattered",
    "row = int32[1]{2}
     x = float[2,2]{1, 2, 3, 4}
     s = float[]{1}
     to = int32[2]{2, 0}
     one = int32[1]{0}
     back = int32[2]{0, -1}
     two = int32[]{2}
     any = int32[]{-1}
     less = int32[]{-2}
     wide = int32[1]{3}
     a = TensorListScatterV2(x, to, row, two)
     b = TensorListScatterV2(x, one, row, any)
     c = TensorListScatterV2(s, one, row, any)
     d = TensorListScatterV2(x, back, row, any)
     e = TensorListScatterV2(x, to, wide, any)
     f = TensorListScatterV2(x, to, row, less)",
    &[
        "run a fails INVALID_ARGUMENT TensorListScatter: Trying to scatter at index 2 in list with size 2",
        "run b fails INVALID_ARGUMENT Invalid number of rows in input tensor. Expected: 1 Actual: 2",
        "run c fails INVALID_ARGUMENT Tensor must be at least a vector, but saw shape: []",
        "run d fails INVALID_ARGUMENT Indices in TensorListScatter must all be non-negative.",
        "run e fails INVALID_ARGUMENT Specified a list with shape [3] from a tensor with shape [2]",
        "run f fails INVALID_ARGUMENT TensorListScatter expects num_elements >= -1, found: -2",
    ],
);

const INTO: Script = script(
    "into a list",
    "shape = int32[0]{}
     x = float[3]{1, 2, 3}
     list = TensorListFromTensor(x, shape)
     y = float[2]{10, 20}
     to = int32[2]{2, 0}
     changed = TensorListScatterIntoExistingList(list, y, to)
     a = TensorListStack(changed, shape) {element_dtype=DT_FLOAT}
     b = TensorListStack(list, shape) {element_dtype=DT_FLOAT}
     scalar = float[]{1}
     bad = TensorListScatterIntoExistingList(list, scalar, to)
     one = int32[1]{0}
     few = TensorListScatterIntoExistingList(list, y, one)
     ints = TensorListScatterIntoExistingList(list, to, to)",
    &[
        "fetch a, b => float[3]{20, 2, 10}; float[3]{1, 2, 3}",
        "run bad fails INVALID_ARGUMENT Tensor must be at least a vector, but saw shape: []",
        "run ints fails INVALID_ARGUMENT Invalid data types; input tensor type: int32 list element_type: float",
        "run few fails INVALID_ARGUMENT Expected len(indices) == tensor.shape[0], but saw: 1 vs. 2",
    ],
);

fn build_gather(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let values = gather(ctx, dtype)?;
        ctx.set(0, values);
        Ok(())
    })
}

fn gather(ctx: &KernelCtx<'_>, dtype: DType) -> Result<Tensor> {
    let list = list_of(ctx, 0, dtype)?;
    let indices = ctx.ints(1)?;
    let known = known_shape(ctx, 2, list)?;
    ensure!(
        !indices.is_empty() || known.to_shape().is_some(),
        invalid_argument,
        "Tried to gather 0-elements from a list with non-fully-defined shape: {known}"
    );
    let mut elements = Vec::with_capacity(indices.len());
    for index in indices {
        let element = usize::try_from(index)
            .ok()
            .and_then(|at| list.items.get(at));
        elements.push(element.ok_or_else(|| {
            let size = list.items.len();
            invalid_argument!("Trying to gather element {index} in a list with {size} elements.")
        })?);
    }
    let shape = shape_by_elements(known, elements.iter().copied())?;
    let full = shape.to_shape().ok_or_else(|| invalid_argument!(
        "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: {shape}"
    ))?;
    stacked(ctx.par(), dtype, &full, elements.into_iter())
}

fn build_scatter(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let shape = element_shape(ctx, 2)?;
        let size = if ctx.num_inputs() > 3 {
            ctx.int(3)?
        } else {
            -1
        };
        ensure!(
            size >= -1,
            invalid_argument,
            "TensorListScatter expects num_elements >= -1, found: {size}"
        );
        let mut list = TensorList::new(dtype, shape);
        if let Ok(size) = usize::try_from(size) {
            check_size(size)?;
            list.items.resize(size, None);
        }
        check_rows(ctx.input(0)?, &list.element_shape)?;
        scatter(ctx, 0, 1, &mut list, usize::try_from(size).ok())?;
        ctx.set(0, handle_to(list));
        Ok(())
    })
}

fn build_scatter_into(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut handle = ctx.take(0)?;
        let list = list_mut(&mut handle)?;
        ensure!(
            list.element_dtype == dtype,
            invalid_argument,
            "Invalid data types; input tensor type: {dtype} list element_type: {}",
            list.element_dtype
        );
        // Like TensorFlow, takes rows of any shape: whoever reads them sees what does not fit.
        check_rows(ctx.input(1)?, &PartialShape::unknown())?;
        let (count, rows) = (ctx.input(2)?.elements(), ctx.input(1)?.shape().dim(0));
        ensure!(
            count == rows,
            invalid_argument,
            "Expected len(indices) == tensor.shape[0], but saw: {count} vs. {rows}"
        );
        scatter(ctx, 1, 2, list, None)?;
        ctx.set(0, handle);
        Ok(())
    })
}

/// Puts the rows of the tensor in input `tensor` to the places in input `indices`. The list grows as it
/// must, up to `limit`; what it gains between reads as zeros, where TensorFlow leaves garbage.
fn scatter(
    ctx: &KernelCtx<'_>,
    tensor: usize,
    indices: usize,
    list: &mut TensorList,
    limit: Option<usize>,
) -> Result<()> {
    let (tensor, indices) = (ctx.input(tensor)?, ctx.ints(indices)?);
    ensure!(
        indices.len() == tensor.shape().dim(0),
        invalid_argument,
        "Invalid number of rows in input tensor. Expected: {} Actual: {}",
        indices.len(),
        tensor.shape().dim(0)
    );
    let mut places = Vec::with_capacity(indices.len());
    for index in indices {
        let place = usize::try_from(index).map_err(|_| {
            invalid_argument!("Indices in TensorListScatter must all be non-negative.")
        })?;
        if let Some(limit) = limit.filter(|limit| place >= *limit) {
            return Err(invalid_argument!(
                "TensorListScatter: Trying to scatter at index {place} in list with size {limit}"
            ));
        }
        places.push(place);
    }
    let size = places.iter().map(|place| place + 1).max().unwrap_or(0);
    if size > list.items.len() {
        check_size(size)?;
        list.items.resize(size, None);
    }
    for (place, row) in places.into_iter().zip(rows(tensor)?) {
        list.items[place] = Some(row?);
    }
    Ok(())
}

/// `TensorListGather` of rows that have the shape of those of `like`.
fn gather_like(g: &mut GradCtx<'_>, list: Output, indices: Output, like: Output) -> Result<Output> {
    let dtype = g.attr("element_dtype")?;
    let shape = shape_of_rows(g, like)?;
    let gather = g.builder().op("TensorListGather");
    let gather = gather.input(list).input(indices).input(shape);
    gather.attr("element_dtype", dtype).output()
}

fn gradient_of_gather(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, list, indices) = (g.grad(0)?, g.input(0), g.input(1));
    let dtype = g.attr("element_dtype")?;
    let length = g.apply("TensorListLength", &[list])?;
    let shape = shape_of_elements(g, list)?;
    let reserve = g.builder().op("TensorListReserve");
    let reserve = reserve.input(shape).input(length);
    let zeros = reserve.attr("element_dtype", dtype).output()?;
    let grads = g.apply("TensorListScatterIntoExistingList", &[zeros, grad, indices])?;
    Ok(vec![Some(Grad::Dense(grads)), None, None])
}

fn gradient_of_scatter(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, tensor, indices) = (g.grad(0)?, g.input(0), g.input(1));
    let values = gather_like(g, grad, indices, tensor)?;
    let mut grads = vec![None; g.num_inputs()];
    grads[0] = Some(Grad::Dense(values));
    Ok(grads)
}

fn gradient_of_scatter_into(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, tensor, indices) = (g.grad(0)?, g.input(1), g.input(2));
    let values = gather_like(g, grad, indices, tensor)?;
    let zeros = g.apply("ZerosLike", &[tensor])?;
    let rest = g.apply("TensorListScatterIntoExistingList", &[grad, zeros, indices])?;
    Ok(vec![
        Some(Grad::Dense(rest)),
        Some(Grad::Dense(values)),
        None,
    ])
}
