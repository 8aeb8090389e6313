//! `Identity`: the input itself; a ref input is read.
//!
//! TensorFlow: Identity(input: T) -> output: T.

use tensorfleet_graph::example::{bools, ex, strs, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

pub(crate) static OP: OpDef = OpDef {
    name: "Identity",
    inputs: &["input: T"],
    outputs: &["output: T"],
    attrs: &["T: type"],
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "numbers",
            &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
            &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
        ),
        ex(
            "strings",
            &[strs(&[2], &["a", ""])],
            &[strs(&[2], &["a", ""])],
        ),
        ex(
            "bool scalar",
            &[bools(&[], &[true])],
            &[bools(&[], &[true])],
        ),
    ],
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    dense(g.grad(0)?)
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let tensor = ctx.take(0)?;
        ctx.set(0, tensor);
        Ok(())
    })
}
