//! The gradient rule of `Svd`.
//!
//! With A = U · S · Vᴴ, of P values, it is U·I·Vᴴ + R(U)·S⁻¹·Vᴴ + U·(R(V)·S⁻¹)ᴴ:
//!
//! * I = diag(dS) + (F∘X + (F∘X)ᴴ)·S + S·(F∘Y + (F∘Y)ᴴ) turns the vectors among themselves, with X = Uᴴ·dU, Y = Vᴴ·dV and Fᵢⱼ =
//!   1 / (sⱼ² - sᵢ²), zero on the diagonal;
//! * R(U) = dU - U·X turns them out of the space they span, if U has more than P rows; R(V) likewise.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_status::Result;

use super::{adjoint, inverse_distances, safe_reciprocal, side};
use crate::array::grads;
use crate::math::calculus::Calculus;
use crate::math::matmul::batch::product;

pub(in crate::linalg) fn svd(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let to_values = g.grad(0)?;
    let diagonal = g.f("MatrixDiag", to_values)?;
    if !g.attrs().bool("compute_uv")? {
        let input = g.input(0);
        let found = g.builder().op("Svd").input(input).build()?;
        let right = product(g, diagonal, found.output(2), [false, true])?;
        return dense(product(g, found.output(1), right, [false, false])?);
    }
    let values = g.output(0);
    let (left, right) = (Vectors::of(g, 1)?, Vectors::of(g, 2)?);
    let squares = g.mul(values, values)?;
    let distances = inverse_distances(g, squares)?;
    let (row, column) = (grads::int(g, -2)?, grads::int(g, -1)?);
    let as_row = g.apply("ExpandDims", &[values, row])?;
    let as_column = g.apply("ExpandDims", &[values, column])?;
    let of_left = left.turned(g, distances)?;
    let of_left = g.mul(of_left, as_row)?;
    let of_right = right.turned(g, distances)?;
    let of_right = g.mul(as_column, of_right)?;
    let mut inner = g.add(diagonal, of_left)?;
    inner = g.add(inner, of_right)?;
    let inverse = safe_reciprocal(g, as_row)?;
    if g.dtype(values).is_complex() {
        let phases = phases(g, right.inner)?;
        let phases = g.mul(phases, inverse)?;
        inner = g.add(inner, phases)?;
    }
    let along = product(g, left.vectors, inner, [false, false])?;
    let out_of_left = left.out_of_space(g, inverse)?;
    let by_right = g.add(along, out_of_left)?;
    let by_right = product(g, by_right, right.vectors, [false, true])?;
    let out_of_right = right.out_of_space(g, inverse)?;
    let by_left = product(g, left.vectors, out_of_right, [false, true])?;
    dense(g.add(by_right, by_left)?)
}

/// (Lᴴ - L) / 2, with L the diagonal: what is left of a common phase of both vectors of a value.
fn phases(g: &mut GradCtx<'_>, inner: Output) -> Result<Output> {
    let diagonal = g.f("MatrixDiagPart", inner)?;
    let conjugate = g.conj(diagonal)?;
    let difference = g.sub(conjugate, diagonal)?;
    let half = g.scaled(difference, 0.5)?;
    g.f("MatrixDiag", half)
}

/// The vectors of one side that belong to values, and their gradient.
struct Vectors {
    vectors: Output,
    grad: Output,
    /// X = Uᴴ · dU.
    inner: Output,
    /// With full_matrices the vectors that belong to no value, and their gradient.
    others: Option<(Output, Output)>,
}

impl Vectors {
    fn of(g: &mut GradCtx<'_>, output: usize) -> Result<Vectors> {
        let (mut vectors, mut grad) = (g.output(output), g.grad(output)?);
        let mut others = None;
        if g.attrs().bool("full_matrices")? {
            let count = side(g, g.output(0), -1)?;
            others = Some((
                columns(g, vectors, count, false)?,
                columns(g, grad, count, false)?,
            ));
            vectors = columns(g, vectors, count, true)?;
            grad = columns(g, grad, count, true)?;
        }
        let inner = product(g, vectors, grad, [true, false])?;
        Ok(Vectors {
            vectors,
            grad,
            inner,
            others,
        })
    }

    /// F∘X + (F∘X)ᴴ.
    fn turned(&self, g: &mut GradCtx<'_>, distances: Output) -> Result<Output> {
        let turned = g.mul(distances, self.inner)?;
        let back = adjoint(g, turned)?;
        g.add(turned, back)
    }

    /// R(U) · S⁻¹; zero, and not the rounding errors of zero, where the vectors span the whole space.
    fn out_of_space(&self, g: &mut GradCtx<'_>, inverse: Output) -> Result<Output> {
        let within = product(g, self.vectors, self.inner, [false, false])?;
        let mut out = g.sub(self.grad, within)?;
        if let Some((others, grad)) = self.others {
            let turned = product(g, grad, self.vectors, [true, false])?;
            let back = product(g, others, turned, [false, false])?;
            out = g.sub(out, back)?;
        }
        let (rows, count) = (side(g, self.vectors, -2)?, side(g, g.output(0), -1)?);
        let has_room = g.apply("Greater", &[rows, count])?;
        let has_room = g.cast(has_room, g.dtype(out))?;
        let inverse = g.mul(inverse, has_room)?;
        g.mul(out, inverse)
    }
}

/// The first columns, or those behind.
fn columns(g: &mut GradCtx<'_>, matrices: Output, count: Output, is_first: bool) -> Result<Output> {
    let zero = grads::int(g, 0)?;
    let limit = g.builder().op("Pack").list(&[zero, count]).output()?;
    let strides = g.ints(&[1, 1])?;
    let node = g.builder().op("StridedSlice").input(matrices);
    let node = node.input(limit).input(limit).input(strides);
    let open = if is_first { "begin_mask" } else { "end_mask" };
    node.attr("ellipsis_mask", 1i64).attr(open, 2i64).output()
}
