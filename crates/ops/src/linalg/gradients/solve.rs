//! Gradient rules of systems of linear equations.
//!
//! With X = A⁻¹ · B all of them are dB = A⁻ᴴ · dX and dA = -dB · Xᴴ, the latter where A has elements of its own.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_status::Result;

use super::{adjoint, band, rows, side, stacked};
use crate::array::grads;
use crate::math::calculus::{Calculus, both};
use crate::math::matmul::batch::{product, sum_leading};

/// Of `MatrixSolve`.
pub(in crate::linalg) fn solve(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let to_right = solve_adjoint(g, "MatrixSolve", &[])?;
    let to_matrix = whole_matrix(g, to_right)?;
    both(to_matrix, to_right)
}

/// Of `MatrixTriangularSolve`.
pub(in crate::linalg) fn triangular_solve(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let to_right = solve_adjoint(g, "MatrixTriangularSolve", &["lower"])?;
    let to_matrix = whole_matrix(g, to_right)?;
    let is_lower = g.attrs().bool("lower")?;
    let to_matrix = band(g, to_matrix, if is_lower { [-1, 0] } else { [0, -1] })?;
    sum_leading(g, [to_matrix, to_right])
}

/// Of `BandedTriangularSolve`: the bands are cut out of the whole matrix, as in TensorFlow.
pub(in crate::linalg) fn banded_solve(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let to_right = solve_adjoint(g, "BandedTriangularSolve", &["lower"])?;
    let to_matrix = whole_matrix(g, to_right)?;
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let count = side(g, g.input(0), -2)?;
    let limits = if g.attrs().bool("lower")? {
        [g.sub(one, count)?, zero]
    } else {
        [zero, g.sub(count, one)?]
    };
    let limits = g.builder().op("Pack").list(&limits).output()?;
    let padding = g.constant(0.0, g.dtype(to_matrix))?;
    let node = g.builder().op("MatrixDiagPartV3").input(to_matrix);
    let node = node.input(limits).input(padding);
    let to_bands = node.attr("align", "LEFT_RIGHT").output()?;
    sum_leading(g, [to_bands, to_right])
}

/// dB, by the op itself with its attributes, of the other adjointness.
fn solve_adjoint(g: &mut GradCtx<'_>, op: &str, names: &[&str]) -> Result<Output> {
    let is_adjoint = g.attrs().bool("adjoint")?;
    let (matrix, grad) = (g.input(0), g.grad(0)?);
    let mut kept = Vec::with_capacity(names.len());
    for name in names {
        kept.push((*name, g.attr(name)?));
    }
    let node = g.builder().op(op).input(matrix).input(grad);
    let mut node = node.attr("adjoint", !is_adjoint);
    for (name, value) in kept {
        node = node.attr(name, value);
    }
    node.output()
}

/// dA = -dB · Xᴴ, or its adjoint if the adjoint of A was solved.
fn whole_matrix(g: &mut GradCtx<'_>, to_right: Output) -> Result<Output> {
    let solution = g.output(0);
    let outer = if g.attrs().bool("adjoint")? {
        product(g, solution, to_right, [false, true])?
    } else {
        product(g, to_right, solution, [false, true])?
    };
    g.neg(outer)
}

/// Of `TridiagonalSolve`. As in TensorFlow nothing is conjugated.
pub(in crate::linalg) fn tridiagonal_solve(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let transposed = transposed_diagonals(g)?;
    let (solution, grad) = (g.output(0), g.grad(0)?);
    let names = ["partial_pivoting", "perturb_singular"];
    let kept = [g.attr(names[0])?, g.attr(names[1])?];
    let mut node = g.builder().op("TridiagonalSolve").input(transposed);
    node = node.input(grad);
    for (name, value) in names.into_iter().zip(kept) {
        node = node.attr(name, value);
    }
    let to_right = node.output()?;
    let outer = diagonals_of_product(g, to_right, solution)?;
    let to_diagonals = g.neg(outer)?;
    both(to_diagonals, to_right)
}

/// The superdiagonal, read as [a₀ a₁ … unused], is the other matrix's subdiagonal, read as [unused a₀ a₁ …], and back. What
/// comes round the end is the element that is not used.
fn transposed_diagonals(g: &mut GradCtx<'_>) -> Result<Output> {
    let diagonals = g.input(0);
    let (axis, last) = (grads::int(g, -2)?, grads::int(g, -1)?);
    let mut rows = Vec::with_capacity(3);
    for (row, shift) in [(2, -1), (1, 0), (0, 1)] {
        let (row, shift) = (grads::int(g, row)?, grads::int(g, shift)?);
        let row = g.apply("GatherV2", &[diagonals, row, axis])?;
        rows.push(g.apply("Roll", &[row, shift, last])?);
    }
    let node = g.builder().op("Pack").list(&rows);
    node.attr("axis", -2i64).output()
}

/// The three diagonals of x · yᵀ, in time and space of the matrices.
fn diagonals_of_product(g: &mut GradCtx<'_>, x: Output, y: Output) -> Result<Output> {
    let diagonals = sums_of_products(g, x, y)?;
    let node = g.builder().op("Pack").list(&diagonals);
    node.attr("axis", -2i64).output()
}

/// The sums over columns of x with the next row of y, with the same row, and with the one before.
fn sums_of_products(g: &mut GradCtx<'_>, x: Output, y: Output) -> Result<Vec<Output>> {
    let last = grads::int(g, -1)?;
    let (next, previous) = (next_rows(g, y)?, previous_rows(g, y)?);
    let mut sums = Vec::with_capacity(3);
    for partner in [next, y, previous] {
        let products = g.mul(x, partner)?;
        sums.push(g.apply("Sum", &[products, last])?);
    }
    Ok(sums)
}

/// The matrices with each row in the place of the one before, and zeros in the last.
fn next_rows(g: &mut GradCtx<'_>, matrices: Output) -> Result<Output> {
    let one = grads::int(g, 1)?;
    let (nothing, below) = (nothing(g, matrices)?, rows(g, matrices, one, None)?);
    stacked(g, &[below, nothing])
}

/// The matrices with each row in the place of the next, and zeros in the first.
fn previous_rows(g: &mut GradCtx<'_>, matrices: Output) -> Result<Output> {
    let (zero, last) = (grads::int(g, 0)?, grads::int(g, -1)?);
    let (nothing, above) = (nothing(g, matrices)?, rows(g, matrices, zero, Some(last))?);
    stacked(g, &[nothing, above])
}

/// One row of zeros.
fn nothing(g: &mut GradCtx<'_>, matrices: Output) -> Result<Output> {
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let first = rows(g, matrices, zero, Some(one))?;
    g.f("ZerosLike", first)
}

/// Of `TridiagonalMatMul`.
pub(in crate::linalg) fn tridiagonal_product(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (right, grad) = (g.conj_input(3)?, g.grad(0)?);
    let row = grads::int(g, -2)?;
    let mut all = Vec::with_capacity(4);
    for sum in sums_of_products(g, grad, right)? {
        all.push(Some(Grad::Dense(g.apply("ExpandDims", &[sum, row])?)));
    }
    let mut parts = Vec::with_capacity(3);
    for input in 0..3 {
        let column = adjoint(g, g.input(input))?;
        parts.push(g.mul(column, grad)?);
    }
    let above = previous_rows(g, parts[0])?;
    let below = next_rows(g, parts[2])?;
    let sum = g.add(above, parts[1])?;
    all.push(Some(Grad::Dense(g.add(sum, below)?)));
    Ok(all)
}
