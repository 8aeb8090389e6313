//! `MatrixSolve`, `MatrixSolveLs`, `TridiagonalSolve`: systems of linear equations.
//!
//! TensorFlow: MatrixSolve(matrix: T, rhs: T) -> output: T, attr adjoint; MatrixSolveLs(matrix: T, rhs: T, l2_regularizer:
//! double) -> output: T in the sense of least squares (by the normal equations, also with `fast` false);
//! TridiagonalSolve(diagonals: T[..., 3, M], rhs: T[..., M, K]) -> output: T, NaN where there is no solution.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, ex_ref, f32s, f64s, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::linalg::lu::Lu;
use tensorfleet_math::linalg::{adjoint, product, tridiagonal};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::DType;

use super::{Carried, Matrices, TYPES, by_carried, each, gradients};

const SOLVE: OpDef = OpDef {
    inputs: &["matrix: T", "rhs: T"],
    outputs: &["output: T"],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "MatrixSolve",
        attrs: &[
            "adjoint: bool = false",
            "T: {double, float, half, complex64, complex128}",
        ],
        gradient: Gradient::Rule(gradients::solve),
        kernels: &[cpu(&[("T", TYPES)], |node| {
            let is_adjoint = node.attrs.bool("adjoint")?;
            by_carried!(node, S => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| solve::<S>(ctx, is_adjoint)))
        })],
        examples: &[
            ex(
                "needs a swap",
                &[x(&[2, 2], &[0.0, 2.0, 1.0, 1.0]), x(&[2, 1], &[2.0, 3.0])],
                &[x(&[2, 1], &[2.0, 1.0])],
            ),
            ex_attrs(
                "adjoint",
                &[("adjoint", "true")],
                &[x(&[2, 2], &[1.0, 2.0, 0.0, 1.0]), x(&[2, 1], &[1.0, 3.0])],
                &[x(&[2, 1], &[1.0, 1.0])],
            ),
            ex(
                "nothing",
                &[x(&[0, 0], &[]), x(&[0, 2], &[])],
                &[x(&[0, 2], &[])],
            ),
            ex_err(
                "singular",
                &[],
                &[f32s(&[2, 2], &[1.0, 2.0, 2.0, 4.0]), f32s(&[2, 1], &[1.0])],
                Code::InvalidArgument,
                "Input matrix is not invertible.",
            ),
            ex_err(
                "rows differ",
                &[],
                &[f32s(&[2, 2], &[1.0]), f32s(&[3, 1], &[1.0])],
                Code::InvalidArgument,
                "Input matrix and rhs are incompatible.",
            ),
        ],
        ..SOLVE
    },
    OpDef {
        name: "MatrixSolveLs",
        inputs: &["matrix: T", "rhs: T", "l2_regularizer: double"],
        attrs: &[
            "T: {double, float, half, complex64, complex128}",
            "fast: bool = true",
        ],
        gradient: Gradient::Rule(gradients::least_squares),
        kernels: &[cpu(&[("T", TYPES)], |node| {
            let is_fast = node.attrs.bool("fast")?;
            by_carried!(node, S => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| least_squares::<S>(ctx, is_fast)))
        })],
        examples: &[
            ex_ref(
                "tall",
                &[],
                &[
                    f64s(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0]),
                    f64s(&[3, 1], &[1.0, 2.0, 4.0]),
                    f64s(&[], &[0.25]),
                ],
            ),
            // In float: in double differences would make the regularizer negative.
            ex_ref(
                "tall, not regularised",
                &[],
                &[
                    f32s(&[3, 2], &[1.0, 0.0, 1.0, 1.0, 0.0, 2.0]),
                    f32s(&[3, 1], &[1.0, 2.0, 4.0]),
                    f64s(&[], &[0.0]),
                ],
            ),
            ex_ref(
                "wide, not regularised",
                &[],
                &[
                    f32s(&[2, 1, 2], &[3.0, 4.0, 1.0, 2.0]),
                    f32s(&[2, 1, 1], &[10.0, 2.0]),
                    f64s(&[], &[0.0]),
                ],
            ),
            ex_ref(
                "wide, regularised",
                &[],
                &[
                    f64s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0]),
                    f64s(&[2, 1], &[1.0, 2.0]),
                    f64s(&[], &[0.5]),
                ],
            ),
        ],
        ..SOLVE
    },
    OpDef {
        name: "TridiagonalSolve",
        inputs: &["diagonals: T", "rhs: T"],
        attrs: &[
            "partial_pivoting: bool = true",
            "perturb_singular: bool = false",
            "T: {double, float, complex64, complex128}",
        ],
        gradient: Gradient::Rule(gradients::tridiagonal_solve),
        kernels: &[cpu(&[("T", TYPES)], build_tridiagonal)],
        examples: &[
            ex(
                "three rows",
                &[
                    x(&[3, 3], &[1.0, 1.0, 0.0, 2.0, 2.0, 2.0, 0.0, 1.0, 1.0]),
                    x(&[3, 1], &[3.0, 4.0, 3.0]),
                ],
                &[x(&[3, 1], &[1.0, 1.0, 1.0])],
            ),
            ex_ref(
                "singular",
                &[],
                &[f64s(&[3, 2], &[0.0]), f64s(&[2, 1], &[1.0])],
            ),
            ex_ref(
                "singular, perturbed",
                &[("perturb_singular", "true")],
                &[f64s(&[3, 2], &[0.0]), f64s(&[2, 1], &[1.0])],
            ),
            ex_err(
                "two diagonals",
                &[],
                &[f64s(&[2, 3], &[1.0]), f64s(&[3, 1], &[1.0])],
                Code::InvalidArgument,
                "Expected diagonals to be provided as a matrix with 3 rows, got 2 rows.",
            ),
        ],
        ..SOLVE
    },
];

