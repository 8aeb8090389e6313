//! `_FusedMatMul`: a matrix product, a bias for each column, and a function of the sum, in one pass.
//!
//! TensorFlow: _FusedMatMul(a: T, b: T, args: num_args * T) -> product: T with attrs fused_ops (BiasAdd, perhaps Add with a
//! second argument, then perhaps one of Relu, Relu6, Elu, LeakyRelu, Tanh, Sigmoid, GeluApproximate, GeluExact) and
//! leakyrelu_alpha, T in {bfloat16, half, float}. Made by graph optimisation.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, f32s, ramp, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::gemm::{self, Operand};
use tensorfleet_math::num::Float;
use tensorfleet_math::unary::UnaryElement;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, bf16, f16};

use super::product_dims;
use crate::math::elementwise::{input_dtype, no_function};
use crate::nn::ending::{First, Fused, per_channel, unsupported};

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
            "bias, sum and relu",
            &[("fused_ops", "['BiasAdd', 'Add', 'Relu']")],
            &[
                x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                x(&[2, 2], &[1.0, 0.0, 0.0, 1.0]),
                x(&[2], &[10.0, -3.0]),
                x(&[2, 2], &[0.5, 1.5, -20.0, 1.0]),
            ],
            &[x(&[2, 2], &[11.5, 0.5, 0.0, 2.0])],
        ),
        ex_err(
            "one argument too many",
            &[("fused_ops", "['BiasAdd']")],
            &[
                f32s(&[1, 1], &[1.0]),
                f32s(&[1, 1], &[1.0]),
                f32s(&[1], &[1.0]),
                f32s(&[1, 1], &[1.0]),
            ],
            Code::InvalidArgument,
            "1 extra arguments, got 2: bias",
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
    let fused = Fused::new(node)?;
    if fused.first != First::Bias {
        return Err(unsupported(node));
    }
    match input_dtype(node) {
        DType::F32 => build_of::<f32>(transposed, fused),
        DType::F16 => build_of::<f16>(transposed, fused),
        DType::BF16 => build_of::<bf16>(transposed, fused),
        other => Err(no_function(&node.op, other)),
    }
}

fn build_of<T>(transposed: [bool; 2], fused: Fused) -> Result<AnyKernel>
where
    T: Element + gemm::Element + Float + UnaryElement,
{
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        // The product is added to what the output holds.
        let addend = fused.add.then(|| ctx.take(3)).transpose()?;
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        let dims = product_dims(a.shape(), b.shape(), transposed)?;
        let bias = per_channel::<T>(ctx, 0, dims.n)?;
        let shape = Shape::matrix(dims.m, dims.n)?;
        let (mut out, keep) = match addend {
            Some(addend) if *addend.shape() != shape => {
                return Err(invalid_argument!(
                    "what is added has shape {}, the product {shape}",
                    addend.shape()
                ));
            }
            Some(addend) => (addend, <T as gemm::Element>::ONE),
            None => (ctx.allocate(T::DTYPE, shape)?, <T as gemm::Element>::ZERO),
        };
        let operand = |data, rows, columns, transposed| Operand {
            data,
            stride: if transposed { rows } else { columns },
            transposed,
        };
        let left = operand(a.slice::<T>()?, dims.m, dims.k, transposed[0]);
        let right = operand(b.slice::<T>()?, dims.k, dims.n, transposed[1]);
        let (one, into) = (<T as gemm::Element>::ONE, out.slice_mut::<T>()?);
        fused.ending.biased(bias, |epilogue| {
            gemm::gemm(
                ctx.par(),
                dims,
                one,
                left,
                right,
                keep,
                into,
                dims.n,
                epilogue,
            );
        });
        ctx.set(0, out);
        Ok(())
    })
}
