//! The gradient rule of `Eig`.

use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_status::Result;

use super::{adjoint, inverse_distances};
use crate::math::calculus::Calculus;
use crate::math::matmul::batch::product;

/// With A · V = V · diag(e): V⁻ᴴ · (diag(de) + F̄ ∘ (P - Vᴴ·V · diag(re P))) · Vᴴ, where P = Vᴴ·dV and Fᵢⱼ is 1 / (eⱼ - eᵢ), zero
/// on the diagonal. What is taken from P would make the vectors longer, which have length one.
pub(in crate::linalg) fn eigen(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let to_values = g.grad(0)?;
    let mut inner = g.f("MatrixDiag", to_values)?;
    let vectors = if g.attrs().bool("compute_v")? {
        let (vectors, to_vectors) = (g.output(1), g.grad(1)?);
        let turned = product(g, vectors, to_vectors, [true, false])?;
        let diagonal = g.f("MatrixDiagPart", turned)?;
        let conjugate = g.conj(diagonal)?;
        let twice = g.add(diagonal, conjugate)?;
        let lengths = g.scaled(twice, 0.5)?;
        let lengths = g.f("MatrixDiag", lengths)?;
        let angles = product(g, vectors, vectors, [true, false])?;
        let longer = product(g, angles, lengths, [false, false])?;
        let turned = g.sub(turned, longer)?;
        let distances = inverse_distances(g, g.output(0))?;
        let distances = g.conj(distances)?;
        let between = g.mul(distances, turned)?;
        inner = g.add(inner, between)?;
        vectors
    } else {
        let (input, dtype) = (g.input(0), g.attr("Tout")?);
        let node = g.builder().op("Eig").input(input);
        node.attr("Tout", dtype).build()?.output(1)
    };
    let right = product(g, inner, vectors, [false, true])?;
    let turned = adjoint(g, vectors)?;
    let whole = g.apply("MatrixSolve", &[turned, right])?;
    dense(g.cast(whole, g.dtype(g.input(0)))?)
}
