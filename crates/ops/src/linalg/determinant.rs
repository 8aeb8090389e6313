//! `MatrixDeterminant`, `LogMatrixDeterminant`, `MatrixInverse`, `Lu`: what LU factorisation gives.
//!
//! TensorFlow: MatrixDeterminant(input: T) -> output: T; LogMatrixDeterminant(input: T) -> (sign: T, log_abs_determinant: T);
//! MatrixInverse(input: T) -> output: T, attr adjoint; Lu(input: T) -> (lu: T, p: output_idx_type).

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, ex_ref, f32s, f64s, i64s, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::linalg::lu::Lu;
use tensorfleet_math::linalg::{adjoint, identity};
use tensorfleet_status::{Code, Result, ensure, internal};
use tensorfleet_tensor::{DType, Tensor};

use super::{Carried, Matrices, TYPES, by_carried, each, gradients};

const LU: OpDef = OpDef {
    inputs: &["input: T"],
    outputs: &["output: T"],
    attrs: &["T: {half, float, double, complex64, complex128}"],
    gradient: Gradient::None("not needed by training so far"),
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};

const INVERTIBLE: &[DType] = &[DType::F16, DType::F32, DType::F64, DType::C64, DType::C128];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "LogMatrixDeterminant",
        outputs: &["sign: T", "log_abs_determinant: T"],
        gradient: Gradient::Rule(gradients::log_determinant),
        kernels: &[cpu(
            &[("T", TYPES)],
            |node| by_carried!(node, S => AnyKernel::sync(log_determinant::<S>)),
        )],
        examples: &[
            ex(
                "minus one",
                &[x(&[2, 2], &[0.0, 1.0, 1.0, 0.0])],
                &[x(&[], &[-1.0]), x(&[], &[0.0])],
            ),
            ex(
                "without bounds",
                &[f32s(&[2, 2], &[f64::INFINITY, 1.0, 1.0, -1.0])],
                &[f32s(&[], &[-1.0]), f32s(&[], &[f64::INFINITY])],
            ),
            ex_ref(
                "two of them",
                &[],
                &[f64s(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.5, 2.0, 1.0, 1.0, 3.0])],
            ),
        ],
        ..LU
    },
    OpDef {
        name: "Lu",
        outputs: &["lu: T", "p: output_idx_type"],
        attrs: &[
            "T: {double, float, half, complex64, complex128}",
            "output_idx_type: {int32, int64} = DT_INT32",
        ],
        kernels: &[cpu(&[("T", TYPES)], |node| {
            let index = node.attrs.dtype("output_idx_type")?;
            by_carried!(node, S => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| lu::<S>(ctx, index)))
        })],
        examples: &[
            ex_attrs(
                "swapped rows",
                &[("output_idx_type", "int64")],
                &[x(&[2, 2], &[0.0, 2.0, 1.0, 1.0])],
                &[x(&[2, 2], &[1.0, 1.0, 0.0, 2.0]), i64s(&[2], &[1, 0])],
            ),
            ex_err(
                "singular",
                &[],
                &[f32s(&[2, 2], &[1.0, 2.0, 2.0, 4.0])],
                Code::InvalidArgument,
                "Input is not invertible.",
            ),
        ],
        ..LU
    },
    OpDef {
        name: "MatrixDeterminant",
        gradient: Gradient::Rule(gradients::determinant),
        kernels: &[cpu(
            &[("T", TYPES)],
            |node| by_carried!(node, S => AnyKernel::sync(determinant::<S>)),
        )],
        examples: &[
            ex(
                "two by two",
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
                &[x(&[], &[-2.0])],
            ),
            ex("nothing", &[x(&[2, 0, 0], &[])], &[x(&[2], &[1.0])]),
            ex_err(
                "not square",
                &[],
                &[f32s(&[2, 3], &[1.0])],
                Code::InvalidArgument,
                "Input matrix must be square.",
            ),
        ],
        ..LU
    },
    OpDef {
        name: "MatrixInverse",
        attrs: &[
            "adjoint: bool = false",
            "T: {double, float, half, complex64, complex128}",
        ],
        infer: infer::same_as_first,
        gradient: Gradient::Rule(gradients::inverse),
        kernels: &[cpu(&[("T", INVERTIBLE)], |node| {
            let is_adjoint = node.attrs.bool("adjoint")?;
            by_carried!(node, S => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| inverse::<S>(ctx, is_adjoint)))
        })],
        examples: &[
            ex(
                "two by two",
                &[x(&[2, 2], &[2.0, 0.0, 0.0, 4.0])],
                &[x(&[2, 2], &[0.5, 0.0, 0.0, 0.25])],
            ),
            ex_attrs(
                "of the adjoint",
                &[("adjoint", "true")],
                &[f64s(&[2, 2], &[1.0, 1.0, 0.0, 1.0])],
                &[f64s(&[2, 2], &[1.0, 0.0, -1.0, 1.0])],
            ),
            ex_err(
                "singular",
                &[],
                &[f32s(&[2, 2], &[1.0, 2.0, 2.0, 4.0])],
                Code::InvalidArgument,
                "Input is not invertible.",
            ),
            ex_err(
                "rank",
                &[],
                &[f32s(&[2], &[1.0])],
                Code::InvalidArgument,
                "Input tensor 0 must have rank >= 2, got 1",
            ),
        ],
        ..LU
    },
];

