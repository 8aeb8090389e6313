//! `DeepCopy`: the same elements in memory of their own.
//!
//! TensorFlow: DeepCopy(x: T) -> y: T.

use tensorfleet_graph::example::{ex, strs, x};
use tensorfleet_graph::{Exactness, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

pub(crate) static OP: OpDef = OpDef {
    name: "DeepCopy",
    inputs: &["x: T"],
    outputs: &["y: T"],
    attrs: &["T: type"],
    stateful: true,
    infer: infer::same_as_first,
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex("numbers", &[x(&[2], &[1.0, 2.0])], &[x(&[2], &[1.0, 2.0])]),
        ex("strings", &[strs(&[1], &["a"])], &[strs(&[1], &["a"])]),
    ],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let mut tensor = ctx.take(0)?;
        if !tensor.is_unique() {
            tensor = tensor.deep_copy();
        }
        ctx.set(0, tensor);
        Ok(())
    })
}
