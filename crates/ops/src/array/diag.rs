//! `Diag`, `DiagPart`: a tensor of twice the rank with a tensor on its diagonal, and back.
//!
//! TensorFlow: Diag(diagonal: T) -> output: T, where output[i..., i...] = diagonal[i...]; DiagPart(input: T) -> diagonal: T.

use tensorfleet_graph::example::{ex, ex_err, f32s, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::moves;

const TYPES: &[DType] = &[
    DType::F16,
    DType::F32,
    DType::F64,
    DType::I32,
    DType::I64,
    DType::C64,
    DType::C128,
];

const DIAG: OpDef = OpDef {
    attrs: &["T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Diag",
        inputs: &["diagonal: T"],
        outputs: &["output: T"],
        gradient: Gradient::Rule(|g| gradient(g, "DiagPart")),
        kernels: &[cpu(&[("T", TYPES)], build_diag)],
        examples: &[
            ex(
                "vector",
                &[x(&[2], &[1.0, 2.0])],
                &[x(&[2, 2], &[1.0, 0.0, 0.0, 2.0])],
            ),
            ex(
                "matrix",
                &[x(&[1, 2], &[1.0, 2.0])],
                &[x(&[1, 2, 1, 2], &[1.0, 0.0, 0.0, 2.0])],
            ),
            ex("empty", &[x(&[0], &[])], &[x(&[0, 0], &[])]),
            ex_err(
                "scalar",
                &[],
                &[f32s(&[], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..DIAG
    },
    OpDef {
        name: "DiagPart",
        inputs: &["input: T"],
        outputs: &["diagonal: T"],
        gradient: Gradient::Rule(|g| gradient(g, "Diag")),
        kernels: &[cpu(&[("T", TYPES)], build_part)],
        examples: &[
            ex(
                "matrix",
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
                &[x(&[2], &[1.0, 4.0])],
            ),
            ex_err(
                "not square",
                &[],
                &[f32s(&[1, 2], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "odd rank",
                &[],
                &[f32s(&[2], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..DIAG
    },
];

fn gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    dense(g.apply(op, &[grad])?)
}

/// The diagonal of a square matrix of `len` rows.
fn main_diagonal(len: usize) -> View {
    View {
        dims: vec![len],
        strides: vec![len as isize + 1],
        offset: 0,
    }
}

fn build_diag(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let diagonal = ctx.input(0)?;
        if diagonal.rank() == 0 {
            return Err(invalid_argument!(
                "Input must be at least rank 1, got {}",
                diagonal.rank()
            ));
        }
        let shape = diagonal.shape().concat(diagonal.shape())?;
        let mut output = Tensor::zeros(diagonal.dtype(), shape)?;
        moves::paste_view(diagonal, &main_diagonal(diagonal.elements()), &mut output)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn build_part(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let (rank, shape) = (input.rank(), input.shape());
        // TensorFlow's text says "positive", its kernel takes a scalar.
        if rank % 2 == 1 {
            return Err(invalid_argument!(
                "The rank of the tensor should be even and positive, got shape {shape}"
            ));
        }
        let (first, second) = shape.split_at(rank / 2);
        if let Some(i) = (0..rank / 2).find(|i| first[*i] != second[*i]) {
            return Err(invalid_argument!(
                "Invalid shape {shape}: dimensions {i} and {} do not match.",
                i + rank / 2
            ));
        }
        let shape = Shape::new(first)?;
        let view = main_diagonal(shape.elements());
        let diagonal = moves::copy_view(ctx.par(), input, &view, shape)?;
        ctx.set(0, diagonal);
        Ok(())
    })
}