/// New tensors of this shape after the batch's dimensions, from the factors of every matrix of the input.
fn factored<S: Carried, const N: usize>(
    ctx: &KernelCtx<'_>,
    outputs: [(DType, &[usize]); N],
    body: impl Fn(Lu<S>) -> Result<[Vec<S>; N]> + Sync,
) -> Result<[Tensor; N]> {
    let input = ctx.input(0)?;
    let matrices = Matrices::square(input.shape())?;
    let (n, size) = (matrices.rows, matrices.size());
    let mut shaped = Vec::with_capacity(N);
    for (dtype, inner) in outputs {
        shaped.push((dtype, matrices.shape(inner)?));
    }
    let wrong = |_| internal!("outputs of another number");
    let outputs = shaped.try_into().map_err(wrong)?;
    each(ctx, (matrices.count(), size * n), outputs, &|at| {
        body(Lu::new(&S::matrix(input, at, size)?, n))
    })
}

/// Sign (a number of length one, or zero) and logarithm of the magnitude.
fn sign_and_log<S: Carried>(lu: &Lu<S>) -> (S, f64) {
    let start = if lu.is_odd { -S::ONE } else { S::ONE };
    lu.pivots().fold((start, 0.0), |(sign, log), pivot| {
        let size = pivot.norm();
        let turn = if size == 0.0 {
            S::ZERO
        } else if size.is_infinite() {
            S::of(pivot.real().signum())
        } else {
            pivot / S::of(size)
        };
        (sign * turn, log + size.ln())
    })
}

fn determinant<S: Carried>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let dtype = ctx.input(0)?.dtype();
    let [out] = factored(ctx, [(dtype, &[])], |lu: Lu<S>| {
        let start = if lu.is_odd { -S::ONE } else { S::ONE };
        let product = lu.pivots().fold(start, |product, pivot| product * pivot);
        Ok([vec![product]])
    })?;
    ctx.set(0, out);
    Ok(())
}

fn log_determinant<S: Carried>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let dtype = ctx.input(0)?.dtype();
    let outputs: [(DType, &[usize]); 2] = [(dtype, &[]), (dtype, &[])];
    let [sign, log] = factored(ctx, outputs, |lu: Lu<S>| {
        let (sign, log) = sign_and_log(&lu);
        Ok([vec![sign], vec![S::of(log)]])
    })?;
    ctx.set(0, sign);
    ctx.set(1, log);
    Ok(())
}

/// Fails if a matrix has none of its kind.
fn check_invertible<S: Carried>(lu: &Lu<S>) -> Result<()> {
    ensure!(
        lu.is_invertible(),
        invalid_argument,
        "Input is not invertible."
    );
    Ok(())
}

/// The side of the input's matrices.
fn side(ctx: &KernelCtx<'_>) -> Result<usize> {
    Ok(Matrices::square(ctx.input(0)?.shape())?.rows)
}

fn inverse<S: Carried>(ctx: &mut KernelCtx<'_>, is_adjoint: bool) -> Result<()> {
    let (dtype, n) = (ctx.input(0)?.dtype(), side(ctx)?);
    let [out] = factored(ctx, [(dtype, &[n, n])], |lu: Lu<S>| {
        check_invertible(&lu)?;
        let inverse = lu.solve(&identity(n), n);
        Ok([match is_adjoint {
            true => adjoint(&inverse, n, n),
            false => inverse,
        }])
    })?;
    ctx.set(0, out);
    Ok(())
}

fn lu<S: Carried>(ctx: &mut KernelCtx<'_>, index: DType) -> Result<()> {
    let (dtype, n) = (ctx.input(0)?.dtype(), side(ctx)?);
    let outputs: [(DType, &[usize]); 2] = [(dtype, &[n, n]), (index, &[n])];
    let [factors, rows] = factored(ctx, outputs, |lu: Lu<S>| {
        check_invertible(&lu)?;
        let rows = lu.rows.iter().map(|row| S::of(*row as f64)).collect();
        Ok([lu.factors, rows])
    })?;
    ctx.set(0, factors);
    ctx.set(1, rows);
    Ok(())
}
