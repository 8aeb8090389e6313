//! Gradient rules of matrices in the last two dimensions, and the pieces they are made of. Xᴴ is the adjoint of X.

mod eigen;
mod factor;
mod functions;
mod inverse;
mod least_squares;
mod qr;
mod solve;
mod svd;

pub(super) use eigen::eigen;
pub(super) use factor::{cholesky, self_adjoint_eigen};
pub(super) use functions::square_root;
pub(super) use inverse::{determinant, inverse, log_determinant};
pub(super) use least_squares::least_squares;
pub(super) use qr::qr;
pub(super) use solve::{
    banded_solve, solve, triangular_solve, tridiagonal_product, tridiagonal_solve,
};
pub(super) use svd::svd;

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::GradCtx;
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

use crate::array::grads;
use crate::math::calculus::Calculus;

/// An order of dimensions that swaps the last two.
fn swapped(g: &mut GradCtx<'_>, matrices: Output) -> Result<Output> {
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let (rank, two) = (g.apply("Rank", &[matrices])?, grads::int(g, 2)?);
    let leading = g.apply("Sub", &[rank, two])?;
    let leading = g.apply("Range", &[zero, leading, one])?;
    let last_two = g.ints(&[-1, -2])?;
    grads::join(g, &[leading, last_two])
}

/// Xᴴ.
fn adjoint(g: &mut GradCtx<'_>, matrices: Output) -> Result<Output> {
    let order = swapped(g, matrices)?;
    g.apply("ConjugateTranspose", &[matrices, order])
}

/// The diagonal, with so many diagonals below and above it (all of them if negative).
fn band(g: &mut GradCtx<'_>, matrices: Output, [below, above]: [i64; 2]) -> Result<Output> {
    let below = g.builder().constant(Tensor::scalar(below))?;
    let above = g.builder().constant(Tensor::scalar(above))?;
    g.apply("MatrixBandPart", &[matrices, below, above])
}

/// The number of rows (axis -2) or of columns (axis -1).
fn side(g: &mut GradCtx<'_>, matrices: Output, axis: i32) -> Result<Output> {
    let shape = g.shape(matrices)?;
    let (begin, end, one) = (g.ints(&[axis])?, g.ints(&[axis + 1])?, g.ints(&[1])?);
    let node = g.builder().op("StridedSlice").input(shape);
    let node = node.input(begin).input(end).input(one);
    node.attr("shrink_axis_mask", 1i64).output()
}

/// Rows `begin` to `end`, both int32 scalars; to the last one without an end.
fn rows(
    g: &mut GradCtx<'_>,
    matrices: Output,
    begin: Output,
    end: Option<Output>,
) -> Result<Output> {
    let zero = grads::int(g, 0)?;
    let pack = |g: &mut GradCtx<'_>, row: Output| {
        let node = g.builder().op("Pack");
        node.list(&[zero, row, zero]).output()
    };
    let (begin, last) = (pack(g, begin)?, pack(g, end.unwrap_or(zero))?);
    let strides = g.ints(&[1, 1, 1])?;
    // All leading dimensions, the rows, all columns.
    let node = g.builder().op("StridedSlice").input(matrices);
    let node = node.input(begin).input(last).input(strides);
    let node = node.attr("ellipsis_mask", 1i64).attr("begin_mask", 4i64);
    let to_the_last = if end.is_none() { 2 } else { 0 };
    node.attr("end_mask", 4i64 | to_the_last).output()
}

/// Matrices of as many columns, one above the other.
fn stacked(g: &mut GradCtx<'_>, matrices: &[Output]) -> Result<Output> {
    let axis = grads::int(g, -2)?;
    let node = g.builder().op("ConcatV2").list(matrices);
    node.input(axis).output()
}

/// 1 / (eⱼ - eᵢ) in row i and column j; zero where there is no distance.
fn inverse_distances(g: &mut GradCtx<'_>, values: Output) -> Result<Output> {
    let (row, column) = (grads::int(g, -2)?, grads::int(g, -1)?);
    let row = g.apply("ExpandDims", &[values, row])?;
    let column = g.apply("ExpandDims", &[values, column])?;
    let distance = g.sub(row, column)?;
    safe_reciprocal(g, distance)
}

/// 1 / x as x / (x² + ε): TensorFlow's way to have zero where x is.
fn safe_reciprocal(g: &mut GradCtx<'_>, value: Output) -> Result<Output> {
    let square = g.mul(value, value)?;
    let square = g.plus(square, 1e-20)?;
    g.div(value, square)
}
