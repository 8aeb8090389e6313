//! The gradient rule of `MatrixSolveLs`.
//!
//! A tall A has X = G⁻¹ · Aᴴ · B with G = Aᴴ · A + λ, a wide one X = Aᴴ · K⁻¹ · B with K = A · Aᴴ + λ. Either way
//!
//! * dB is the solution for Aᴴ (wide if A is tall) and dX,
//! * dA = -dB · Xᴴ + E, with E = (B - A·X) · (G⁻¹ · dX)ᴴ if tall, E = (K⁻¹ · B) · (dX - Aᴴ·dB)ᴴ if wide.
//!
//! A wide E is the transpose of a tall one with Aᵀ for A, so both are computed by the same nodes: which form it is, is known
//! with the step, and only the smaller of G and K may be built.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_status::{Result, ensure};

use super::{adjoint, rows, side, stacked, swapped};
use crate::array::grads;
use crate::math::calculus::Calculus;
use crate::math::matmul::batch::product;

/// Nothing flows to the regularizer, as in TensorFlow.
pub(in crate::linalg) fn least_squares(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    ensure!(
        g.attrs().bool("fast")?,
        unimplemented,
        "Gradient not defined for fast=False"
    );
    let (a, b, solution, grad) = (g.input(0), g.input(1), g.output(0), g.grad(0)?);
    let turned = adjoint(g, a)?;
    let to_right = g.apply("MatrixSolveLs", &[turned, grad, g.input(2)])?;

    let form = Form::of(g, a)?;
    let tall = form.transposed(g, a)?;
    let conj_b = g.conj(b)?;
    let right = form.pick(g, grad, conj_b)?;
    let solved = solve_small(g, tall, right)?;
    let reached = product(g, a, solution, [false, false])?;
    let missed = g.sub(b, reached)?;
    let reached = product(g, turned, to_right, [false, false])?;
    let grad_missed = g.sub(grad, reached)?;
    let grad_missed = g.conj(grad_missed)?;
    let missed = form.pick(g, missed, grad_missed)?;
    let extra = product(g, missed, solved, [false, true])?;
    let extra = form.transposed(g, extra)?;

    let outer = product(g, to_right, solution, [false, true])?;
    let to_matrix = g.sub(extra, outer)?;
    Ok(vec![
        Some(Grad::Dense(to_matrix)),
        Some(Grad::Dense(to_right)),
        None,
    ])
}

/// (Wᴴ · W + λ)⁻¹ · R.
fn solve_small(g: &mut GradCtx<'_>, tall: Output, right: Output) -> Result<Output> {
    let gramian = product(g, tall, tall, [true, false])?;
    let diagonal = g.f("MatrixDiagPart", gramian)?;
    let regularizer = g.cast(g.input(2), g.dtype(diagonal))?;
    let diagonal = g.add(diagonal, regularizer)?;
    let gramian = g.apply("MatrixSetDiag", &[gramian, diagonal])?;
    g.apply("MatrixSolve", &[gramian, right])
}

/// Whether the matrix is tall (a boolean scalar), and the order of dimensions that makes it so.
struct Form {
    is_tall: Output,
    order: Output,
}

impl Form {
    fn of(g: &mut GradCtx<'_>, matrix: Output) -> Result<Form> {
        let (height, width) = (side(g, matrix, -2)?, side(g, matrix, -1)?);
        let is_tall = g.apply("GreaterEqual", &[height, width])?;
        let as_it_is = grads::all_axes(g, matrix)?;
        let swapped = swapped(g, matrix)?;
        let order = g.apply("SelectV2", &[is_tall, as_it_is, swapped])?;
        Ok(Form { is_tall, order })
    }

    /// The transpose if the matrix is wide.
    fn transposed(&self, g: &mut GradCtx<'_>, matrices: Output) -> Result<Output> {
        g.apply("Transpose", &[matrices, self.order])
    }

    /// One of two matrices that differ in their number of rows.
    fn pick(&self, g: &mut GradCtx<'_>, tall: Output, wide: Output) -> Result<Output> {
        let both = stacked(g, &[tall, wide])?;
        let (zero, of_tall, all) = (grads::int(g, 0)?, side(g, tall, -2)?, side(g, both, -2)?);
        let begin = g.apply("SelectV2", &[self.is_tall, zero, of_tall])?;
        let end = g.apply("SelectV2", &[self.is_tall, of_tall, all])?;
        rows(g, both, begin, Some(end))
    }
}
