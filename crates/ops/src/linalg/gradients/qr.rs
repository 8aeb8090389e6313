//! The gradient rule of `Qr`.
//!
//! A matrix of no more columns than rows has dA = Q·(dR + L·R⁻ᴴ) + (dQ - Q·X)·R⁻ᴴ, with X = Qᴴ·dQ, Y = R·dRᴴ and L the lower
//! triangle of X - Xᴴ + Y - Yᴴ; complex numbers add Q·Dᴴ·R⁻ᴴ, with D what the diagonal of Y - Xᴴ has beside its real part. Of a wide
//! matrix [A, B] with [R, S] = Qᴴ·[A, B] the second part has dB = Q·dS and adds B·dSᴴ to dQ. All matrices are taken for wide
//! ones, perhaps with no columns in B, as their sizes are known with the step.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_status::Result;

use super::{adjoint, band, side};
use crate::array::grads;
use crate::math::calculus::Calculus;
use crate::math::matmul::batch::product;

pub(in crate::linalg) fn qr(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (input, q, r) = (g.input(0), g.output(0), g.output(1));
    let (to_q, to_r) = (g.grad(0)?, g.grad(1)?);
    let height = side(g, input, -2)?;
    let (beyond, square) = (
        columns(g, input, height, false)?,
        columns(g, r, height, true)?,
    );
    let (to_square, to_beyond) = (
        columns(g, to_r, height, true)?,
        columns(g, to_r, height, false)?,
    );
    let right = product(g, q, to_beyond, [false, false])?;
    let more = product(g, beyond, to_beyond, [false, true])?;
    let to_q = g.add(to_q, more)?;
    let left = narrow(g, [q, square], [to_q, to_square])?;
    let last = grads::int(g, -1)?;
    let node = g.builder().op("ConcatV2").list(&[left, right]);
    dense(node.input(last).output()?)
}

/// Of a matrix of no more columns than rows.
fn narrow(g: &mut GradCtx<'_>, [q, r]: [Output; 2], [to_q, to_r]: [Output; 2]) -> Result<Output> {
    let x = product(g, q, to_q, [true, false])?;
    let y = product(g, r, to_r, [false, true])?;
    let sum = g.add(x, y)?;
    let turned = adjoint(g, sum)?;
    let lower = g.sub(sum, turned)?;
    let lower = band(g, lower, [-1, 0])?;
    let along = by_inverse_adjoint(g, lower, r)?;
    let along = g.add(to_r, along)?;
    let along = product(g, q, along, [false, false])?;
    let inside = product(g, q, x, [false, false])?;
    let mut rest = g.sub(to_q, inside)?;
    if g.dtype(q).is_complex() {
        let turned = adjoint(g, x)?;
        let phases = g.sub(y, turned)?;
        let diagonal = g.f("MatrixDiagPart", phases)?;
        let conjugate = g.conj(diagonal)?;
        // The conjugate of what the diagonal has beside its real part.
        let aside = g.sub(conjugate, diagonal)?;
        let aside = g.scaled(aside, 0.5)?;
        let aside = g.f("MatrixDiag", aside)?;
        let aside = product(g, q, aside, [false, false])?;
        rest = g.add(rest, aside)?;
    }
    let rest = by_inverse_adjoint(g, rest, r)?;
    g.add(along, rest)
}

/// X · R⁻ᴴ for an upper triangle R.
fn by_inverse_adjoint(g: &mut GradCtx<'_>, x: Output, r: Output) -> Result<Output> {
    let turned = adjoint(g, x)?;
    let node = g
        .builder()
        .op("MatrixTriangularSolve")
        .input(r)
        .input(turned);
    let solved = node.attr("lower", false).output()?;
    adjoint(g, solved)
}

/// The columns before or from `at`, an int32 scalar.
fn columns(g: &mut GradCtx<'_>, matrices: Output, at: Output, is_before: bool) -> Result<Output> {
    let zero = grads::int(g, 0)?;
    let bound = g.builder().op("Pack").list(&[zero, at]).output()?;
    let strides = g.ints(&[1, 1])?;
    let node = g.builder().op("StridedSlice").input(matrices);
    let node = node.input(bound).input(bound).input(strides);
    let node = node.attr("ellipsis_mask", 1i64);
    let open = if is_before { "begin_mask" } else { "end_mask" };
    node.attr(open, 2i64).output()
}
