//! `Empty`: a tensor whose elements nobody promised anything about, or zeros with `init`.
//!
//! TensorFlow: Empty(shape: int32) -> output: dtype. Here the elements are always zeros.

use tensorfleet_graph::example::{Example, Expect, ex_err, i32s};
use tensorfleet_graph::{Exactness, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use crate::types::VALUES;

pub(crate) static OP: OpDef = OpDef {
    name: "Empty",
    inputs: &["shape: int32"],
    outputs: &["output: dtype"],
    attrs: &["dtype: type", "init: bool = false"],
    stateful: true,
    infer: infer::shape_in::<0>,
    kernels: &[cpu(&[("dtype", VALUES)], build)],
    exactness: Exactness::Bits,
    examples: &[
        Example {
            name: "zeros",
            attrs: &[("dtype", "float"), ("init", "true")],
            inputs: &[i32s(&[2], &[2, 3])],
            expect: Expect::Reference,
        },
        Example {
            name: "strings",
            attrs: &[("dtype", "string")],
            inputs: &[i32s(&[1], &[2])],
            expect: Expect::Reference,
        },
        ex_err(
            "negative",
            &[("dtype", "float")],
            &[i32s(&[1], &[-1])],
            Code::InvalidArgument,
            "-1",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let shape = ctx.input(0)?;
        if shape.rank() != 1 {
            return Err(invalid_argument!(
                "shape must be a vector of int32, got shape {}",
                shape.shape()
            ));
        }
        let tensor = Tensor::zeros(dtype, Shape::new(&ctx.ints(0)?)?)?;
        ctx.set(0, tensor);
        Ok(())
    })
}
