//! `FFT`, `FFT2D`, `FFT3D` and their inverses.
//!
//! TensorFlow: Op(input: Tcomplex) -> output: Tcomplex, of the last one, two or three dimensions. The inverse is divided by
//! the number of elements transformed.

use num_complex::Complex;
use tensorfleet_graph::example::{c64s, ex, ex_err, ex_ref};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::fft::{Direction, Real};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{DType, Element};

use super::plans::Plans;
use super::{NUMBERS, gradients, leading};
use crate::math::elementwise::lengths;
use crate::math::unary::complex;

const TRANSFORM: OpDef = OpDef {
    inputs: &["input: Tcomplex"],
    outputs: &["output: Tcomplex"],
    attrs: &["Tcomplex: {complex64, complex128} = DT_COMPLEX64"],
    infer: infer::same_as_first,
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "FFT",
        gradient: Gradient::Rule(|g| gradients::complex(g, "IFFT", 1)),
        kernels: &[cpu(&[], |node| build(node, 1, Direction::Forward))],
        examples: &[
            ex(
                "four",
                &[c64s(
                    &[4],
                    &[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (4.0, 0.0)],
                )],
                &[c64s(
                    &[4],
                    &[(10.0, 0.0), (-2.0, 2.0), (-2.0, 0.0), (-2.0, -2.0)],
                )],
            ),
            ex_ref("rows of six", &[], &[complex(&[2, 6], NUMBERS)]),
            ex_ref("rows of four", &[], &[complex(&[3, 1, 4], NUMBERS)]),
            ex_ref("a prime length", &[], &[c64s(&[11], PRIME)]),
            ex(
                "no rows",
                &[complex(&[0, 4], &[])],
                &[complex(&[0, 4], &[])],
            ),
            ex(
                "empty rows",
                &[complex(&[3, 0], &[])],
                &[complex(&[3, 0], &[])],
            ),
            ex_err(
                "scalar",
                &[],
                &[complex(&[], &[(1.0, 0.0)])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..TRANSFORM
    },
    OpDef {
        name: "IFFT",
        gradient: Gradient::Rule(|g| gradients::complex(g, "FFT", 1)),
        kernels: &[cpu(&[], |node| build(node, 1, Direction::Inverse))],
        examples: &[
            ex(
                "four",
                &[c64s(
                    &[4],
                    &[(10.0, 0.0), (-2.0, 2.0), (-2.0, 0.0), (-2.0, -2.0)],
                )],
                &[c64s(
                    &[4],
                    &[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (4.0, 0.0)],
                )],
            ),
            ex_ref("rows of three", &[], &[complex(&[4, 3], NUMBERS)]),
        ],
        ..TRANSFORM
    },
    OpDef {
        name: "FFT2D",
        gradient: Gradient::Rule(|g| gradients::complex(g, "IFFT2D", 2)),
        kernels: &[cpu(&[], |node| build(node, 2, Direction::Forward))],
        examples: &[
            ex_ref("matrices", &[], &[complex(&[2, 3, 2], NUMBERS)]),
            ex_err(
                "vector",
                &[],
                &[complex(&[2], &[(1.0, 0.0)])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..TRANSFORM
    },
    OpDef {
        name: "IFFT2D",
        gradient: Gradient::Rule(|g| gradients::complex(g, "FFT2D", 2)),
        kernels: &[cpu(&[], |node| build(node, 2, Direction::Inverse))],
        examples: &[ex_ref("matrix", &[], &[complex(&[4, 3], NUMBERS)])],
        ..TRANSFORM
    },
    OpDef {
        name: "FFT3D",
        gradient: Gradient::Rule(|g| gradients::complex(g, "IFFT3D", 3)),
        kernels: &[cpu(&[], |node| build(node, 3, Direction::Forward))],
        examples: &[
            ex_ref("box", &[], &[complex(&[2, 3, 2], NUMBERS)]),
            ex_ref("two boxes", &[], &[complex(&[2, 3, 1, 2], NUMBERS)]),
        ],
        ..TRANSFORM
    },
    OpDef {
        name: "IFFT3D",
        gradient: Gradient::Rule(|g| gradients::complex(g, "FFT3D", 3)),
        kernels: &[cpu(&[], |node| build(node, 3, Direction::Inverse))],
        examples: &[ex_ref("box", &[], &[complex(&[2, 2, 3], NUMBERS)])],
        ..TRANSFORM
    },
];

const PRIME: &[(f64, f64)] = NUMBERS.split_at(11).0;

fn build(node: &NodeInfo, rank: usize, direction: Direction) -> Result<AnyKernel> {
    match node.attrs.dtype("Tcomplex")? {
        DType::C64 => build_of::<f32>(rank, direction),
        _ => build_of::<f64>(rank, direction),
    }
}

fn build_of<T: Real>(rank: usize, direction: Direction) -> Result<AnyKernel>
where
    Complex<T>: Element,
{
    let plans = Plans::new();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut data = ctx.take(0)?;
        let before = leading(data.shape(), rank)?;
        let dims = lengths(data.shape());
        let scale = match direction {
            Direction::Forward => 1.0,
            Direction::Inverse => {
                1.0 / dims[before..]
                    .iter()
                    .map(|dim| *dim as f64)
                    .product::<f64>()
            }
        };
        let values = data.slice_mut::<Complex<T>>()?;
        plans.transform(ctx.par(), values, (&dims[before..], 1), direction, scale);
        ctx.set(0, data);
        Ok(())
    })
}
