//! Gradient rules of inverses and determinants.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_status::Result;

use crate::math::matmul::batch::product;

/// With B = A⁻¹: -Bᴴ · dB · Bᴴ.
pub(in crate::linalg) fn inverse(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let is_adjoint = g.attrs().bool("adjoint")?;
    let (inverse, grad) = (g.output(0), g.grad(0)?);
    let right = product(g, grad, inverse, [is_adjoint, !is_adjoint])?;
    let both = product(g, inverse, right, [!is_adjoint, false])?;
    dense(g.apply("Neg", &[both])?)
}

/// With d = det A: d · dd · A⁻ᴴ.
pub(in crate::linalg) fn determinant(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (output, grad) = (g.output(0), g.grad(0)?);
    let factor = g.apply("Mul", &[grad, output])?;
    dense(times_inverse(g, factor)?)
}

/// With l = log |det A|: dl · A⁻ᴴ; nothing flows from the sign.
pub(in crate::linalg) fn log_determinant(g: &mut GradCtx<'_>) -> Result<InputGrads> {
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
