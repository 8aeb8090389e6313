//! `_FusedMatMul`: a matrix product, a bias for each column, and a function of the sum, in one pass.
//!
//! TensorFlow: _FusedMatMul(a: T, b: T, args: num_args * T) -> product: T with attrs fused_ops (BiasAdd, then perhaps one of
//! Relu, Relu6, Elu, LeakyRelu, Tanh, Sigmoid, GeluApproximate, GeluExact) and leakyrelu_alpha, T in {bfloat16, half, float}.
//! Made by graph optimisation.

use tensorfleet_graph::example::{ex_attrs, ex_ref, ramp, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::gemm::{self, Epilogue, Operand};
use tensorfleet_math::num::Float;
use tensorfleet_math::unary::UnaryElement;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, bf16, f16};

use super::product_dims;
use crate::math::elementwise::{input_dtype, no_function};
use crate::nn::ending::{Ending, Fused, unsupported};

pub(crate) static OP: OpDef = OpDef {
    name: "_FusedMatMul",
    inputs: &["a: T", "b: T", "args: num_args * T"],
    outputs: &["product: T"],
    attrs: &[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "T: {bfloat16, half, float}",
        "num_args: int >= 0",
        "fused_ops: list(string) = []",
        "epsilon: float = 0.0001",
        "leakyrelu_alpha: float = 0.2",
    ],
    infer: super::single::infer,
    gradient: Gradient::None("made by graph optimisation, after differentiation"),
    kernels: &[cpu(&[("T", &[DType::F16, DType::BF16, DType::F32])], build)],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    examples: &[
        ex_attrs(
            "bias",
            &[("fused_ops", "['BiasAdd']")],
            &[
                x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                x(&[2, 2], &[1.0, 0.0, 0.0, 1.0]),
                x(&[2], &[10.0, -3.0]),
            ],
            &[x(&[2, 2], &[11.0, -1.0, 13.0, 1.0])],
        ),
        ex_attrs(
            "bias and relu",
            &[("fused_ops", "['BiasAdd', 'Relu']")],
            &[
                x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                x(&[2, 2], &[1.0, 0.0, 0.0, 1.0]),
                x(&[2], &[10.0, -3.0]),
            ],
            &[x(&[2, 2], &[11.0, 0.0, 13.0, 1.0])],
        ),
        ex_attrs(
            "bias and relu6, second transposed",
            &[
                ("fused_ops", "['BiasAdd', 'Relu6']"),
                ("transpose_b", "true"),
            ],
            &[
                x(&[1, 2], &[1.0, 2.0]),
                x(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 3.0, 3.0]),
                x(&[3], &[0.5, -3.0, 0.0]),
            ],
            &[x(&[1, 3], &[1.5, 0.0, 6.0])],
        ),
        ex_attrs(
            "bias and leaky relu",
            &[
                ("fused_ops", "['BiasAdd', 'LeakyRelu']"),
                ("leakyrelu_alpha", "0.5"),
            ],
            &[
                x(&[1, 1], &[2.0]),
                x(&[1, 2], &[1.0, -3.0]),
                x(&[2], &[1.0]),
            ],
            &[x(&[1, 2], &[3.0, -2.5])],
        ),
        ex_ref(
            "bias and tanh",
            &[("fused_ops", "['BiasAdd', 'Tanh']")],
            &[
                ramp(&[2, 3], -0.5, 0.25),
                ramp(&[3, 2], 0.5, 0.25),
                x(&[2], &[0.5, -0.25]),
            ],
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let transposed = [
        node.attrs.bool("transpose_a")?,
        node.attrs.bool("transpose_b")?,
    ];
    if node.attrs.int("num_args")? != 1 {
        return Err(invalid_argument!(
            "fused MatMul must have one extra argument: bias"
        ));
    }
    let ending = match Fused::new(node)? {
        Fused::Bias(ending) => ending,
        Fused::BatchNorm(_) => return Err(unsupported(node)),
    };
    match input_dtype(node) {
        DType::F32 => build_of::<f32>(transposed, ending),
        DType::F16 => build_of::<f16>(transposed, ending),
        DType::BF16 => build_of::<bf16>(transposed, ending),
        other => Err(no_function(&node.op, other)),
    }
}

fn build_of<T>(transposed: [bool; 2], ending: Ending) -> Result<AnyKernel>
where
    T: Element + gemm::Element + Float + UnaryElement,
{
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (a, b, bias) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let dims = product_dims(a.shape(), b.shape(), transposed)?;
        if bias.rank() != 1 || bias.elements() != dims.n {
            return Err(invalid_argument!(
                "bias must be a vector of {} elements, got shape {}",
                dims.n,
                bias.shape()
            ));
        }
        let mut out = ctx.allocate(T::DTYPE, Shape::matrix(dims.m, dims.n)?)?;
        let bias = bias.slice::<T>()?;
        let finish = |first: usize, row: &mut [T]| ending.finish_biased(&bias[first..], row);
        let epilogue = match ending {
            Ending::Nothing => Epilogue::Bias(bias),
            Ending::Relu => Epilogue::BiasRelu(bias),
            _ => Epilogue::Rows(&finish),
        };
        let operand = |data, rows, columns, transposed| Operand {
            data,
            stride: if transposed { rows } else { columns },
            transposed,
        };
        gemm::gemm(
            ctx.par(),
            dims,
            <T as gemm::Element>::ONE,
            operand(a.slice::<T>()?, dims.m, dims.k, transposed[0]),
            operand(b.slice::<T>()?, dims.k, dims.n, transposed[1]),
            <T as gemm::Element>::ZERO,
            out.slice_mut::<T>()?,
            dims.n,
            epilogue,
        );
        ctx.set(0, out);
        Ok(())
    })
}
