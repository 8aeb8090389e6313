//! `TensorListConcat`, `TensorListConcatV2`, `TensorListSplit`: elements joined along dimension 0, of whatever length each.
//!
//! TensorFlow: TensorListConcatV2(input_handle: variant, element_shape: shape_type, leading_dims: int64) ->
//! (tensor: element_dtype, lengths: int64), `leading_dims` being the lengths of elements that were never set; the first
//! version has the shape as an attr; TensorListSplit(tensor: element_dtype, element_shape: shape_type, lengths: int64) ->
//! output_handle: variant.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, Status, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, TensorList, UNKNOWN_DIM};

use super::{LIST, element_shape, handle_to, known_shape, list_of, merged, shape_of_elements};
use crate::array::moves;
use crate::types::MOVABLE;

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "TensorListConcat",
        inputs: &["input_handle: variant"],
        attrs: &[
            "element_dtype: type",
            "element_shape: shape = {unknown_rank: true}",
        ],
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_concat)],
        scripts: &[THERE_AND_BACK, UNSET, SCALARS],
        ..CONCAT
    },
    OpDef {
        name: "TensorListConcatV2",
        inputs: &[
            "input_handle: variant",
            "element_shape: shape_type",
            "leading_dims: int64",
        ],
        attrs: &["element_dtype: type", "shape_type: {int32, int64}"],
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_concat_v2)],
        scripts: &[THERE_AND_BACK, UNSET, EMPTY, CONCAT_ERRORS],
        ..CONCAT
    },
    OpDef {
        name: "TensorListSplit",
        inputs: &[
            "tensor: element_dtype",
            "element_shape: shape_type",
            "lengths: int64",
        ],
        outputs: &["output_handle: variant"],
        attrs: &["element_dtype: type", "shape_type: {int32, int64}"],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient_of_split),
        kernels: &[cpu(&[("element_dtype", MOVABLE)], build_split)],
        cost: Cost::Measured,
        scripts: &[THERE_AND_BACK, SPLIT_ERRORS],
        ..LIST
    },
];

const CONCAT: OpDef = OpDef {
    outputs: &["tensor: element_dtype", "lengths: int64"],
    gradient: Gradient::Rule(gradient_of_concat),
    cost: Cost::Measured,
    ..LIST
};

const THERE_AND_BACK: Script = script(
    "there and back",
    "shape = int32[2]{-1, 2}
     unknown = int32[]{-1}
     x = float[4,2]{1, 2, 3, 4, 5, 6, 7, 8}
     lengths = int64[3]{1, 0, 3}
     none = int64[0]{}
     list = TensorListSplit(x, shape, lengths)
     a = TensorListConcat(list) {element_dtype=DT_FLOAT}
     b = TensorListConcatV2(list, unknown, none) {element_dtype=DT_FLOAT}
     c = TensorListConcat(list) {element_dtype=DT_FLOAT, element_shape=[?,2]}
     s = string[3]{a, b, c}
     two = int64[2]{2, 1}
     texts = TensorListSplit(s, unknown, two)
     t = TensorListConcatV2(texts, unknown, none) {element_dtype=DT_STRING}",
    &[
        "fetch a, a:1 => float[4,2]{1, 2, 3, 4, 5, 6, 7, 8}; int64[3]{1, 0, 3}",
        "fetch b, b:1 => float[4,2]{1, 2, 3, 4, 5, 6, 7, 8}; int64[3]{1, 0, 3}",
        "fetch c, t, t:1 => float[4,2]{1, 2, 3, 4, 5, 6, 7, 8}; string[3]{a, b, c}; int64[2]{2, 1}",
    ],
);

