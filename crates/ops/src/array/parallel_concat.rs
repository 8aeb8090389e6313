//! `ParallelConcat`: rows one below the other.
//!
//! TensorFlow: ParallelConcat(values: N * T) -> output: T; each value has one row, attr shape is that of the result. TensorFlow
//! rewrites it into updates of one buffer that may run in any order; here it is a concatenation.

use tensorfleet_graph::example::{ex_attrs, strs, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Tensor, Word, by_word};

use crate::types::VALUES;

pub(crate) static OP: OpDef = OpDef {
    name: "ParallelConcat",
    inputs: &["values: N * T"],
    outputs: &["output: T"],
    attrs: &["N: int >= 1", "T: type", "shape: shape"],
    infer: infer::from_shape_attr,
    gradient: Gradient::None("TensorFlow has none"),
    kernels: &[cpu(&[("T", VALUES)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "two rows",
            &[("shape", "[2,3]")],
            &[x(&[1, 3], &[1.0, 2.0, 3.0]), x(&[1, 3], &[4.0, 5.0, 6.0])],
            &[x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        ),
        ex_attrs(
            "strings",
            &[("shape", "[2]")],
            &[strs(&[1], &["a"]), strs(&[1], &["b"])],
            &[strs(&[2], &["a", "b"])],
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let shape = node.attrs.shape("shape")?;
    let Some(shape) = shape.to_shape() else {
        return Err(invalid_argument!(
            "All input shapes must be fully defined, got {shape}"
        ));
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let count = ctx.num_inputs();
        ensure!(
            shape.rank() > 0 && shape.dim(0) == count,
            invalid_argument,
            "the result of {count} rows cannot have shape {shape}"
        );
        let row = shape.with_dim(0, 1)?;
        for index in 0..count {
            let found = ctx.input(index)?.shape();
            ensure!(
                *found == row,
                invalid_argument,
                "value {index} must have shape {row}, got {found}"
            );
        }
        let mut out = Tensor::zeros(ctx.input(0)?.dtype(), shape.clone())?;
        by_word!(out.dtype(), W => join::<W>(ctx, &mut out))?;
        ctx.set(0, out);
        Ok(())
    })
}

fn join<W: Word>(ctx: &KernelCtx<'_>, out: &mut Tensor) -> Result<()> {
    let mut slots = out.words_mut::<W>()?.iter_mut();
    for index in 0..ctx.num_inputs() {
        let values = ctx.input(index)?.words::<W>()?;
        for (value, slot) in values.iter().zip(&mut slots) {
            *slot = value.clone();
        }
    }
    Ok(())
}
