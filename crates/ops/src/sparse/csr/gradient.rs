//! Gradient rules of sparse matrices. The gradient of a sparse matrix is one with values at the same places.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Tensor};

use super::product::Turn;
use crate::array::grads;

/// Indices, values and shape of a sparse matrix.
fn coordinates(g: &mut GradCtx<'_>, matrix: Output, dtype: DType) -> Result<[Output; 3]> {
    let node = g
        .builder()
        .op("CSRSparseMatrixToSparseTensor")
        .input(matrix);
    let node = node.attr("type", dtype).build()?;
    Ok([node.output(0), node.output(1), node.output(2)])
}

fn from(g: &mut GradCtx<'_>, [indices, values, shape]: [Output; 3]) -> Result<Output> {
    let node = g
        .builder()
        .op("SparseTensorToCSRSparseMatrix")
        .input(indices);
    node.input(values).input(shape).output()
}

pub(super) fn to_dense(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, matrix) = (g.grad(0)?, g.input(0));
    let [indices, _, shape] = coordinates(g, matrix, g.dtype(grad))?;
    let values = g.apply("GatherNd", &[grad, indices])?;
    dense(from(g, [indices, values, shape])?)
}

pub(super) fn to_coordinates(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices, shape) = (g.grad(1)?, g.output(0), g.output(2));
    dense(from(g, [indices, grad, shape])?)
}

pub(super) fn from_dense(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, dtype) = (g.grad(0)?, g.attr("T")?);
    let node = g.builder().op("CSRSparseMatrixToDense").input(grad);
    let to_dense = node.attr("type", dtype).output()?;
    Ok(vec![Some(Grad::Dense(to_dense)), None])
}

pub(super) fn from_coordinates(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, dtype) = (g.grad(0)?, g.dtype(g.input(1)));
    let [_, values, _] = coordinates(g, grad, dtype)?;
    Ok(vec![None, Some(Grad::Dense(values)), None])
}

fn transposed(
    g: &mut GradCtx<'_>,
    matrix: Output,
    dtype: DType,
    conjugate: bool,
) -> Result<Output> {
    let node = g.builder().op("SparseMatrixTranspose").input(matrix);
    let node = node.attr("type", dtype).attr("conjugate", conjugate);
    node.output()
}

pub(super) fn of_transposed(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, dtype) = (g.grad(0)?, g.attrs().dtype("type")?);
    let conjugate = g.attrs().bool("conjugate")?;
    dense(transposed(g, grad, dtype, conjugate)?)
}

fn conj(g: &mut GradCtx<'_>, value: Output) -> Result<Output> {
    match g.dtype(value) {
        DType::C64 | DType::C128 | DType::Variant => g.apply("Conj", &[value]),
        _ => Ok(value),
    }
}

/// A dense matrix, or each of a batch, with rows for columns.
fn turned(g: &mut GradCtx<'_>, value: Output) -> Result<Output> {
    let (rank, zero, one) = (
        g.apply("Rank", &[value])?,
        grads::int(g, 0)?,
        grads::int(g, 1)?,
    );
    let last = g.apply("Sub", &[rank, one])?;
    let before = g.apply("Sub", &[last, one])?;
    let outer = g.apply("Range", &[zero, before, one])?;
    let last = g.apply("ExpandDims", &[last, zero])?;
    let before = g.apply("ExpandDims", &[before, zero])?;
    let order = grads::join(g, &[outer, last, before])?;
    g.apply("Transpose", &[value, order])
}

/// Of the product of a sparse and a dense matrix: with X and Y as they were multiplied, G Y* at the places of the sparse one, and
/// X* G.
pub(super) fn of_product(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let turns = [Turn::of(g.attrs(), "a")?, Turn::of(g.attrs(), "b")?];
    let transposes = g.attrs().bool("transpose_output")?;
    let conjugates = g.attrs().bool("conjugate_output")?;
    let (a, b, mut grad) = (g.input(0), g.input(1), g.grad(0)?);
    if conjugates {
        grad = conj(g, grad)?;
    }
    if transposes {
        grad = turned(g, grad)?;
    }
    let to_a = at_places(g, a, grad, b, turns)?;
    let left = if turns[0] == Turn::Transpose {
        conj(g, a)?
    } else {
        a
    };
    let node = g.builder().op("SparseMatrixMatMul").input(left).input(grad);
    let to_b = node
        .attr("adjoint_a", turns[0] == Turn::Straight)
        .attr("transpose_output", turns[1] != Turn::Straight)
        .attr("conjugate_output", turns[1] == Turn::Adjoint)
        .output()?;
    Ok(vec![Some(Grad::Dense(to_a)), Some(Grad::Dense(to_b))])
}

