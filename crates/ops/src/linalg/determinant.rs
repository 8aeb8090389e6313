//! `MatrixDeterminant`, `LogMatrixDeterminant`, `MatrixInverse`, `Lu`: what LU factorisation gives.
//!
//! TensorFlow: MatrixDeterminant(input: T) -> output: T; LogMatrixDeterminant(input: T) -> (sign: T, log_abs_determinant: T);
//! MatrixInverse(input: T) -> output: T, attr adjoint; Lu(input: T) -> (lu: T, p: output_idx_type).

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, ex_ref, f32s, f64s, i64s, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::linalg::lu::Lu;
use tensorfleet_math::linalg::{adjoint, identity};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Tensor};

use super::{Carried, Matrices, TYPES, by_carried, gradients};

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

/// The factors of every matrix of the input.
fn factored<S: Carried>(ctx: &KernelCtx<'_>) -> Result<(Matrices, Vec<Lu<S>>)> {
    let input = ctx.input(0)?;
    let matrices = Matrices::square(input.shape())?;
    let values = S::read(input)?;
    let (n, size) = (matrices.rows, matrices.size());
    let factor = |at: usize| Lu::new(&values[at * size..(at + 1) * size], n);
    let all = (0..matrices.count()).map(factor).collect();
    Ok((matrices, all))
}

/// Sign (a number of length one, or zero) and logarithm of the magnitude.
fn sign_and_log<S: Carried>(lu: &Lu<S>) -> (S, f64) {
    let start = if lu.is_odd { -S::ONE } else { S::ONE };
    lu.pivots().fold((start, 0.0), |(sign, log), pivot| {
        let size = pivot.norm();
        let turn = if size == 0.0 {
            S::ZERO
        } else {
            pivot / S::of(size)
        };
        (sign * turn, log + size.ln())
    })
}

fn determinant<S: Carried>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (matrices, all) = factored::<S>(ctx)?;
    let values = all.iter().map(|lu| {
        let start = if lu.is_odd { -S::ONE } else { S::ONE };
        lu.pivots().fold(start, |product, pivot| product * pivot)
    });
    let dtype = ctx.input(0)?.dtype();
    let out = S::write(values.collect(), dtype, matrices.shape(&[])?)?;
    ctx.set(0, out);
    Ok(())
}

fn log_determinant<S: Carried>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (matrices, all) = factored::<S>(ctx)?;
    let (signs, logs): (Vec<S>, Vec<S>) = all
        .iter()
        .map(|lu| {
            let (sign, log) = sign_and_log(lu);
            (sign, S::of(log))
        })
        .unzip();
    let (dtype, shape) = (ctx.input(0)?.dtype(), matrices.shape(&[])?);
    ctx.set(0, S::write(signs, dtype, shape.clone())?);
    ctx.set(1, S::write(logs, dtype, shape)?);
    Ok(())
}

fn inverse<S: Carried>(ctx: &mut KernelCtx<'_>, is_adjoint: bool) -> Result<()> {
    let (matrices, all) = factored::<S>(ctx)?;
    let n = matrices.rows;
    let mut out = Vec::with_capacity(ctx.input(0)?.elements());
    for lu in &all {
        ensure!(
            lu.is_invertible(),
            invalid_argument,
            "Input is not invertible."
        );
        let inverse = lu.solve(&identity(n), n);
        out.extend(match is_adjoint {
            true => adjoint(&inverse, n, n),
            false => inverse,
        });
    }
    let input = ctx.input(0)?;
    let out = S::write(out, input.dtype(), input.shape().clone())?;
    ctx.set(0, out);
    Ok(())
}

fn lu<S: Carried>(ctx: &mut KernelCtx<'_>, index: DType) -> Result<()> {
    let (matrices, all) = factored::<S>(ctx)?;
    let (mut factors, mut rows) = (Vec::new(), Vec::new());
    for lu in all {
        ensure!(
            lu.is_invertible(),
            invalid_argument,
            "Input is not invertible."
        );
        factors.extend(lu.factors);
        rows.extend(lu.rows.iter().map(|row| *row as i64));
    }
    let input = ctx.input(0)?;
    let factors = S::write(factors, input.dtype(), input.shape().clone())?;
    let shape = matrices.shape(&[matrices.rows])?;
    let rows = match index {
        DType::I64 => Tensor::from_vec(shape, rows)?,
        _ => Tensor::from_vec(shape, rows.iter().map(|row| *row as i32).collect())?,
    };
    ctx.set(0, factors);
    ctx.set(1, rows);
    Ok(())
}