const UNSET: Script = script(
    "zeros where nothing was set",
    "shape = int32[2]{-1, 2}
     fixed = int32[2]{2, 1}
     unknown = int32[]{-1}
     three = int32[]{3}
     zero = int32[]{0}
     two = int32[]{2}
     x = float[1,2]{1, 2}
     y = float[2,2]{3, 4, 5, 6}
     none = int64[0]{}
     lengths = int64[2]{7, 2}
     list = TensorListReserve(shape, three) {element_dtype=DT_FLOAT}
     one = TensorListSetItem(list, zero, x)
     a = TensorListConcatV2(one, unknown, lengths) {element_dtype=DT_FLOAT}
     b = TensorListConcatV2(one, unknown, none) {element_dtype=DT_FLOAT}
     c = TensorListConcat(one) {element_dtype=DT_FLOAT}
     differ = TensorListSetItem(one, two, y)
     d = TensorListConcatV2(differ, unknown, lengths) {element_dtype=DT_FLOAT}
     e = TensorListConcatV2(differ, unknown, none) {element_dtype=DT_FLOAT}
     f = TensorListConcat(differ) {element_dtype=DT_FLOAT}
     all = TensorListReserve(fixed, two) {element_dtype=DT_FLOAT}
     g = TensorListConcatV2(all, unknown, none) {element_dtype=DT_FLOAT}
     h = TensorListConcat(all) {element_dtype=DT_FLOAT}
     i = TensorListConcat(all) {element_dtype=DT_FLOAT, element_shape=[2,1]}",
    &[
        "fetch a, a:1 => float[4,2]{1, 2, 0, 0, 0, 0, 0, 0}; int64[3]{1, 2, 1}",
        "fetch b, b:1, c:1 => float[3,2]{1, 2, 0, 0, 0, 0}; int64[3]{1, 1, 1}; int64[3]{1, 1, 1}",
        "fetch d:1 => int64[3]{1, 2, 2}",
        "fetch e fails INVALID_ARGUMENT List contains uninitialized tensor at index 1 but leading_dims has only 0 elements.",
        "fetch f fails INVALID_ARGUMENT Concating lists with uninitialized tensors is not supported in this version of TensorListConcat. Consider updating your GraphDef to run the newer version.",
        "fetch g, g:1 => float[4,1]{0}; int64[2]{2, 2}",
        "fetch h fails INVALID_ARGUMENT Trying to concat list with only uninitialized tensors but element_shape_except_first_dim is not fully defined: <unknown>",
        "fetch i fails INVALID_ARGUMENT Concating lists with uninitialized tensors is not supported in this version of TensorListConcat. Consider updating your GraphDef to run the newer version.",
    ],
);

const SCALARS: Script = script(
    "scalars",
    "shape = int32[0]{}
     count = int32[]{0}
     list = TensorListReserve(shape, count) {element_dtype=DT_FLOAT}
     out = TensorListConcat(list) {element_dtype=DT_FLOAT, element_shape=[]}",
    &["fetch out fails INVALID_ARGUMENT element_shape must not be empty"],
);

const EMPTY: Script = script(
    "a list without elements",
    "shape = int32[2]{-1, 2}
     max = int32[]{-1}
     none = int64[0]{}
     list = EmptyTensorList(shape, max) {element_dtype=DT_FLOAT}
     vague = EmptyTensorList(max, max) {element_dtype=DT_FLOAT}
     a = TensorListConcatV2(list, max, none) {element_dtype=DT_FLOAT}
     b = TensorListConcatV2(vague, max, none) {element_dtype=DT_FLOAT}",
    &[
        "fetch a, a:1 => float[0,2]{}; int64[0]{}",
        "fetch b fails INVALID_ARGUMENT All except the first dimension must be fully defined when concating an empty tensor list. element_shape: <unknown>",
    ],
);

const CONCAT_ERRORS: Script = script(
    "what cannot be joined",
    "unknown = int32[]{-1}
     none = int64[0]{}
     list = EmptyTensorList(unknown, unknown) {element_dtype=DT_FLOAT}
     s = float[]{1}
     x = float[1,2]{1, 2}
     y = float[1,3]{1, 2, 3}
     ls = TensorListPushBack(list, s)
     lx = TensorListPushBack(list, x)
     lxy = TensorListPushBack(lx, y)
     scalars = TensorListConcatV2(ls, unknown, none) {element_dtype=DT_FLOAT}
     differ = TensorListConcatV2(lxy, unknown, none) {element_dtype=DT_FLOAT}
     dtype = TensorListConcatV2(lx, unknown, none) {element_dtype=DT_INT32}
     shape = int32[2]{-1, 3}
     told = TensorListConcatV2(lx, shape, none) {element_dtype=DT_FLOAT}
     long = int32[2]{5, 2}
     first = TensorListConcatV2(lx, long, none) {element_dtype=DT_FLOAT}
     empty = int32[0]{}
     flat = TensorListConcatV2(lx, empty, none) {element_dtype=DT_FLOAT}",
    &[
        "fetch scalars fails INVALID_ARGUMENT Concat saw a scalar shape at index 0 but requires at least vectors.",
        "fetch differ fails INVALID_ARGUMENT",
        "fetch dtype fails INVALID_ARGUMENT Invalid data types; op elements int32 but list elements float",
        "fetch told fails INVALID_ARGUMENT Incompatible shapes during merge: [3] vs. [2]",
        "fetch first fails INVALID_ARGUMENT First entry of element_shape input does not match the first dim of list element at index: 0 Expected: 5 Actual: 1",
        "fetch flat fails INVALID_ARGUMENT Concat requires elements to be at least vectors, found scalars instead.",
    ],
);

