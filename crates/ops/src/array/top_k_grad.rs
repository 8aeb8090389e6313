//! The gradient rules of `TopKV2` and `ApproxTopK`: gradients go back to the columns their elements came from.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

use super::grads;
use crate::math::calculus::first_of;

pub(super) fn top_k(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, shape) = (g.grad(0)?, g.shape(g.input(0))?);
    let indices = g.cast(g.output(1), DType::I32)?;
    let spread = scatter_rows(g, grad, indices, shape)?;
    first_of(2, spread)
}

/// Along any dimension: it is moved to the end, and back.
pub(super) fn approx(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, shape) = (g.grad(0)?, g.shape(g.input(0))?);
    let axis = g.attrs().int("reduction_dimension")? as i32;
    let (axis, rank) = (grads::int(g, axis)?, g.apply("Rank", &[g.input(0)])?);
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let axis = g.apply("FloorMod", &[axis, rank])?;
    let behind = g.apply("AddV2", &[axis, one])?;
    let before = g.apply("Range", &[zero, axis, one])?;
    let after = g.apply("Range", &[behind, rank, one])?;
    let axis = g.apply("ExpandDims", &[axis, zero])?;
    let order = grads::join(g, &[before, after, axis])?;
    let grad = g.apply("Transpose", &[grad, order])?;
    let indices = g.apply("Transpose", &[g.output(1), order])?;
    let moved_shape = grads::element(g, shape, order)?;
    let spread = scatter_rows(g, grad, indices, moved_shape)?;
    let back = g.apply("InvertPermutation", &[order])?;
    dense(g.apply("Transpose", &[spread, back])?)
}

/// A tensor of `shape` with the elements of each row of `values` in the columns that `indices` name, zeros elsewhere.
fn scatter_rows(
    g: &mut GradCtx<'_>,
    values: Output,
    indices: Output,
    shape: Output,
) -> Result<Output> {
    let (zero, last) = (grads::int(g, 0)?, grads::int(g, -1)?);
    let columns = grads::part(g, shape, last, None)?;
    let columns = g.apply("Squeeze", &[columns])?;
    let size = g.apply("Prod", &[shape, zero])?;
    let k_shape = g.shape(indices)?;
    let k = grads::part(g, k_shape, last, None)?;
    let all = g.ints(&[-1])?;
    let rows_of_k = grads::join(g, &[all, k])?;
    let by_row = g.apply("Reshape", &[indices, rows_of_k])?;
    // A step of zero would be an error, an empty range is none.
    let one = grads::int(g, 1)?;
    let step = g.apply("Maximum", &[columns, one])?;
    let starts = g.apply("Range", &[zero, size, step])?;
    let starts = g.apply("ExpandDims", &[starts, last])?;
    let places = g.apply("AddV2", &[by_row, starts])?;
    let column = g.ints(&[-1, 1])?;
    let places = g.apply("Reshape", &[places, column])?;
    let flat = g.apply("Reshape", &[values, all])?;
    let flat_shape = g.apply("ExpandDims", &[size, zero])?;
    let spread = g.apply("ScatterNd", &[places, flat, flat_shape])?;
    g.apply("Reshape", &[spread, shape])
}