/// The elements of G Y*, where the sparse matrix has values: rows of both, multiplied and summed.
fn at_places(
    g: &mut GradCtx<'_>,
    a: Output,
    grad: Output,
    b: Output,
    turns: [Turn; 2],
) -> Result<Output> {
    let [indices, _, shape] = coordinates(g, a, g.dtype(b))?;
    // Y* has the conjugates of Y; an adjoint has them already.
    let right = match turns[1] {
        Turn::Straight => conj(g, b)?,
        Turn::Transpose => {
            let turned = turned(g, b)?;
            conj(g, turned)?
        }
        Turn::Adjoint => turned(g, b)?,
    };
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let rank = g.apply("Size", &[shape])?;
    let last = g.apply("Sub", &[rank, one])?;
    let before = g.apply("Sub", &[last, one])?;
    let row_axes = g.apply("Range", &[zero, last, one])?;
    let outer_axes = g.apply("Range", &[zero, before, one])?;
    let last = g.apply("ExpandDims", &[last, zero])?;
    let column_axes = grads::join(g, &[outer_axes, last])?;
    let rows = g.apply("GatherV2", &[indices, row_axes, one])?;
    let columns = g.apply("GatherV2", &[indices, column_axes, one])?;
    let (of_grad, of_right) = match turns[0] {
        Turn::Straight => (rows, columns),
        _ => (columns, rows),
    };
    let left = g.apply("GatherNd", &[grad, of_grad])?;
    let right = g.apply("GatherNd", &[right, of_right])?;
    let product = g.apply("Mul", &[left, right])?;
    let axis = g.ints(&[1])?;
    let mut values = g.apply("Sum", &[product, axis])?;
    if turns[0] == Turn::Adjoint {
        values = conj(g, values)?;
    }
    from(g, [indices, values, shape])
}

/// Of the product of two sparse matrices: each with the values of the other's product with the gradient, where it has any.
pub(super) fn of_sparse_product(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let turns = [Turn::of(g.attrs(), "a")?, Turn::of(g.attrs(), "b")?];
    let dtype = g.attrs().dtype("type")?;
    let (a, b, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let mut out = Vec::with_capacity(2);
    for (side, own, other) in [(0, a, b), (1, b, a)] {
        let other_turn = turns[1 - side];
        let factor = if other_turn == Turn::Transpose {
            conj(g, other)?
        } else {
            other
        };
        let factors = if side == 0 {
            (grad, factor)
        } else {
            (factor, grad)
        };
        let adjoint = if side == 0 { "adjoint_b" } else { "adjoint_a" };
        let node = g.builder().op("SparseMatrixSparseMatMul");
        let node = node.input(factors.0).input(factors.1).attr("type", dtype);
        let product = node.attr(adjoint, other_turn == Turn::Straight).output()?;
        let product = match turns[side] {
            Turn::Straight => product,
            turn => transposed(g, product, dtype, turn == Turn::Adjoint)?,
        };
        out.push(Some(Grad::Dense(pruned(g, product, own, dtype)?)));
    }
    Ok(out)
}

/// The values of a matrix at the places of a pattern, zero where it has none.
fn pruned(g: &mut GradCtx<'_>, matrix: Output, pattern: Output, dtype: DType) -> Result<Output> {
    let [indices, values, shape] = coordinates(g, matrix, dtype)?;
    let [wanted, _, _] = coordinates(g, pattern, dtype)?;
    let (found, searched) = (flattened(g, indices, shape)?, flattened(g, wanted, shape)?);
    let (zero, flat) = (grads::int(g, 0)?, g.ints(&[-1])?);
    let rows = g.apply("ExpandDims", &[found, zero])?;
    let row = g.apply("ExpandDims", &[searched, zero])?;
    let places = g.apply("LowerBound", &[rows, row])?;
    let places = g.apply("Reshape", &[places, flat])?;
    // Behind the last there is one more, which is nowhere.
    let nowhere = g.builder().constant(Tensor::vector(&[-1i64]))?;
    let found = grads::join(g, &[found, nowhere])?;
    let nothing = g.constant(0.0, dtype)?;
    let nothing = g.apply("ExpandDims", &[nothing, zero])?;
    let values = grads::join(g, &[values, nothing])?;
    let there = grads::element(g, found, places)?;
    let is_there = g.apply("Equal", &[there, searched])?;
    let values = grads::element(g, values, places)?;
    let values = g.apply("SelectV2", &[is_there, values, nothing])?;
    from(g, [wanted, values, shape])
}

/// Coordinates as positions in the whole.
fn flattened(g: &mut GradCtx<'_>, indices: Output, shape: Output) -> Result<Output> {
    let all = g.builder().constant(Tensor::vector(&[-1i64]))?;
    let flat = g.apply("SparseReshape", &[indices, shape, all])?;
    let vector = g.ints(&[-1])?;
    g.apply("Reshape", &[flat, vector])
}
