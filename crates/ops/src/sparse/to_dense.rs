//! `SparseToDense`: values at their places, a default everywhere else.
//!
//! TensorFlow: SparseToDense(sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T) -> dense: T.
//! Indices may be a scalar, a vector (of a vector output) or a matrix; validate_indices wants them sorted and without repeats.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::flatten_coordinates;
use tensorfleet_math::par::{Par, chunks_mut};
use tensorfleet_status::{Code, Result, Status, internal, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor, Word, by_word};

use super::borrowed_integers;
use crate::array::grads;
use crate::math::cast::integers;
use crate::math::elementwise::lengths;

/// Elements that are worth a thread of their own.
const GRAIN: usize = 32 << 10;

pub(crate) static OP: OpDef = OpDef {
    name: "SparseToDense",
    inputs: &[
        "sparse_indices: Tindices",
        "output_shape: Tindices",
        "sparse_values: T",
        "default_value: T",
    ],
    outputs: &["dense: T"],
    attrs: &[
        "validate_indices: bool = true",
        "T: type",
        "Tindices: {int32, int64}",
    ],
    infer: infer::shape_in::<1>,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "matrix",
            &[
                i64s(&[2, 2], &[0, 1, 1, 0]),
                i64s(&[2], &[2, 2]),
                x(&[2], &[5.0, 6.0]),
                x(&[], &[1.0]),
            ],
            &[x(&[2, 2], &[1.0, 5.0, 6.0, 1.0])],
        ),
        ex(
            "vector, one value",
            &[
                i32s(&[2], &[0, 2]),
                i32s(&[1], &[4]),
                x(&[], &[7.0]),
                x(&[], &[0.0]),
            ],
            &[x(&[4], &[7.0, 0.0, 7.0, 0.0])],
        ),
        ex(
            "scalar index",
            &[
                i32s(&[], &[1]),
                i32s(&[1], &[3]),
                x(&[], &[7.0]),
                x(&[], &[0.0]),
            ],
            &[x(&[3], &[0.0, 7.0, 0.0])],
        ),
        ex_err(
            "out of bounds",
            &[],
            &[
                i32s(&[1], &[3]),
                i32s(&[1], &[3]),
                f32s(&[], &[7.0]),
                f32s(&[], &[0.0]),
            ],
            Code::InvalidArgument,
            "out of bounds",
        ),
        ex_err(
            "not sorted",
            &[],
            &[
                i32s(&[2], &[2, 1]),
                i32s(&[1], &[3]),
                f32s(&[], &[7.0]),
                f32s(&[], &[0.0]),
            ],
            Code::InvalidArgument,
            "out of order",
        ),
        ex_err(
            "twice",
            &[],
            &[
                i32s(&[2], &[1, 1]),
                i32s(&[1], &[3]),
                f32s(&[], &[7.0]),
                f32s(&[], &[0.0]),
            ],
            Code::InvalidArgument,
            "repeated",
        ),
        ex_attrs(
            "not validated",
            &[("validate_indices", "false")],
            &[
                i32s(&[2], &[2, 1]),
                i32s(&[1], &[3]),
                f32s(&[2], &[7.0, 8.0]),
                f32s(&[], &[0.0]),
            ],
            &[f32s(&[3], &[0.0, 8.0, 7.0])],
        ),
    ],
    ..OpDef::BLANK
};