const SPLIT_ERRORS: Script = script(
    "what cannot be split",
    "shape = int32[2]{-1, 2}
     flat = int32[0]{}
     wide = int32[2]{-1, 3}
     x = float[3,2]{1}
     s = float[]{1}
     fit = int64[2]{1, 2}
     long = int64[2]{2, 2}
     few = int64[1]{2}
     back = int64[2]{4, -1}
     scalar = int64[]{3}
     a = TensorListSplit(x, shape, long)
     b = TensorListSplit(x, shape, few)
     c = TensorListSplit(x, shape, back)
     d = TensorListSplit(x, shape, scalar)
     e = TensorListSplit(s, shape, fit)
     f = TensorListSplit(x, flat, fit)
     g = TensorListSplit(x, wide, fit)",
    &[
        "run a fails INVALID_ARGUMENT Attempting to slice [2, 4] from tensor with length 3",
        "run b fails INVALID_ARGUMENT Unused values in tensor. Length of tensor: 3 Values used: 2",
        "run c fails INVALID_ARGUMENT",
        "run d fails INVALID_ARGUMENT",
        "run e fails INVALID_ARGUMENT Tensor must be at least a vector, but saw shape: []",
        "run f fails INVALID_ARGUMENT TensorListSplit requires element_shape to be at least of rank 1, but saw: []",
        "run g fails INVALID_ARGUMENT tensor shape [3,2] is not compatible with element_shape [?,3]",
    ],
);

fn build_concat(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    let shape = node.attrs.shape("element_shape")?;
    // This version knows neither the list's own shape nor how long elements are that were never set.
    let shape = match shape.dims() {
        Some([_, row @ ..]) => PartialShape::new(&[&[UNKNOWN_DIM], row].concat()),
        Some([]) => return Err(invalid_argument!("element_shape must not be empty")),
        None => shape.clone(),
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let list = list_of(ctx, 0, dtype)?;
        let joined = concat(ctx, list, &shape, None)?;
        set(ctx, joined);
        Ok(())
    })
}

fn build_concat_v2(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let list = list_of(ctx, 0, dtype)?;
        let shape = known_shape(ctx, 1, list)?;
        let joined = concat(ctx, list, &shape, Some(&ctx.ints(2)?))?;
        set(ctx, joined);
        Ok(())
    })
}

fn set(ctx: &mut KernelCtx<'_>, (tensor, lengths): (Tensor, Tensor)) {
    ctx.set(0, tensor);
    ctx.set(1, lengths);
}

/// All elements joined, and the length of each.
fn concat(
    ctx: &KernelCtx<'_>,
    list: &TensorList,
    shape: &PartialShape,
    leading_dims: Option<&[i64]>,
) -> Result<(Tensor, Tensor)> {
    let (first_dim, row) = match shape.dims().map(<[i64]>::split_first) {
        None => (None, PartialShape::unknown()),
        Some(Some((first, row))) => (Some(*first).filter(|dim| *dim >= 0), PartialShape::new(row)),
        Some(None) => {
            return Err(invalid_argument!(
                "Concat requires elements to be at least vectors, found scalars instead."
            ));
        }
    };
    ensure!(
        !list.items.is_empty() || row.to_shape().is_some(),
        invalid_argument,
        "All except the first dimension must be fully defined when concating an empty tensor list. element_shape: {shape}"
    );
    let row = row_shape(list, row)?;
    let lengths = lengths(list, first_dim, leading_dims)?;
    let mut total = 0i64;
    let mut owned = Vec::with_capacity(lengths.len());
    for (item, length) in list.items.iter().zip(&lengths) {
        let shape = Shape::new(&[*length])?.concat(&row)?;
        total = total.saturating_add(*length);
        owned.push(match item {
            Some(item) => item.clone(),
            None => Tensor::zeros(list.element_dtype, shape)?,
        });
    }
    let shape = Shape::new(&[total])?.concat(&row)?;
    let parts = owned.iter().map(|item| (item, item.elements()));
    let parts: Vec<_> = parts.collect();
    let tensor = moves::concat(ctx.par(), list.element_dtype, &parts, shape)?;
    Ok((tensor, Tensor::vector(&lengths)))
}

