//! `_UnaryOpsComposition`: several elementwise functions, one after the other, in one pass.
//!
//! TensorFlow: _UnaryOpsComposition(x: T) -> y: T, T in {float, half, double}, attr op_names: list(string). Its graph
//! optimiser makes such nodes, so a graph that passed through it may hold them.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, ramp, x};
use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::unary::{Unary, UnaryElement, apply_in_place};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element};

use super::UNARY;
use crate::by_float;
use crate::math::elementwise::{input_dtype, no_function, status};

pub(crate) static OP: OpDef = OpDef {
    name: "_UnaryOpsComposition",
    attrs: &["T: {float, half, double}", "op_names: list(string)"],
    gradient: Gradient::None("made by graph optimisation, after differentiation"),
    kernels: &[cpu(&[("T", &[DType::F16, DType::F32, DType::F64])], build)],
    examples: &[
        ex_attrs(
            "in order",
            &[("op_names", "['Neg', 'Relu', 'Sqrt']")],
            &[x(&[3], &[-4.0, 9.0, -16.0])],
            &[x(&[3], &[2.0, 0.0, 4.0])],
        ),
        ex_ref(
            "transcendental",
            &[("op_names", "['Exp', 'Log1p', 'Tanh']")],
            &[ramp(&[9], -2.0, 0.5)],
        ),
        ex_err(
            "unknown function",
            &[("op_names", "['Neg', 'Nope']")],
            &[x(&[1], &[1.0])],
            Code::InvalidArgument,
            "Nope",
        ),
    ],
    ..UNARY
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let names = node.attrs.bytes_list("op_names")?;
    let mut ops = Vec::with_capacity(names.len());
    for name in names {
        let name = String::from_utf8_lossy(name);
        let op = function(&name).ok_or_else(|| {
            invalid_argument!("do not have a compute function registered for op: {name}")
        })?;
        ops.push(op);
    }
    let dtype = input_dtype(node);
    by_float!(dtype, T => build_of::<T>(ops), else => Err(no_function(&node.op, dtype)))
}

fn build_of<T: Element + UnaryElement>(ops: Vec<Unary>) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut x = ctx.take(0)?;
        let values = x.slice_mut::<T>()?;
        for op in &ops {
            apply_in_place(ctx.par(), *op, values).map_err(status)?;
        }
        ctx.set(0, x);
        Ok(())
    })
}

fn function(name: &str) -> Option<Unary> {
    Some(match name {
        "Abs" => Unary::Abs,
        "Acos" => Unary::Acos,
        "Acosh" => Unary::Acosh,
        "Asin" => Unary::Asin,
        "Asinh" => Unary::Asinh,
        "Atan" => Unary::Atan,
        "Atanh" => Unary::Atanh,
        "Ceil" => Unary::Ceil,
        "Cos" => Unary::Cos,
        "Cosh" => Unary::Cosh,
        "Elu" => Unary::Elu,
        "Exp" => Unary::Exp,
        "Expm1" => Unary::Expm1,
        "Floor" => Unary::Floor,
        "Inv" | "Reciprocal" => Unary::Reciprocal,
        "Log" => Unary::Log,
        "Log1p" => Unary::Log1p,
        "Neg" => Unary::Neg,
        "Relu" => Unary::Relu,
        "Relu6" => Unary::Relu6,
        "Rint" | "Round" => Unary::Round,
        "Rsqrt" => Unary::Rsqrt,
        "Selu" => Unary::Selu,
        "Sigmoid" => Unary::Sigmoid,
        "Sign" => Unary::Sign,
        "Sin" => Unary::Sin,
        "Sinh" => Unary::Sinh,
        "Softplus" => Unary::Softplus,
        "Softsign" => Unary::Softsign,
        "Sqrt" => Unary::Sqrt,
        "Square" => Unary::Square,
        "Tan" => Unary::Tan,
        "Tanh" => Unary::Tanh,
        _ => return None,
    })
}
