//! `SparseMatMul`: the product of two dense matrices with many zeros.
//!
//! TensorFlow: SparseMatMul(a: Ta, b: Tb) -> product: float, of float or bfloat16, with transpose_a, transpose_b and hints which of
//! them have the zeros. Here it is a product like any other.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, of, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::gemm;
use tensorfleet_math::num::to_f32_slice;
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Shape, Tensor, bf16};

const TYPES: &[DType] = &[DType::F32, DType::BF16];

pub(crate) static OP: OpDef = OpDef {
    name: "SparseMatMul",
    inputs: &["a: Ta", "b: Tb"],
    outputs: &["product: float"],
    attrs: &[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "a_is_sparse: bool = false",
        "b_is_sparse: bool = false",
        "Ta: {float, bfloat16} = DT_FLOAT",
        "Tb: {float, bfloat16} = DT_FLOAT",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("Ta", TYPES), ("Tb", TYPES)], build)],
    examples: &[
        ex(
            "square",
            &[
                f32s(&[2, 2], &[1.0, 0.0, 3.0, 4.0]),
                x(&[2, 2], &[0.0, 6.0, 7.0, 8.0]),
            ],
            &[f32s(&[2, 2], &[0.0, 6.0, 28.0, 50.0])],
        ),
        ex_attrs(
            "transposed, of halves",
            &[("transpose_a", "true"), ("a_is_sparse", "true")],
            &[
                of(DType::BF16, &[2, 3], &[1.0, 0.0, 3.0, 0.0, 5.0, 6.0]),
                of(DType::BF16, &[2, 1], &[1.0, 2.0]),
            ],
            &[f32s(&[3, 1], &[1.0, 10.0, 15.0])],
        ),
        ex_err(
            "inner sizes differ",
            &[],
            &[f32s(&[1, 2], &[1.0]), f32s(&[3, 1], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "no matrix",
            &[],
            &[f32s(&[2], &[1.0]), f32s(&[2, 1], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (a, b, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let flags = (
        g.attrs().bool("transpose_a")?,
        g.attrs().bool("transpose_b")?,
    );
    let mut product = |x: Output, y: Output, flags: [bool; 2], like: Output| -> Result<_> {
        let node = g.builder().op("SparseMatMul").input(x).input(y);
        let node = node.attr("transpose_a", flags[0]);
        let product = node.attr("transpose_b", flags[1]).output()?;
        let dtype = g.dtype(like);
        Ok(Some(Grad::Dense(g.cast(product, dtype)?)))
    };
    match flags {
        (false, false) => Ok(vec![
            product(grad, b, [false, true], a)?,
            product(a, grad, [true, false], b)?,
        ]),
        (false, true) => Ok(vec![
            product(grad, b, [false, false], a)?,
            product(grad, a, [true, false], b)?,
        ]),
        (true, false) => Ok(vec![
            product(b, grad, [false, true], a)?,
            product(a, grad, [false, false], b)?,
        ]),
        (true, true) => Ok(vec![
            product(b, grad, [true, true], a)?,
            product(grad, a, [true, true], b)?,
        ]),
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let transposed = [
        node.attrs.bool("transpose_a")?,
        node.attrs.bool("transpose_b")?,
    ];
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(a.rank() == 2, invalid_argument, "a is not a matrix");
        ensure!(b.rank() == 2, invalid_argument, "b is not a matrix");
        let side = |tensor: &Tensor, axis: bool| tensor.shape().dim(usize::from(axis));
        let dims = gemm::Dims {
            m: side(a, transposed[0]),
            k: side(a, !transposed[0]),
            n: side(b, !transposed[1]),
        };
        ensure!(
            dims.k == side(b, transposed[1]),
            invalid_argument,
            "Matrix size incompatible: a: {}, b: {}",
            a.shape(),
            b.shape()
        );
        let mut out = Tensor::zeros(DType::F32, Shape::matrix(dims.m, dims.n)?)?;
        if !out.is_empty() && dims.k > 0 {
            let (a, b) = (singles(a)?, singles(b)?);
            gemm::matmul(
                ctx.par(),
                dims,
                (&a, transposed[0]),
                (&b, transposed[1]),
                out.slice_mut::<f32>()?,
            );
        }
        ctx.set(0, out);
        Ok(())
    })
}

fn singles(tensor: &Tensor) -> Result<std::borrow::Cow<'_, [f32]>> {
    if tensor.dtype() == DType::F32 {
        return Ok(tensor.slice::<f32>()?.into());
    }
    let halves = tensor.slice::<bf16>()?;
    let mut out = vec![0.0; halves.len()];
    to_f32_slice(halves, &mut out);
    Ok(out.into())
}
