//! `Cholesky`: the lower triangle whose product with its adjoint is the matrix; `CholeskyGrad`, its gradient as an op.
//!
//! TensorFlow: Cholesky(input: T) -> output: T; CholeskyGrad(l: T, grad: T) -> output: T. Only the lower triangle is read; where
//! the matrix is not positive definite the triangle is full of NaN.

use tensorfleet_graph::example::{ex, ex_err, ex_ref, f32s, f64s, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::linalg::cholesky::cholesky;
use tensorfleet_math::linalg::{adjoint, product, triangular};
use tensorfleet_status::{Code, Result, ensure};

use super::{Carried, Matrices, TYPES, by_carried, each, gradients};
use crate::types::SINGLE_AND_DOUBLE;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Cholesky",
        inputs: &["input: T"],
        outputs: &["output: T"],
        attrs: &["T: {double, float, half, complex64, complex128}"],
        infer: infer::same_as_first,
        gradient: Gradient::Rule(gradients::cholesky),
        kernels: &[cpu(
            &[("T", TYPES)],
            |node| by_carried!(node, S => AnyKernel::sync(factor::<S>)),
        )],
        cost: Cost::Expensive,
        exactness: Exactness::Relative(1e-5),
        examples: &[
            ex(
                "two by two",
                &[x(&[2, 2], &[4.0, 2.0, 2.0, 5.0])],
                &[x(&[2, 2], &[2.0, 0.0, 1.0, 2.0])],
            ),
            ex("nothing", &[f64s(&[0, 0], &[])], &[f64s(&[0, 0], &[])]),
            ex_err(
                "not square",
                &[],
                &[f32s(&[2, 3], &[1.0])],
                Code::InvalidArgument,
                "Input matrix must be square.",
            ),
        ],
        ..OpDef::BLANK
    },
    OpDef {
        name: "CholeskyGrad",
        inputs: &["l: T", "grad: T"],
        outputs: &["output: T"],
        attrs: &["T: {half, float, double}"],
        infer: infer::same_as_first,
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |_| {
            AnyKernel::sync(gradient)
        })],
        cost: Cost::Expensive,
        exactness: Exactness::Relative(1e-5),
        examples: &[
            ex_ref(
                "two by two",
                &[],
                &[
                    x(&[2, 2], &[2.0, 7.0, 1.0, 4.0]),
                    x(&[2, 2], &[1.0, 5.0, 3.0, 0.5]),
                ],
            ),
            ex_ref(
                "two of them",
                &[],
                &[f64s(&[2, 1, 1], &[2.0, 3.0]), f64s(&[2, 1, 1], &[1.0, 4.0])],
            ),
            ex_err(
                "shapes",
                &[],
                &[f64s(&[2, 2], &[1.0]), f64s(&[1, 1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..OpDef::BLANK
    },
];

fn factor<S: Carried>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let input = ctx.input(0)?;
    let matrices = Matrices::square(input.shape())?;
    let (n, size) = (matrices.rows, matrices.size());
    let outputs = [(input.dtype(), input.shape().clone())];
    let [out] = each::<S, 1>(ctx, (matrices.count(), size * n), outputs, &|at| {
        let lower = cholesky(&S::matrix(input, at, size)?, n);
        Ok([lower.unwrap_or_else(|| {
            let nan = |at: usize| {
                if at % n <= at / n {
                    S::of(f64::NAN)
                } else {
                    S::ZERO
                }
            };
            (0..size).map(nan).collect()
        })])
    })?;
    ctx.set(0, out);
    Ok(())
}

/// (S + Sᵀ) / 2 with S = L⁻ᵀ · Φ(Lᵀ · dL) · L⁻¹, where Φ takes the lower triangle and half the diagonal.
fn gradient(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (lower, grad) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        lower.shape() == grad.shape(),
        invalid_argument,
        "Inputs (L and grad) must have the same shape."
    );
    let matrices = Matrices::square(lower.shape())?;
    let (n, size) = (matrices.rows, matrices.size());
    let below = |values: Vec<f64>| -> Vec<f64> {
        let kept = |(at, value): (usize, &f64)| if at % n > at / n { 0.0 } else { *value };
        values.iter().enumerate().map(kept).collect()
    };
    let outputs = [(lower.dtype(), lower.shape().clone())];
    let [out] = each::<f64, 1>(ctx, (matrices.count(), size * n), outputs, &|at| {
        let l = below(f64::matrix(lower, at, size)?);
        let dl = below(f64::matrix(grad, at, size)?);
        let turned = adjoint(&l, n, n);
        let mut middle = below(product(&turned, &dl, n, n, n));
        for k in 0..n {
            middle[k * n + k] *= 0.5;
        }
        let half = triangular::solve(&turned, &middle, n, n, false);
        let whole = triangular::solve(&turned, &adjoint(&half, n, n), n, n, false);
        let mean = |at: usize| 0.5 * (whole[at] + whole[at % n * n + at / n]);
        Ok([(0..size).map(mean).collect()])
    })?;
    ctx.set(0, out);
    Ok(())
}
