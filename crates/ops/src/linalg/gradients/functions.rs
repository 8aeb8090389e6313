//! The gradient rule of `MatrixSquareRoot`.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_status::Result;

use super::{side, swapped};
use crate::array::grads;
use crate::math::calculus::Calculus;

/// With R·R = A: the X with Rᵀ·X + X·Rᵀ = dR, by the system (Rᵀ⊗1 + 1⊗R) · vec(X) = vec(dR). As in TensorFlow nothing is
/// conjugated.
pub(in crate::linalg) fn square_root(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (root, grad) = (g.output(0), g.grad(0)?);
    let one = identity_like(g, root)?;
    let order = swapped(g, root)?;
    let turned = g.apply("Transpose", &[root, order])?;
    let (left, right) = (kronecker(g, turned, one)?, kronecker(g, one, root)?);
    let system = g.add(left, right)?;
    let n = side(g, root, -1)?;
    let count = g.mul(n, n)?;
    let last = grads::int(g, 1)?;
    let column = batch_and(g, root, &[count, last])?;
    let known = g.apply("Reshape", &[grad, column])?;
    let found = g.apply("MatrixSolve", &[system, known])?;
    dense(g.reshape_like(found, root)?)
}

/// Ones on the diagonal of as many matrices.
fn identity_like(g: &mut GradCtx<'_>, matrices: Output) -> Result<Output> {
    let diagonal = g.f("MatrixDiagPart", matrices)?;
    let ones = g.f("OnesLike", diagonal)?;
    g.f("MatrixDiag", ones)
}

/// x ⊗ y for square matrices of one size.
fn kronecker(g: &mut GradCtx<'_>, x: Output, y: Output) -> Result<Output> {
    let (n, one) = (side(g, x, -1)?, grads::int(g, 1)?);
    let outer = batch_and(g, x, &[n, one, n, one])?;
    let inner = batch_and(g, x, &[one, n, one, n])?;
    let x_wide = g.apply("Reshape", &[x, outer])?;
    let y_wide = g.apply("Reshape", &[y, inner])?;
    let products = g.mul(x_wide, y_wide)?;
    let count = g.mul(n, n)?;
    let shape = batch_and(g, x, &[count, count])?;
    g.apply("Reshape", &[products, shape])
}

/// The leading dimensions, and these scalars behind them.
fn batch_and(g: &mut GradCtx<'_>, matrices: Output, dims: &[Output]) -> Result<Output> {
    let shape = g.shape(matrices)?;
    let (zero, end) = (grads::int(g, 0)?, grads::int(g, -2)?);
    let batch = grads::part(g, shape, zero, Some(end))?;
    let dims = g.builder().op("Pack").list(dims).output()?;
    grads::join(g, &[batch, dims])
}
