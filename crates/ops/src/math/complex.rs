//! Complex numbers made and taken apart.
//!
//! TensorFlow: Complex(real: T, imag: T) -> out: Tout, broadcasting; Real, Imag, Angle(input: T) -> output: Tout;
//! ComplexAbs(x: T) -> y: Tout; Conj(input: T) -> output: T. Pairs of types are float with complex64, double with complex128.
//! Of variants only sparse matrices have a conjugate, as in TensorFlow.

use num_complex::Complex;
use tensorfleet_graph::example::{c64s, ex, ex_ref, f32s};
use tensorfleet_graph::gradient::GradCtx;
use tensorfleet_graph::gradient::dense;
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::unary::{ComplexOf, ComplexPart, Unary, complex_part};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Element};

use super::calculus::Calculus;
use super::elementwise::{broadcast, expanded, input_dtype, unary};
use super::unary::complex;
use crate::sparse::csr;
use crate::types::COMPLEX;

const NUMBERS: &[(f64, f64)] = &[(3.0, 4.0), (0.0, -2.0), (-1.5, 0.0)];

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "Complex",
        inputs: &["real: T", "imag: T"],
        outputs: &["out: Tout"],
        attrs: &[
            "T: {float, double} = DT_FLOAT",
            "Tout: {complex64, complex128} = DT_COMPLEX64",
        ],
        infer: infer::broadcast,
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let (re, im) = (real(g, "Real", grad)?, real(g, "Imag", grad)?);
            g.unbroadcast([re, im])
        }),
        kernels: &[
            cpu(&[("T", &[DType::F32]), ("Tout", &[DType::C64])], |_| {
                AnyKernel::sync(join::<f32>)
            }),
            cpu(&[("T", &[DType::F64]), ("Tout", &[DType::C128])], |_| {
                AnyKernel::sync(join::<f64>)
            }),
        ],
        exactness: Exactness::Bits,
        examples: &[
            ex(
                "parts",
                &[f32s(&[2], &[1.0, 2.0]), f32s(&[2], &[-3.0, 4.0])],
                &[c64s(&[2], &[(1.0, -3.0), (2.0, 4.0)])],
            ),
            ex(
                "scalar imaginary part",
                &[f32s(&[2], &[1.0, 2.0]), f32s(&[], &[5.0])],
                &[c64s(&[2], &[(1.0, 5.0), (2.0, 5.0)])],
            ),
        ],
        ..OpDef::BLANK
    },
    OpDef {
        name: "Real",
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let zero = g.constant(0.0, g.dtype(grad))?;
            dense(compose(g, grad, zero)?)
        }),
        kernels: &[cpu(&[("T", COMPLEX)], |node| part(node, ComplexPart::Real))],
        exactness: Exactness::Bits,
        examples: &[ex(
            "parts",
            &[c64s(&[3], NUMBERS)],
            &[f32s(&[3], &[3.0, 0.0, -1.5])],
        )],
        ..PART
    },
    OpDef {
        name: "Imag",
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let zero = g.constant(0.0, g.dtype(grad))?;
            dense(compose(g, zero, grad)?)
        }),
        kernels: &[cpu(&[("T", COMPLEX)], |node| part(node, ComplexPart::Imag))],
        exactness: Exactness::Bits,
        examples: &[ex(
            "parts",
            &[c64s(&[3], NUMBERS)],
            &[f32s(&[3], &[4.0, -2.0, 0.0])],
        )],
        ..PART
    },
    OpDef {
        name: "Angle",
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let (re, im) = (real(g, "Real", g.input(0))?, real(g, "Imag", g.input(0))?);
            let swapped = compose(g, im, re)?;
            let z = g.f("Reciprocal", swapped)?;
            let zero = g.constant(0.0, g.dtype(grad))?;
            let grad = compose(g, grad, zero)?;
            let minus = g.neg(grad)?;
            dense(g.mul(minus, z)?)
        }),
        kernels: &[cpu(&[("T", COMPLEX)], |node| {
            part(node, ComplexPart::Angle)
        })],
        examples: &[
            ex(
                "on the axis",
                &[c64s(&[], &[(2.0, 0.0)])],
                &[f32s(&[], &[0.0])],
            ),
            ex_ref("all around", &[], &[c64s(&[3], NUMBERS)]),
        ],
        ..PART
    },
    OpDef {
        name: "ComplexAbs",
        inputs: &["x: T"],
        outputs: &["y: Tout"],
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let zeros = g.f("ZerosLike", grad)?;
            let grad = compose(g, grad, zeros)?;
            let zeros = g.f("ZerosLike", g.output(0))?;
            let size = compose(g, g.output(0), zeros)?;
            let scaled = g.mul(grad, g.input(0))?;
            dense(g.apply("DivNoNan", &[scaled, size])?)
        }),
        kernels: &[cpu(&[("T", COMPLEX)], |node| part(node, ComplexPart::Abs))],
        examples: &[ex(
            "sizes",
            &[c64s(&[3], NUMBERS)],
            &[f32s(&[3], &[5.0, 2.0, 1.5])],
        )],
        ..PART
    },
    OpDef {
        name: "Conj",
        inputs: &["input: T"],
        outputs: &["output: T"],
        attrs: &["T: {complex64, complex128, variant} = DT_COMPLEX64"],
        infer: infer::same_as_first,
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            dense(g.conj(grad)?)
        }),
        kernels: &[
            cpu(&[("T", COMPLEX)], |node| unary(node, Unary::Conj)),
            cpu(&[("T", &[DType::Variant])], |_| {
                AnyKernel::sync(csr::conjugate)
            }),
        ],
        exactness: Exactness::Bits,
        examples: &[
            ex(
                "mirrored",
                &[complex(&[3], NUMBERS)],
                &[complex(&[3], &[(3.0, -4.0), (0.0, 2.0), (-1.5, -0.0)])],
            ),
            ex(
                "scalar",
                &[complex(&[], &[(1.0, 1.0)])],
                &[complex(&[], &[(1.0, -1.0)])],
            ),
        ],
        ..OpDef::BLANK
    },
];

