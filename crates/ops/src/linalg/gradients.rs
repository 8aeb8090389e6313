//! Gradient rules of inverses, determinants and solves.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_status::Result;

/// `x · y` of the last two dimensions, either adjoint.
fn product(g: &mut GradCtx<'_>, x: Output, y: Output, adjoint: [bool; 2]) -> Result<Output> {
    let node = g.builder().op("BatchMatMulV2").input(x).input(y);
    let node = node.attr("adj_x", adjoint[0]).attr("adj_y", adjoint[1]);
    node.output()
}

/// With B = A⁻¹: -Bᴴ · dB · Bᴴ.
pub(super) fn inverse(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let is_adjoint = g.attrs().bool("adjoint")?;
    let (inverse, grad) = (g.output(0), g.grad(0)?);
    let right = product(g, grad, inverse, [is_adjoint, !is_adjoint])?;
    let both = product(g, inverse, right, [!is_adjoint, false])?;
    dense(g.apply("Neg", &[both])?)
}

/// With d = det A: d · dd · A⁻ᴴ.
pub(super) fn determinant(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (output, grad) = (g.output(0), g.grad(0)?);
    let factor = g.apply("Mul", &[grad, output])?;
    dense(times_inverse(g, factor)?)
}

/// With l = log |det A|: dl · A⁻ᴴ; nothing flows from the sign.
pub(super) fn log_determinant(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(1)?;
    dense(times_inverse(g, grad)?)
}

/// A factor for each matrix, times the adjoint of the input's inverse.
fn times_inverse(g: &mut GradCtx<'_>, factor: Output) -> Result<Output> {
    let input = g.input(0);
    let node = g.builder().op("MatrixInverse").input(input);
    let inverse = node.attr("adjoint", true).output()?;
    let last = g.ints(&[-1])?;
    let column = g.apply("ExpandDims", &[factor, last])?;
    let matrix = g.apply("ExpandDims", &[column, last])?;
    g.apply("Mul", &[matrix, inverse])
}

/// With X = A⁻¹ · B: dB = A⁻ᴴ · dX, dA = -dB · Xᴴ.
pub(super) fn solve(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let is_adjoint = g.attrs().bool("adjoint")?;
    let (matrix, solution, grad) = (g.input(0), g.output(0), g.grad(0)?);
    let node = g.builder().op("MatrixSolve").input(matrix).input(grad);
    let to_right = node.attr("adjoint", !is_adjoint).output()?;
    let pair = if is_adjoint {
        [solution, to_right]
    } else {
        [to_right, solution]
    };
    let outer = product(g, pair[0], pair[1], [false, true])?;
    let to_matrix = g.apply("Neg", &[outer])?;
    Ok(vec![
        Some(Grad::Dense(to_matrix)),
        Some(Grad::Dense(to_right)),
    ])
}