/// Both inputs, whose batch dimensions must be the same.
fn pair(ctx: &KernelCtx<'_>) -> Result<(Matrices, Matrices)> {
    let a = Matrices::of(ctx.input(0)?.shape(), 0)?;
    let b = Matrices::of(ctx.input(1)?.shape(), 1)?;
    ensure!(
        a.batch == b.batch,
        invalid_argument,
        "All input tensors must have the same outer dimensions, got shapes {} and {}",
        ctx.input(0)?.shape(),
        ctx.input(1)?.shape()
    );
    Ok((a, b))
}

fn solve<S: Carried>(ctx: &mut KernelCtx<'_>, is_adjoint: bool) -> Result<()> {
    let (a, b) = pair(ctx)?;
    ensure!(
        a.rows == a.cols,
        invalid_argument,
        "First input (lhs) must be a square matrix."
    );
    ensure!(
        a.rows == b.rows,
        invalid_argument,
        "Input matrix and rhs are incompatible."
    );
    let (left, right) = (ctx.input(0)?, ctx.input(1)?);
    let (n, batch) = (
        a.rows,
        (a.count(), a.size().saturating_mul(a.rows + b.cols)),
    );
    let outputs = [(right.dtype(), right.shape().clone())];
    let [out] = each::<S, 1>(ctx, batch, outputs, &|at| {
        let mut matrix = S::matrix(left, at, a.size())?;
        if is_adjoint {
            matrix = adjoint(&matrix, n, n);
        }
        let lu = Lu::new(&matrix, n);
        // Nothing is solved where there is nothing to solve for, as in TensorFlow.
        ensure!(
            b.cols == 0 || lu.is_invertible(),
            invalid_argument,
            "Input matrix is not invertible."
        );
        Ok([lu.solve(&S::matrix(right, at, b.size())?, b.cols)])
    })?;
    ctx.set(0, out);
    Ok(())
}

fn least_squares<S: Carried>(ctx: &mut KernelCtx<'_>, is_fast: bool) -> Result<()> {
    let (a, b) = pair(ctx)?;
    ensure!(
        a.rows == b.rows,
        invalid_argument,
        "Input matrix and rhs are incompatible."
    );
    let regularizer = ctx.scalar::<f64>(2)?;
    ensure!(
        regularizer >= 0.0,
        invalid_argument,
        "l2_regularizer must be >= 0."
    );
    let regularizer = if is_fast { regularizer } else { 0.0 };
    let (left, right) = (ctx.input(0)?, ctx.input(1)?);
    let (rows, cols) = (a.rows, a.cols);
    let outputs = [(right.dtype(), a.shape(&[cols, b.cols])?)];
    let batch = (a.count(), a.size().saturating_mul(cols + b.cols));
    let [out] = each::<S, 1>(ctx, batch, outputs, &|at| {
        let matrix = S::matrix(left, at, a.size())?;
        let rhs = S::matrix(right, at, b.size())?;
        let turned = adjoint(&matrix, rows, cols);
        let is_tall = rows >= cols;
        let n = rows.min(cols);
        let mut square = match is_tall {
            true => product(&turned, &matrix, cols, rows, cols),
            false => product(&matrix, &turned, rows, cols, rows),
        };
        for k in 0..n {
            square[k * n + k] = square[k * n + k] + S::of(regularizer);
        }
        let lu = Lu::new(&square, n);
        ensure!(
            lu.is_invertible() || b.cols == 0,
            invalid_argument,
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger l2_regularizer > 0."
        );
        Ok([match is_tall {
            true => lu.solve(&product(&turned, &rhs, cols, rows, b.cols), b.cols),
            false => product(&turned, &lu.solve(&rhs, b.cols), cols, rows, b.cols),
        }])
    })?;
    ctx.set(0, out);
    Ok(())
}

fn build_tridiagonal(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let is_pivoting = attrs.bool("partial_pivoting")?;
    let least = match (attrs.bool("perturb_singular")?, attrs.dtype("T")?) {
        (false, _) => 0.0,
        (true, DType::F32 | DType::C64) => f64::from(f32::MIN_POSITIVE),
        (true, _) => f64::MIN_POSITIVE,
    };
    by_carried!(node, S => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        three_diagonals::<S>(ctx, is_pivoting, least)
    }))
}

fn three_diagonals<S: Carried>(
    ctx: &mut KernelCtx<'_>,
    is_pivoting: bool,
    least: f64,
) -> Result<()> {
    let (a, b) = pair(ctx)?;
    if a.rows != 3 {
        return Err(invalid_argument!(
            "Expected diagonals to be provided as a matrix with 3 rows, got {} rows.",
            a.rows
        ));
    }
    ensure!(
        a.cols == b.rows,
        invalid_argument,
        "Expected the same number of left-hand sides and right-hand sides, got {} and {}.",
        a.cols,
        b.rows
    );
    let (left, right) = (ctx.input(0)?, ctx.input(1)?);
    let outputs = [(right.dtype(), right.shape().clone())];
    let (n, batch) = (a.cols, (a.count(), b.size()));
    let [out] = each::<S, 1>(ctx, batch, outputs, &|at| {
        let diagonals = S::matrix(left, at, a.size())?;
        let diagonals = [
            &diagonals[..n],
            &diagonals[n..2 * n],
            &diagonals[2 * n..3 * n],
        ];
        let rhs = S::matrix(right, at, b.size())?;
        let solved = tridiagonal::solve(diagonals, &rhs, b.cols, is_pivoting, least);
        Ok([solved.unwrap_or_else(|| vec![S::of(f64::NAN); b.size()])])
    })?;
    ctx.set(0, out);
    Ok(())
}
