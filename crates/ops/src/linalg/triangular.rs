//! `MatrixTriangularSolve`, `BandedTriangularSolve`: triangular systems, whole or as bands.
//!
//! TensorFlow: MatrixTriangularSolve(matrix: T[..., M, M], rhs: T[..., M, K]) -> output: T[..., M, K]; BandedTriangularSolve takes
//! the bands of the matrix as rows, the diagonal first (last if upper). Attrs lower and adjoint; batch dimensions broadcast.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f64s, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::linalg::{adjoint, triangular};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::Shape;

use super::{Carried, Matrices, TYPES, broadcast, by_carried, each, gradients};
use crate::room::filled;

const TRIANGULAR: OpDef = OpDef {
    inputs: &["matrix: T", "rhs: T"],
    outputs: &["output: T"],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};

const UPPER: (&str, &str) = ("lower", "false");

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "BandedTriangularSolve",
        attrs: &[
            "lower: bool = true",
            "adjoint: bool = false",
            "T: {double, float, half, complex64, complex128}",
        ],
        gradient: Gradient::Rule(gradients::banded_solve),
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, true))],
        examples: &[
            ex(
                "two bands",
                &[
                    x(&[2, 3], &[2.0, 1.0, 4.0, 0.0, 1.0, 2.0]),
                    x(&[3, 1], &[2.0, 2.0, 6.0]),
                ],
                &[x(&[3, 1], &[1.0, 1.0, 1.0])],
            ),
            ex_attrs(
                "upper",
                &[UPPER],
                &[
                    x(&[2, 3], &[0.0, 1.0, 2.0, 2.0, 3.0, 4.0]),
                    x(&[3, 1], &[2.0, 4.0, 4.0]),
                ],
                &[x(&[3, 1], &[1.0, 1.0, 1.0])],
            ),
            ex_err(
                "zero on the diagonal",
                &[],
                &[f64s(&[1, 2], &[1.0, 0.0]), f64s(&[2, 1], &[1.0])],
                Code::InvalidArgument,
                "Input matrix is not invertible.",
            ),
        ],
        ..TRIANGULAR
    },
    OpDef {
        name: "MatrixTriangularSolve",
        attrs: &[
            "lower: bool = true",
            "adjoint: bool = false",
            "T: {bfloat16, double, float, half, complex64, complex128}",
        ],
        gradient: Gradient::Rule(gradients::triangular_solve),
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, false))],
        examples: &[
            ex(
                "lower",
                &[x(&[2, 2], &[2.0, 9.0, 1.0, 4.0]), x(&[2, 1], &[2.0, 5.0])],
                &[x(&[2, 1], &[1.0, 1.0])],
            ),
            ex_attrs(
                "adjoint of upper",
                &[UPPER, ("adjoint", "true")],
                &[x(&[2, 2], &[2.0, 1.0, 9.0, 4.0]), x(&[2, 1], &[2.0, 5.0])],
                &[x(&[2, 1], &[1.0, 1.0])],
            ),
            ex(
                "one right side for two",
                &[x(&[2, 1, 1], &[1.0, 2.0]), x(&[1, 2], &[4.0, 2.0])],
                &[x(&[2, 1, 2], &[4.0, 2.0, 2.0, 1.0])],
            ),
            ex_err(
                "batches",
                &[],
                &[f64s(&[3, 2, 2], &[1.0]), f64s(&[2, 2, 1], &[1.0])],
                Code::InvalidArgument,
                "In[0] and In[1] must have compatible batch dimensions: [3,2,2] vs. [2,2,1]",
            ),
        ],
        ..TRIANGULAR
    },
];

#[derive(Clone, Copy)]
struct Form {
    is_lower: bool,
    is_adjoint: bool,
    is_banded: bool,
}

fn build(node: &NodeInfo, is_banded: bool) -> Result<AnyKernel> {
    let form = Form {
        is_lower: node.attrs.bool("lower")?,
        is_adjoint: node.attrs.bool("adjoint")?,
        is_banded,
    };
    by_carried!(node, S => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| solve::<S>(ctx, form)))
}

fn solve<S: Carried>(ctx: &mut KernelCtx<'_>, form: Form) -> Result<()> {
    let (matrix, rhs) = (ctx.input(0)?, ctx.input(1)?);
    let (a, b) = (
        Matrices::of(matrix.shape(), 0)?,
        Matrices::of(rhs.shape(), 1)?,
    );
    let Some((mut dims, places)) = broadcast(&a.batch, &b.batch)? else {
        return Err(invalid_argument!(
            "In[0] and In[1] must have compatible batch dimensions: {} vs. {}",
            matrix.shape(),
            rhs.shape()
        ));
    };
    let n = a.cols;
    ensure!(
        form.is_banded || a.rows == n,
        invalid_argument,
        "In[0] matrices in the last two dimensions must be square ({} =/= {n})",
        a.rows
    );
    ensure!(
        !form.is_banded || (1..=n.max(1)).contains(&a.rows),
        invalid_argument,
        "Number of bands must be between 1 and the number of columns, got {} of {n}",
        a.rows
    );
    ensure!(
        b.rows == n,
        invalid_argument,
        "In[0] mismatch In[1] shape: {n} vs. {}: {} {}",
        b.rows,
        matrix.shape(),
        rhs.shape()
    );
    dims.extend([n as i64, b.cols as i64]);
    let outputs = [(rhs.dtype(), Shape::new(&dims)?)];
    let batch = (places.len(), a.size().saturating_mul(b.cols));
    let [out] = each::<S, 1>(ctx, batch, outputs, &|at| {
        let [at, rhs_at] = places[at];
        let mut whole = S::matrix(matrix, at, a.size())?;
        if form.is_banded {
            whole = unbanded(&whole, a.rows, n, form.is_lower)?;
        }
        if form.is_adjoint {
            whole = adjoint(&whole, n, n);
        }
        let rhs = S::matrix(rhs, rhs_at, b.size())?;
        let is_lower = form.is_lower != form.is_adjoint;
        Ok([triangular::solve(&whole, &rhs, n, b.cols, is_lower)])
    })?;
    ctx.set(0, out);
    Ok(())
}

/// The matrix with these bands.
fn unbanded<S: Carried>(bands: &[S], count: usize, n: usize, is_lower: bool) -> Result<Vec<S>> {
    // A wide matrix of few bands must not take all memory.
    Shape::matrix(n, n)?;
    let mut out = filled(S::ZERO, n.saturating_mul(n))?;
    for band in 0..count {
        let distance = if is_lower { band } else { count - 1 - band };
        for row in 0..n {
            let col = match is_lower {
                true => row.checked_sub(distance),
                false => Some(row + distance).filter(|col| *col < n),
            };
            if let Some(col) = col {
                out[row * n + col] = bands[band * n + row];
            }
        }
    }
    ensure!(
        (0..n).all(|at| out[at * n + at].norm() > 0.0),
        invalid_argument,
        "Input matrix is not invertible."
    );
    Ok(out)
}
