//! `MatMul`: the product of two matrices, each perhaps transposed first.
//!
//! TensorFlow: MatMul(a: T, b: T) -> product: T with attrs transpose_a, transpose_b. The attrs grad_a and grad_b only say what
//! the product is for. The unsigned types of the signature have no kernel, in TensorFlow neither.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::gemm;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, UNKNOWN_DIM};

use super::product_dims;
use crate::math::calculus::{Calculus, both};
use crate::math::elementwise::{input_dtype, no_function};
use crate::math::unary::complex;
use crate::types::{COMPLEX, FLOATS, INDEX, dtypes};
use crate::{by_complex, by_float};

pub(crate) const TYPES: &[DType] = dtypes![FLOATS, INDEX, COMPLEX];

pub(crate) static OP: OpDef = OpDef {
    name: "MatMul",
    inputs: &["a: T", "b: T"],
    outputs: &["product: T"],
    attrs: &[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
        "grad_a: bool = false",
        "grad_b: bool = false",
    ],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", TYPES)], build)],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    examples: &[
        ex(
            "plain",
            &[
                x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            ],
            &[x(&[2, 2], &[22.0, 28.0, 49.0, 64.0])],
        ),
        ex_attrs(
            "first transposed",
            &[("transpose_a", "true")],
            &[
                x(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
                x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            ],
            &[x(&[2, 2], &[22.0, 28.0, 49.0, 64.0])],
        ),
        ex_attrs(
            "second transposed",
            &[("transpose_b", "true")],
            &[
                x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                x(&[2, 3], &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]),
            ],
            &[x(&[2, 2], &[22.0, 28.0, 49.0, 64.0])],
        ),
        ex_attrs(
            "both transposed",
            &[("transpose_a", "true"), ("transpose_b", "true")],
            &[
                x(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
                x(&[2, 3], &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]),
            ],
            &[x(&[2, 2], &[22.0, 28.0, 49.0, 64.0])],
        ),
        ex_attrs(
            "transposition does not conjugate",
            &[("transpose_a", "true")],
            &[
                complex(&[1, 1], &[(0.0, 1.0)]),
                complex(&[1, 1], &[(0.0, 1.0)]),
            ],
            &[complex(&[1, 1], &[(-1.0, 0.0)])],
        ),
        ex(
            "row by column",
            &[ramp(&[1, 4], 1.0, 1.0), ramp(&[4, 1], 1.0, 1.0)],
            &[x(&[1, 1], &[30.0])],
        ),
        ex(
            "nothing to sum",
            &[x(&[2, 0], &[]), x(&[0, 3], &[])],
            &[x(&[2, 3], &[0.0])],
        ),
        ex(
            "no rows",
            &[x(&[0, 2], &[]), x(&[2, 3], &[1.0])],
            &[x(&[0, 3], &[])],
        ),
        ex_err(
            "inner sizes differ",
            &[],
            &[x(&[1, 2], &[1.0]), x(&[3, 1], &[1.0])],
            Code::InvalidArgument,
            "In[0]: [1,2], In[1]: [3,1]",
        ),
        ex_err(
            "no matrix",
            &[],
            &[x(&[2], &[1.0]), x(&[2], &[1.0])],
            Code::InvalidArgument,
            "ndims must be == 2: 1",
        ),
    ],
    ..OpDef::BLANK
};

pub(super) fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let flags = [
        ctx.attrs().bool("transpose_a")?,
        ctx.attrs().bool("transpose_b")?,
    ];
    let dim = |input: usize, axis: usize| ctx.input(input).dim(axis).unwrap_or(UNKNOWN_DIM);
    for input in 0..2 {
        if ctx.input(input).rank().is_some_and(|rank| rank != 2) {
            return Err(invalid_argument!(
                "shape must be rank 2 but is {}",
                ctx.input(input)
            ));
        }
    }
    let rows = dim(0, usize::from(flags[0]));
    let columns = dim(1, usize::from(!flags[1]));
    ctx.set(0, PartialShape::new(&[rows, columns]));
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let flags = (
        g.attrs().bool("transpose_a")?,
        g.attrs().bool("transpose_b")?,
    );
    let (a, b, grad) = (g.conj_input(0)?, g.conj_input(1)?, g.grad(0)?);
    let (first, second) = match flags {
        (false, false) => (
            product(g, grad, b, [false, true], "grad_a")?,
            product(g, a, grad, [true, false], "grad_b")?,
        ),
        (false, true) => (
            product(g, grad, b, [false, false], "grad_a")?,
            product(g, grad, a, [true, false], "grad_b")?,
        ),
        (true, false) => (
            product(g, b, grad, [false, true], "grad_a")?,
            product(g, a, grad, [false, false], "grad_b")?,
        ),
        (true, true) => (
            product(g, b, grad, [true, true], "grad_a")?,
            product(g, grad, a, [true, true], "grad_b")?,
        ),
    };
    both(first, second)
}

fn product(
    g: &mut GradCtx<'_>,
    a: Output,
    b: Output,
    transposed: [bool; 2],
    purpose: &str,
) -> Result<Output> {
    let node = g.builder().op("MatMul").input(a).input(b);
    node.attr("transpose_a", transposed[0])
        .attr("transpose_b", transposed[1])
        .attr(purpose, true)
        .output()
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let transposed = [
        node.attrs.bool("transpose_a")?,
        node.attrs.bool("transpose_b")?,
    ];
    let dtype = input_dtype(node);
    match dtype {
        DType::I32 => build_of::<i32>(transposed),
        DType::I64 => build_of::<i64>(transposed),
        _ => by_float!(dtype, T => build_of::<T>(transposed), else =>
            by_complex!(dtype, T => build_of::<T>(transposed), else => Err(no_function("MatMul", dtype)))),
    }
}

fn build_of<T: Element + gemm::Element>(transposed: [bool; 2]) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        let dims = product_dims(a.shape(), b.shape(), transposed)?;
        let mut out = ctx.allocate(T::DTYPE, Shape::matrix(dims.m, dims.n)?)?;
        let (a, b) = (a.slice::<T>()?, b.slice::<T>()?);
        let into = out.slice_mut::<T>()?;
        gemm::matmul(
            ctx.par(),
            dims,
            (a, transposed[0]),
            (b, transposed[1]),
            into,
        );
        ctx.set(0, out);
        Ok(())
    })
}
