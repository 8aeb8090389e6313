//! TensorLists: lists of tensors as values of variant tensors, the state of functional loops.
//!
//! A list is a value: an op that changes it gives a changed one. When nobody else holds the list it is
//! changed in place, so that a loop of `n` pushes costs `n` and not `n²`. An element that was reserved
//! and never set reads as zeros of the shape that the op, the list or the other elements tell.

pub(crate) mod concat_lists;
pub(crate) mod concat_split;
pub(crate) mod create;
pub(crate) mod gather_scatter;
pub(crate) mod item;
pub(crate) mod length;
pub(crate) mod push_pop;
pub(crate) mod stack;

use std::sync::Arc;

use tensorfleet_graph::gradient::GradCtx;
use tensorfleet_graph::{Cost, Exactness, OpDef, Output};
use tensorfleet_kernel::KernelCtx;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, TensorList, Variant};

/// No list may have more elements: a wrong size must not take all memory.
const MAX_ELEMENTS: usize = 1 << 26;

/// What all these ops have in common.
const LIST: OpDef = OpDef {
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// A scalar variant with this list.
fn handle_to(list: TensorList) -> Tensor {
    Tensor::scalar(Variant::List(Arc::new(list)))
}

/// The list in input `index`.
fn list<'a>(ctx: &'a KernelCtx<'_>, index: usize) -> Result<&'a TensorList> {
    let handle = ctx.input(index)?;
    check_handle(handle)?;
    match handle.slice::<Variant>()? {
        [Variant::List(list)] => Ok(list),
        other => Err(no_list(other)),
    }
}

/// The list in input `index`, whose elements must be of `dtype`.
fn list_of<'a>(ctx: &'a KernelCtx<'_>, index: usize, dtype: DType) -> Result<&'a TensorList> {
    let list = list(ctx, index)?;
    check_dtype(dtype, list)?;
    Ok(list)
}

/// The list in a handle for changes: in place if nobody else holds it, else a copy.
fn list_mut(handle: &mut Tensor) -> Result<&mut TensorList> {
    check_handle(handle)?;
    match handle.slice_mut::<Variant>()? {
        [Variant::List(list)] => Ok(Arc::make_mut(list)),
        other => Err(no_list(other)),
    }
}

fn check_handle(handle: &Tensor) -> Result<()> {
    ensure!(
        handle.rank() == 0,
        invalid_argument,
        "Input list must be a scalar. Saw: {}",
        handle.shape()
    );
    Ok(())
}

#[cold]
fn no_list(found: &[Variant]) -> tensorfleet_status::Status {
    let kind = found.first().map_or("", Variant::type_name);
    invalid_argument!("Input handle is not a list. Saw: '{kind}'")
}

fn check_dtype(dtype: DType, list: &TensorList) -> Result<()> {
    ensure!(
        dtype == list.element_dtype,
        invalid_argument,
        "Invalid data types; op elements {dtype} but list elements {}",
        list.element_dtype
    );
    Ok(())
}

fn check_size(size: usize) -> Result<()> {
    ensure!(
        size <= MAX_ELEMENTS,
        resource_exhausted,
        "a list of {size} elements exceeds the limit of {MAX_ELEMENTS}"
    );
    Ok(())
}

/// The shape that input `index` holds: a vector with -1 for unknown dimensions, or the scalar -1.
fn element_shape(ctx: &KernelCtx<'_>, index: usize) -> Result<PartialShape> {
    let tensor = ctx.input(index)?;
    let dims = ctx.ints(index)?;
    match (tensor.rank(), dims.as_slice()) {
        (0, [-1]) => Ok(PartialShape::unknown()),
        (0, _) => Err(invalid_argument!(
            "The only valid scalar shape tensor is the fully unknown shape specified as -1."
        )),
        (1, dims) => {
            if let Some(dim) = dims.iter().find(|dim| **dim < -1) {
                return Err(invalid_argument!("Dimension {dim} must be >= -1"));
            }
            Ok(PartialShape::new(dims))
        }
        (rank, _) => Err(invalid_argument!(
            "Shape must be at most rank 1 but is rank {rank}"
        )),
    }
}

/// What input `index` and the list itself say of the elements' shape.
fn known_shape(ctx: &KernelCtx<'_>, index: usize, list: &TensorList) -> Result<PartialShape> {
    merged(&element_shape(ctx, index)?, &list.element_shape)
}

/// The knowledge of both together.
fn merged(a: &PartialShape, b: &PartialShape) -> Result<PartialShape> {
    a.merge(b).map_err(|_| match (a.rank(), b.rank()) {
        (Some(x), Some(y)) if x != y => {
            invalid_argument!("Incompatible ranks during merge: {x} vs. {y}")
        }
        _ => invalid_argument!("Incompatible shapes during merge: {a} vs. {b}"),
    })
}

/// What is known of the shape, and if that is not all, what `elements` tell.
fn shape_by_elements<'a>(
    known: PartialShape,
    elements: impl IntoIterator<Item = &'a Option<Tensor>>,
) -> Result<PartialShape> {
    if known.to_shape().is_some() {
        return Ok(known);
    }
    let set = elements.into_iter().flatten();
    set.map(|element| PartialShape::from(element.shape()))
        .try_fold(known, |known, shape| merged(&known, &shape))
}

/// One element each of the rows of a tensor.
fn rows(tensor: &Tensor) -> Result<impl Iterator<Item = Result<Tensor>> + '_> {
    let shape = Shape::new(tensor.shape().get(1..).unwrap_or_default())?;
    let count = tensor.shape().dim(0);
    Ok((0..count).map(move |row| tensor.rows(row, 1)?.reshaped(shape.clone())))
}

/// Checks that a tensor can be cut into elements of this shape along dimension 0.
fn check_rows(tensor: &Tensor, element_shape: &PartialShape) -> Result<()> {
    let Some((_, row)) = tensor.shape().split_first() else {
        return Err(invalid_argument!(
            "Tensor must be at least a vector, but saw shape: {}",
            tensor.shape()
        ));
    };
    ensure!(
        element_shape.admits(row),
        invalid_argument,
        "Specified a list with shape {element_shape} from a tensor with shape {}",
        PartialShape::new(row)
    );
    Ok(())
}

/// `TensorListElementShape` of a list.
fn shape_of_elements(g: &mut GradCtx<'_>, list: Output) -> Result<Output> {
    let shape = g.builder().op("TensorListElementShape").input(list);
    shape.attr("shape_type", DType::I32).output()
}

/// The shape of a tensor without dimension 0.
fn shape_of_rows(g: &mut GradCtx<'_>, tensor: Output) -> Result<Output> {
    let shape = g.shape(tensor)?;
    let (begin, size) = (g.ints(&[1])?, g.ints(&[-1])?);
    g.apply("Slice", &[shape, begin, size])
}
