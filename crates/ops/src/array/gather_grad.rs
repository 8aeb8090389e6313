//! The gradient rules of `Gather` and `GatherV2`.
//!
//! Along axis 0 only the gathered rows have a gradient, and it stays a list of rows. Along another axis
//! that axis is moved to the front (behind the batch dimensions), the rows are summed by index, and it
//! is moved back.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

use super::grads;

/// Along axis 0.
pub(super) fn rows(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, params, indices) = (g.grad(0)?, g.input(0), g.input(1));
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let dense_shape = g.shape(params)?;
    let tail = grads::part(g, dense_shape, one, None)?;
    let count = g.apply("Size", &[indices])?;
    let count = g.apply("ExpandDims", &[count, zero])?;
    let shape = grads::join(g, &[count, tail])?;
    let values = g.apply("Reshape", &[grad, shape])?;
    let indices = g.apply("Reshape", &[indices, count])?;
    let mut grads = vec![None; g.num_inputs()];
    grads[0] = Some(Grad::Rows {
        values,
        indices,
        dense_shape,
    });
    Ok(grads)
}

/// Along the axis in input 2.
pub(super) fn along_axis(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (axis, batch_dims) = (g.input(2), g.attrs().int("batch_dims")?);
    if batch_dims == 0 && is_zero(g, axis) {
        return rows(g);
    }
    let (grad, params) = (g.grad(0)?, g.input(0));
    let shape = g.shape(params)?;
    let rank = g.apply("Rank", &[params])?;
    let axis = g.cast(axis, DType::I32)?;
    let axis = g.apply("FloorMod", &[axis, rank])?;
    let one = grads::int(g, 1)?;
    let behind = g.apply("AddV2", &[axis, one])?;
    let zero = grads::int(g, 0)?;

    // All indices of a batch in one dimension.
    let outer = grads::part(g, shape, zero, Some(axis))?;
    let inner = grads::part(g, shape, behind, None)?;
    let all = g.ints(&[-1])?;
    let values_shape = grads::join(g, &[outer, all, inner])?;
    let values = g.apply("Reshape", &[grad, values_shape])?;

    // To [batch dimensions, axis, the others].
    let batch = batch_dims_counted(g, batch_dims as i32)?;
    let batches = g.apply("Range", &[zero, batch, one])?;
    let between = g.apply("Range", &[batch, axis, one])?;
    let rest = g.apply("Range", &[behind, rank, one])?;
    let axis_vector = g.apply("ExpandDims", &[axis, zero])?;
    let order = grads::join(g, &[batches, axis_vector, between, rest])?;
    let values = g.apply("Transpose", &[values, order])?;
    let moved_shape = grads::element(g, shape, order)?;

    let summed = sum_rows(g, values, moved_shape, batch)?;
    let back = g.apply("InvertPermutation", &[order])?;
    let grad = g.apply("Transpose", &[summed, back])?;
    let grad = g.apply("Reshape", &[grad, shape])?;
    Ok(vec![Some(Grad::Dense(grad)), None, None])
}

/// The number of batch dimensions; below zero it counts from behind the dimensions of the indices.
fn batch_dims_counted(g: &mut GradCtx<'_>, batch_dims: i32) -> Result<Output> {
    let given = grads::int(g, batch_dims)?;
    if batch_dims >= 0 {
        return Ok(given);
    }
    let rank = g.apply("Rank", &[g.input(1)])?;
    g.apply("AddV2", &[rank, given])
}

/// Sums `values`, of shape `[batches, indices, inner]`, by index into a tensor of `shape`.
fn sum_rows(g: &mut GradCtx<'_>, values: Output, shape: Output, batch: Output) -> Result<Output> {
    let indices = g.input(1);
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let axis_behind = g.apply("AddV2", &[batch, one])?;
    let lead = grads::part(g, shape, zero, Some(axis_behind))?;
    let rows = g.apply("Prod", &[lead, zero])?;
    let inner = grads::part(g, shape, axis_behind, None)?;
    let all = g.ints(&[-1])?;

    // Row numbers count through all batches: those of a batch begin where those before it end.
    let index_type = g.dtype(indices);
    let index_type = if index_type == DType::I64 {
        DType::I64
    } else {
        DType::I32
    };
    let indices = g.cast(indices, index_type)?;
    let outer = grads::part(g, shape, zero, Some(batch))?;
    let batches = g.apply("Prod", &[outer, zero])?;
    let extent = grads::element(g, shape, batch)?;
    let numbers = g.apply("Range", &[zero, batches, one])?;
    let offsets = g.apply("Mul", &[numbers, extent])?;
    let offsets = g.cast(offsets, index_type)?;
    let column = g.ints(&[-1, 1])?;
    let offsets = g.apply("Reshape", &[offsets, column])?;
    let count = g.apply("Size", &[indices])?;
    // At least one batch, so that an empty one does not divide by zero.
    let at_least = g.apply("Maximum", &[batches, one])?;
    let each = g.apply("FloorDiv", &[count, at_least])?;
    let grid = g.builder().op("Pack").list(&[batches, each]).output()?;
    let indices = g.apply("Reshape", &[indices, grid])?;
    let indices = g.apply("AddV2", &[indices, offsets])?;
    let indices = g.apply("Reshape", &[indices, all])?;

    let count = g.apply("ExpandDims", &[count, zero])?;
    let flat_shape = grads::join(g, &[count, inner])?;
    let values = g.apply("Reshape", &[values, flat_shape])?;
    let summed = g.apply("UnsortedSegmentSum", &[values, indices, rows])?;
    g.apply("Reshape", &[summed, shape])
}

fn is_zero(g: &mut GradCtx<'_>, axis: Output) -> bool {
    let node = g.builder().graph().node(axis.node);
    let value = match node.op_name() {
        "Const" => node.attrs.tensor("value").ok(),
        _ => None,
    };
    value.is_some_and(|value| {
        value.to_scalar::<i32>().is_ok_and(|axis| axis == 0)
            || value.to_scalar::<i64>().is_ok_and(|axis| axis == 0)
    })
}