/// The shape of all elements without dimension 0.
fn row_shape(list: &TensorList, known: PartialShape) -> Result<Shape> {
    let mut row = known;
    for (index, item) in list.items.iter().enumerate() {
        let Some(item) = item else { continue };
        let Some((_, dims)) = item.shape().split_first() else {
            return Err(invalid_argument!(
                "Concat saw a scalar shape at index {index} but requires at least vectors."
            ));
        };
        row = merged(&row, &PartialShape::new(dims))?;
    }
    row.to_shape().ok_or_else(|| invalid_argument!(
        "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim is not fully defined: {row}"
    ))
}

/// The length of every element. One that was never set is as long as `leading_dims` says, else as
/// `first_dim` says, else as all the others are.
fn lengths(
    list: &TensorList,
    first_dim: Option<i64>,
    leading_dims: Option<&[i64]>,
) -> Result<Vec<i64>> {
    let set = || {
        list.items
            .iter()
            .flatten()
            .map(|item| item.shape().dim(0) as i64)
    };
    let common = set().next().filter(|first| set().all(|dim| dim == *first));
    let lengths = list.items.iter().enumerate().map(|(index, item)| {
        let Some(item) = item else {
            let told = leading_dims.and_then(|dims| dims.get(index).copied());
            let length = told.or(first_dim).or(common);
            return length.ok_or_else(|| unknown_length(index, leading_dims));
        };
        let length = item.shape().dim(0) as i64;
        if let Some(expected) = first_dim.filter(|dim| *dim != length) {
            return Err(invalid_argument!(
                "First entry of element_shape input does not match the first dim of list element at index: {index} Expected: {expected} Actual: {length}"
            ));
        }
        Ok(length)
    });
    lengths.collect()
}

#[cold]
fn unknown_length(index: usize, leading_dims: Option<&[i64]>) -> Status {
    match leading_dims {
        Some(dims) => invalid_argument!(
            "List contains uninitialized tensor at index {index} but leading_dims has only {} elements.",
            dims.len()
        ),
        None => invalid_argument!(
            "Concating lists with uninitialized tensors is not supported in this version of TensorListConcat. Consider updating your GraphDef to run the newer version."
        ),
    }
}

fn build_split(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let list = split(ctx, dtype)?;
        ctx.set(0, handle_to(list));
        Ok(())
    })
}

fn split(ctx: &KernelCtx<'_>, dtype: DType) -> Result<TensorList> {
    let (tensor, shape, lengths) = (ctx.input(0)?, element_shape(ctx, 1)?, ctx.input(2)?);
    ensure!(
        shape.rank() != Some(0),
        invalid_argument,
        "TensorListSplit requires element_shape to be at least of rank 1, but saw: {shape}"
    );
    ensure!(
        lengths.rank() == 1,
        invalid_argument,
        "Expected lengths to be a vector, received shape: {}",
        lengths.shape()
    );
    let Some((length, row)) = tensor.shape().split_first() else {
        return Err(invalid_argument!(
            "Tensor must be at least a vector, but saw shape: {}",
            tensor.shape()
        ));
    };
    let wanted = shape.dims().map_or_else(PartialShape::unknown, |dims| {
        PartialShape::new(dims.get(1..).unwrap_or_default())
    });
    ensure!(
        wanted.admits(row),
        invalid_argument,
        "tensor shape {} is not compatible with element_shape {shape}",
        tensor.shape()
    );
    let mut list = TensorList::new(dtype, shape);
    let mut start = 0;
    for part in lengths.slice::<i64>()? {
        ensure!(
            *part >= 0,
            invalid_argument,
            "Invalid value in lengths: {part}"
        );
        let end = start + part;
        ensure!(
            end <= *length,
            invalid_argument,
            "Attempting to slice [{start}, {end}] from tensor with length {length}"
        );
        list.items
            .push(Some(tensor.rows(start as usize, *part as usize)?));
        start = end;
    }
    ensure!(
        start == *length,
        invalid_argument,
        "Unused values in tensor. Length of tensor: {length} Values used: {start}"
    );
    Ok(list)
}

fn gradient_of_concat(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, list, lengths) = (g.grad(0)?, g.input(0), g.output(1));
    let shape = shape_of_elements(g, list)?;
    let parts = g.apply("TensorListSplit", &[grad, shape, lengths])?;
    let mut grads = vec![None; g.num_inputs()];
    grads[0] = Some(Grad::Dense(parts));
    Ok(grads)
}

fn gradient_of_split(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, shape, lengths) = (g.grad(0)?, g.input(1), g.input(2));
    let dtype = g.attr("element_dtype")?;
    let concat = g.builder().op("TensorListConcatV2");
    let concat = concat.input(grad).input(shape).input(lengths);
    let joined = concat.attr("element_dtype", dtype).output()?;
    Ok(vec![Some(Grad::Dense(joined)), None, None])
}
