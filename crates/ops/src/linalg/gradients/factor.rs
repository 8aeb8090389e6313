//! Gradient rules of factorisations that read only the lower triangle of their input.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_status::Result;

use super::{adjoint, band, inverse_distances};
use crate::math::calculus::Calculus;
use crate::math::matmul::batch::product;

/// With A = L · Lᴴ: S = L⁻ᴴ · Φ(Lᴴ · dL) · L⁻¹, where Φ takes the lower triangle and half the diagonal.
///
/// As in TensorFlow the gradient is (S + Sᴴ) / 2, as though both triangles were read.
pub(in crate::linalg) fn cholesky(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (lower, grad) = (g.output(0), g.grad(0)?);
    let middle = product(g, lower, grad, [true, false])?;
    let middle = lower_with_half_diagonal(g, middle)?;
    let left = solve_adjoint(g, lower, middle)?;
    let turned = adjoint(g, left)?;
    let both = solve_adjoint(g, lower, turned)?;
    let turned = adjoint(g, both)?;
    let sum = g.add(both, turned)?;
    dense(g.scaled(sum, 0.5)?)
}

/// L⁻ᴴ · X.
fn solve_adjoint(g: &mut GradCtx<'_>, lower: Output, right: Output) -> Result<Output> {
    let node = g.builder().op("MatrixTriangularSolve");
    let node = node.input(lower).input(right);
    node.attr("adjoint", true).output()
}

/// With A = V · diag(e) · Vᴴ: S = V · (diag(de) + F ∘ (Vᴴ · dV)) · Vᴴ, where Fᵢⱼ is 1 / (eⱼ - eᵢ), zero on the diagonal.
///
/// The gradient is that of the lower triangle, the only one that is read: what flows to the upper one is added to it. Where
/// two eigenvalues are equal no vectors are determined, and none of their gradient flows.
pub(in crate::linalg) fn self_adjoint_eigen(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let to_values = g.grad(0)?;
    let mut inner = g.f("MatrixDiag", to_values)?;
    let vectors = if g.attrs().bool("compute_v")? {
        let (vectors, to_vectors) = (g.output(1), g.grad(1)?);
        let turned = product(g, vectors, to_vectors, [true, false])?;
        let distances = inverse_distances(g, g.output(0))?;
        let between = g.mul(distances, turned)?;
        inner = g.add(inner, between)?;
        vectors
    } else {
        let input = g.input(0);
        g.builder()
            .op("SelfAdjointEigV2")
            .input(input)
            .build()?
            .output(1)
    };
    let right = product(g, inner, vectors, [false, true])?;
    let whole = product(g, vectors, right, [false, false])?;
    let turned = adjoint(g, whole)?;
    let sum = g.add(whole, turned)?;
    dense(lower_with_half_diagonal(g, sum)?)
}

/// The lower triangle, with half of the diagonal.
fn lower_with_half_diagonal(g: &mut GradCtx<'_>, matrices: Output) -> Result<Output> {
    let lower = band(g, matrices, [-1, 0])?;
    let diagonal = band(g, matrices, [0, 0])?;
    let half = g.scaled(diagonal, 0.5)?;
    g.sub(lower, half)
}