/// Each value gets the gradient at its place, one value for all places their sum; the default gets the rest.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices, values) = (g.grad(0)?, g.input(0), g.input(2));
    let (zero, all) = (grads::int(g, 0)?, g.ints(&[-1])?);
    let width = g.apply("Size", &[g.input(1)])?;
    let width = g.apply("ExpandDims", &[width, zero])?;
    let rows = grads::join(g, &[all, width])?;
    let indices = g.apply("Reshape", &[indices, rows])?;
    let at_places = g.apply("GatherNd", &[grad, indices])?;
    let (shape, places) = (g.shape(values)?, g.shape(at_places)?);
    let node = g.builder().op("BroadcastGradientArgs");
    let axes = node.input(shape).input(places).build()?;
    let to_values = g.apply("Sum", &[at_places, axes.output(0)])?;
    let to_values = g.apply("Reshape", &[to_values, shape])?;
    let to_default = grads::sum_beside(g, grad, at_places)?;
    Ok(vec![
        None,
        None,
        Some(Grad::Dense(to_values)),
        Some(Grad::Dense(to_default)),
    ])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let validate = node.attrs.bool("validate_indices")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (indices, shape, values, default) =
            (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?);
        if indices.rank() > 2 {
            return Err(invalid_argument!(
                "sparse_indices should be a scalar, vector, or matrix, got shape {}",
                indices.shape()
            ));
        }
        if shape.rank() != 1 {
            return Err(invalid_argument!(
                "output_shape must be rank 1, got shape {}",
                shape.shape()
            ));
        }
        if default.rank() != 0 {
            return Err(invalid_argument!(
                "default_value should be a scalar, got shape {}",
                default.shape()
            ));
        }
        let (count, width) = match indices.rank() {
            2 => (indices.shape().dim(0), indices.shape().dim(1)),
            _ => (indices.elements(), 1),
        };
        if shape.elements() != width {
            return Err(invalid_argument!(
                "output_shape has incorrect number of elements: {} should be: {width}",
                shape.elements()
            ));
        }
        if values.rank() > 1 || (values.rank() == 1 && values.elements() != count) {
            return Err(invalid_argument!(
                "sparse_values has incorrect shape {}, should be [] or [{count}]",
                values.shape()
            ));
        }
        let shape = Shape::new(&integers(shape)?)?;
        let flat = borrowed_integers(indices)?;
        let places = places(ctx.par(), &flat, width, &shape, validate)?;
        let mut out = ctx.allocate(values.dtype(), shape)?;
        by_word!(values.dtype(), W => fill::<W>(ctx.par(), values, default, &places, &mut out))?;
        ctx.set(0, out);
        Ok(())
    })
}

/// Where the values go in the whole; in ascending order if that is to be so.
fn places(
    par: &dyn Par,
    indices: &[i64],
    width: usize,
    shape: &Shape,
    validate: bool,
) -> Result<Vec<i64>> {
    match flatten_coordinates(par, indices, &lengths(shape)) {
        Ok(places) if !validate || places.is_sorted_by(|a, b| a < b) => Ok(places),
        _ => Err(fault(indices, width, shape, validate)),
    }
}

/// What is wrong with the indices.
#[cold]
fn fault(indices: &[i64], width: usize, shape: &Shape, validate: bool) -> Status {
    let mut last: Option<&[i64]> = None;
    for (row, index) in indices.chunks_exact(width.max(1)).enumerate() {
        if index
            .iter()
            .zip(shape.iter())
            .any(|(at, dim)| !(0..*dim).contains(at))
        {
            return invalid_argument!(
                "indices[{row}] = {index:?} is out of bounds: need 0 <= index < {shape}"
            );
        }
        match last {
            Some(last) if validate && index == last => {
                return invalid_argument!("indices[{row}] = {index:?} is repeated");
            }
            Some(last) if validate && index < last => {
                return invalid_argument!(
                    "indices[{row}] = {index:?} is out of order. Many sparse ops require sorted indices."
                );
            }
            _ => {}
        }
        last = Some(index);
    }
    internal!("indices into {shape} have no fault")
}

fn fill<W: Word>(
    par: &dyn Par,
    values: &Tensor,
    default: &Tensor,
    places: &[i64],
    out: &mut Tensor,
) -> Result<()> {
    let (values, default) = (values.words::<W>()?, &default.words::<W>()?[0]);
    let value = |index: usize| match values {
        [all] => all.clone(),
        values => values[index].clone(),
    };
    let dense = out.words_mut::<W>()?;
    if !places.is_sorted() {
        dense.fill(default.clone());
        for (index, place) in places.iter().enumerate() {
            dense[*place as usize] = value(index);
        }
        return Ok(());
    }
    chunks_mut(par, dense, GRAIN, |at, dense| {
        dense.fill(default.clone());
        let first = places.partition_point(|place| (*place as usize) < at);
        for (index, place) in places.iter().enumerate().skip(first) {
            let Some(slot) = dense.get_mut(*place as usize - at) else {
                break;
            };
            *slot = value(index);
        }
    });
    Ok(())
}
