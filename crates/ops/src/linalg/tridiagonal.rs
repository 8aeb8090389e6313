//! `TridiagonalMatMul`: the product of a matrix of three diagonals and a dense one.
//!
//! TensorFlow: TridiagonalMatMul(superdiag: T[..., 1, M], maindiag: T[..., 1, M], subdiag: T[..., 1, M], rhs: T[..., M, N]) ->
//! output: T[..., M, N]. The last element of the superdiagonal and the first of the subdiagonal are not read.

use tensorfleet_graph::example::{ex, ex_err, ex_ref, f32s, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_status::{Code, Result, ensure};

use super::{Carried, Matrices, TYPES, by_carried, gradients};
use crate::math::unary::complex;

pub(crate) static OPS: [OpDef; 1] = [OpDef {
    name: "TridiagonalMatMul",
    inputs: &["superdiag: T", "maindiag: T", "subdiag: T", "rhs: T"],
    outputs: &["output: T"],
    attrs: &["T: {double, float, complex64, complex128}"],
    infer: |ctx| {
        ctx.set(0, ctx.input(3).clone());
        Ok(())
    },
    gradient: Gradient::Rule(gradients::tridiagonal_product),
    kernels: &[cpu(
        &[("T", TYPES)],
        |node| by_carried!(node, S => AnyKernel::sync(multiply::<S>)),
    )],
    exactness: Exactness::Relative(1e-6),
    examples: &[
        ex(
            "three rows",
            &[
                x(&[1, 3], &[1.0, 2.0, 9.0]),
                x(&[1, 3], &[3.0, 4.0, 5.0]),
                x(&[1, 3], &[9.0, 6.0, 7.0]),
                x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            ],
            &[x(&[3, 2], &[6.0, 10.0, 28.0, 40.0, 46.0, 58.0])],
        ),
        ex_ref(
            "complex, two of them",
            &[],
            &[
                complex(
                    &[2, 1, 2],
                    &[(1.0, 1.0), (0.0, 2.0), (3.0, 0.0), (0.5, 0.5)],
                ),
                complex(
                    &[2, 1, 2],
                    &[(2.0, -1.0), (1.0, 2.0), (-3.0, 0.0), (0.5, 1.5)],
                ),
                complex(
                    &[2, 1, 2],
                    &[(1.0, 0.0), (2.0, 2.0), (3.0, 1.0), (0.25, 0.5)],
                ),
                complex(
                    &[2, 2, 1],
                    &[(1.0, 1.0), (0.0, 2.0), (3.0, 0.0), (0.5, 0.5)],
                ),
            ],
        ),
        ex(
            "one row",
            &[
                x(&[1, 1], &[7.0]),
                x(&[1, 1], &[2.0]),
                x(&[1, 1], &[7.0]),
                x(&[1, 2], &[1.0, 3.0]),
            ],
            &[x(&[1, 2], &[2.0, 6.0])],
        ),
        ex_err(
            "superdiagonal",
            &[],
            &[
                f32s(&[1, 2], &[1.0]),
                f32s(&[1, 3], &[1.0]),
                f32s(&[1, 3], &[1.0]),
                f32s(&[3, 1], &[1.0]),
            ],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "outer dimensions",
            &[],
            &[
                f32s(&[2, 1, 3], &[1.0]),
                f32s(&[1, 1, 3], &[1.0]),
                f32s(&[2, 1, 3], &[1.0]),
                f32s(&[2, 3, 1], &[1.0]),
            ],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
}];

fn multiply<S: Carried>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let rhs = ctx.input(3)?;
    let mut found = Vec::with_capacity(4);
    for input in 0..4 {
        found.push(Matrices::of(ctx.input(input)?.shape(), input)?);
    }
    let [first, .., right] = found.as_slice() else {
        return Ok(());
    };
    for other in &found {
        ensure!(
            other.batch.len() == first.batch.len(),
            invalid_argument,
            "All input tensors must have the same rank."
        );
        ensure!(
            other.batch == first.batch,
            invalid_argument,
            "All input tensors must have the same outer dimensions."
        );
    }
    let (n, cols) = (right.rows, right.cols);
    for (diagonal, name) in found
        .iter()
        .zip(["superdiagonal", "main diagonal", "subdiagonal"])
    {
        ensure!(
            diagonal.rows == 1 && diagonal.cols == n,
            invalid_argument,
            "Invalid {name} shape."
        );
    }
    let (above, main) = (S::read(ctx.input(0)?)?, S::read(ctx.input(1)?)?);
    let (below, values) = (S::read(ctx.input(2)?)?, S::read(rhs)?);
    let mut out = vec![S::ZERO; values.len()];
    for (at, out) in out.chunks_mut(cols.max(1)).enumerate() {
        let (row, whole) = (at % n, |row: usize| &values[row * cols..(row + 1) * cols]);
        let mut add = |factor: S, row: usize| {
            for (out, value) in out.iter_mut().zip(whole(row)) {
                *out = *out + factor * *value;
            }
        };
        add(main[at], at);
        if row > 0 {
            add(below[at], at - 1);
        }
        if row + 1 < n {
            add(above[at], at + 1);
        }
    }
    let out = S::write(out, rhs.dtype(), rhs.shape().clone())?;
    ctx.set(0, out);
    Ok(())
}