const PART: OpDef = OpDef {
    inputs: &["input: T"],
    outputs: &["output: Tout"],
    attrs: &[
        "T: {complex64, complex128} = DT_COMPLEX64",
        "Tout: {float, double} = DT_FLOAT",
    ],
    infer: infer::same_as_first,
    ..OpDef::BLANK
};

/// A part of a complex tensor, with the float type that goes with it.
fn real(g: &mut GradCtx<'_>, op: &str, value: Output) -> Result<Output> {
    let out = match g.dtype(value) {
        DType::C128 => DType::F64,
        _ => DType::F32,
    };
    g.builder().op(op).input(value).attr("Tout", out).output()
}

/// A complex tensor of two parts.
fn compose(g: &mut GradCtx<'_>, re: Output, im: Output) -> Result<Output> {
    let out = match g.dtype(re) {
        DType::F64 => DType::C128,
        _ => DType::C64,
    };
    let node = g.builder().op("Complex").input(re).input(im);
    node.attr("Tout", out).output()
}

fn join<F>(ctx: &mut KernelCtx<'_>) -> Result<()>
where
    F: Element + Copy,
    Complex<F>: Element,
{
    let (re, im) = (ctx.input(0)?, ctx.input(1)?);
    let (_, shape) = broadcast(re.shape(), im.shape())?;
    let mut out = ctx.allocate(<Complex<F> as Element>::DTYPE, shape)?;
    let left = expanded(re.slice::<F>()?, re.shape(), out.shape());
    let right = expanded(im.slice::<F>()?, im.shape(), out.shape());
    let pairs = left.iter().zip(right.iter());
    for (out, (re, im)) in out.slice_mut::<Complex<F>>()?.iter_mut().zip(pairs) {
        *out = Complex { re: *re, im: *im };
    }
    ctx.set(0, out);
    Ok(())
}

fn part(node: &NodeInfo, which: ComplexPart) -> Result<AnyKernel> {
    match (input_dtype(node), node.attrs.dtype("Tout")?) {
        (DType::C64, DType::F32) => part_of::<f32>(which),
        (DType::C128, DType::F64) => part_of::<f64>(which),
        (from, to) => Err(invalid_argument!(
            "{} takes {from} to {to}, whose sizes differ",
            node.op
        )),
    }
}

fn part_of<F>(which: ComplexPart) -> Result<AnyKernel>
where
    F: Element + ComplexOf,
    Complex<F>: Element,
{
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let x = ctx.input(0)?;
        let mut y = ctx.allocate(F::DTYPE, x.shape().clone())?;
        let values = x.slice::<Complex<F>>()?;
        complex_part(ctx.par(), which, values, y.slice_mut::<F>()?);
        ctx.set(0, y);
        Ok(())
    })
}
