//! `StringJoin`: strings of several tensors put together, element by element.
//!
//! TensorFlow: StringJoin(inputs: N * string) -> output: string, with separator. Scalars go with every element.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, strs};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, TString};

use super::texts;

pub(crate) static OP: OpDef = OpDef {
    name: "StringJoin",
    inputs: &["inputs: N * string"],
    outputs: &["output: string"],
    attrs: &["N: int >= 0", "separator: string = ''"],
    infer,
    gradient: Gradient::Stop("text is not differentiated"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "scalar and vector",
            &[strs(&[], &["p_"]), strs(&[2], &["a", "b"])],
            &[strs(&[2], &["p_a", "p_b"])],
        ),
        ex_attrs(
            "separator",
            &[("separator", "'-'")],
            &[strs(&[1], &["a"]), strs(&[1], &["b"]), strs(&[1], &["c"])],
            &[strs(&[1], &["a-b-c"])],
        ),
        ex_err(
            "shapes differ",
            &[],
            &[strs(&[2], &["a", "b"]), strs(&[3], &["a", "b", "c"])],
            Code::InvalidArgument,
            "shape",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let known = (0..ctx.num_inputs())
        .map(|index| ctx.input(index))
        .find(|shape| shape.rank().is_some_and(|rank| rank > 0));
    if let Some(shape) = known.cloned() {
        ctx.set(0, shape);
    }
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let separator = node.attrs.bytes("separator")?.clone();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut shape = Shape::scalar();
        for index in 0..ctx.num_inputs() {
            let input = ctx.input(index)?;
            if input.rank() == 0 {
                continue;
            }
            if shape.rank() > 0 && shape != *input.shape() {
                return Err(invalid_argument!(
                    "Input shapes do not match: {shape} vs. {}",
                    input.shape()
                ));
            }
            shape = input.shape().clone();
        }
        let mut parts: Vec<&[TString]> = Vec::with_capacity(ctx.num_inputs());
        for index in 0..ctx.num_inputs() {
            parts.push(ctx.input(index)?.slice::<TString>()?);
        }
        let out = texts(ctx.par(), shape, &|element, text| {
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    text.extend_from_slice(&separator);
                }
                text.extend_from_slice(match part {
                    [one] => one,
                    part => &part[element],
                });
            }
            Ok(())
        })?;
        ctx.set(0, out);
        Ok(())
    })
}
