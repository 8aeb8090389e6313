//! `MatrixSquareRoot`, `MatrixLogarithm`: functions of whole matrices.
//!
//! TensorFlow: Op(input: T[..., M, M]) -> output: T[..., M, M]; the logarithm of complex matrices only. The root of a real
//! matrix that has none is NaN.

use tensorfleet_graph::example::{ex, ex_err, ex_ref, f32s, f64s};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::linalg::functions::{has_negative_eigenvalue, logarithm, square_root};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::Complex64;

use super::{Carried, Matrices, TYPES, gradients};
use crate::math::unary::complex;
use crate::types::COMPLEX;

const FUNCTION: OpDef = OpDef {
    inputs: &["input: T"],
    outputs: &["output: T"],
    infer: infer::same_as_first,
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};

const VALUES: &[(f64, f64)] = &[(4.0, 0.5), (0.5, -0.25), (1.0, 1.0), (3.0, -1.0)];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "MatrixLogarithm",
        attrs: &["T: {complex64, complex128}"],
        kernels: &[cpu(&[("T", COMPLEX)], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| apply(ctx, logarithm))
        })],
        examples: &[
            ex_ref("square", &[], &[complex(&[2, 2], VALUES)]),
            ex_err(
                "not square",
                &[],
                &[complex(&[1, 2], &[(1.0, 0.0)])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..FUNCTION
    },
    OpDef {
        name: "MatrixSquareRoot",
        attrs: &["T: {double, float, half, complex64, complex128}"],
        gradient: Gradient::Rule(gradients::square_root),
        kernels: &[cpu(&[("T", TYPES)], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| apply(ctx, square_root))
        })],
        examples: &[
            ex_ref(
                "two",
                &[],
                &[f64s(
                    &[2, 2, 2],
                    &[33.0, 24.0, 48.0, 57.0, 2.0, 1.0, 1.0, 2.0],
                )],
            ),
            ex_ref("single", &[], &[f32s(&[2, 2], &[0.0, 4.0, -1.0, 5.0])]),
            ex_ref("complex", &[], &[complex(&[2, 2], VALUES)]),
            ex_ref("zero", &[], &[f32s(&[2, 2], &[0.0])]),
            ex("nothing", &[f64s(&[0, 0], &[])], &[f64s(&[0, 0], &[])]),
            ex_err(
                "not square",
                &[],
                &[f32s(&[2, 3], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..FUNCTION
    },
];

fn apply(
    ctx: &mut KernelCtx<'_>,
    function: fn(&[Complex64], usize) -> Option<Vec<Complex64>>,
) -> Result<()> {
    let input = ctx.input(0)?;
    let matrices = Matrices::square(input.shape())?;
    let (dtype, n, size) = (input.dtype(), matrices.rows, matrices.size());
    let values = Complex64::read(input)?;
    let mut out = Vec::with_capacity(values.len());
    let count = if size == 0 { 0 } else { matrices.count() };
    for at in 0..count {
        ctx.poll();
        let own = &values[at * size..(at + 1) * size];
        let is_real = dtype.is_complex() || !has_negative_eigenvalue(own, n);
        let found = function(own, n).filter(|_| is_real);
        out.extend(found.unwrap_or_else(|| vec![Complex64::new(f64::NAN, f64::NAN); size]));
    }
    let shape = input.shape().clone();
    let out = match dtype.is_complex() {
        true => Complex64::write(out, dtype, shape)?,
        false => f64::write(out.into_iter().map(|x| x.re).collect(), dtype, shape)?,
    };
    ctx.set(0, out);
    Ok(())
}
