//! `Cholesky`: the lower triangle whose product with its adjoint is the matrix.
//!
//! TensorFlow: Cholesky(input: T) -> output: T. Only the lower triangle is read; where the matrix is not positive definite the
//! triangle is full of NaN.

use tensorfleet_graph::example::{ex, ex_err, f32s, f64s, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::linalg::cholesky::cholesky;
use tensorfleet_status::{Code, Result};

use super::{Carried, Matrices, TYPES, by_carried, gradients};

pub(crate) static OPS: [OpDef; 1] = [OpDef {
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
}];

fn factor<S: Carried>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let input = ctx.input(0)?;
    let matrices = Matrices::square(input.shape())?;
    let (values, n, size) = (S::read(input)?, matrices.rows, matrices.size());
    let mut out = Vec::with_capacity(values.len());
    for at in 0..matrices.count() {
        let lower = cholesky(&values[at * size..(at + 1) * size], n);
        out.extend(lower.unwrap_or_else(|| {
            let nan = |at: usize| {
                if at % n <= at / n {
                    S::of(f64::NAN)
                } else {
                    S::ZERO
                }
            };
            (0..size).map(nan).collect()
        }));
    }
    let out = S::write(out, input.dtype(), input.shape().clone())?;
    ctx.set(0, out);
    Ok(())
}
