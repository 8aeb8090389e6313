//! `Bitcast`: the same bytes as elements of another dtype.
//!
//! TensorFlow: Bitcast(input: T) -> output: type. To a smaller type a dimension is added, to a larger one the last
//! dimension, which must be the ratio of the sizes, is taken away.

use tensorfleet_graph::example::{ex_attrs, ex_err, f32s, i32s, i64s, of};
use tensorfleet_graph::{Cost, Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

pub(crate) static OP: OpDef = OpDef {
    name: "Bitcast",
    inputs: &["input: T"],
    outputs: &["output: type"],
    attrs: &[
        "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
        "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
    ],
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "same size",
            &[("type", "int32")],
            &[f32s(&[2], &[1.0, -2.0])],
            &[i32s(&[2], &[0x3f80_0000, -0x4000_0000])],
        ),
        ex_attrs(
            "smaller",
            &[("type", "int16")],
            &[i32s(&[1], &[0x0002_0001])],
            &[of(DType::I16, &[1, 2], &[1.0, 2.0])],
        ),
        ex_attrs(
            "larger",
            &[("type", "int64")],
            &[i32s(&[2, 2], &[1, 0, 0, 1])],
            &[i64s(&[2], &[1, 1 << 32])],
        ),
        ex_err(
            "wrong last dimension",
            &[("type", "int64")],
            &[i32s(&[3], &[1])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "scalar to larger",
            &[("type", "int64")],
            &[i32s(&[], &[1])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (from, to) = (node.attrs.dtype("T")?, node.attrs.dtype("type")?);
    let (Some(from_size), Some(to_size)) = (from.size(), to.size()) else {
        return Err(invalid_argument!("cannot bitcast from {from} to {to}"));
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.take(0)?;
        let shape = if from_size == to_size {
            input.shape().clone()
        } else if from_size > to_size {
            input.shape().concat(&[(from_size / to_size) as i64])?
        } else {
            let ratio = (to_size / from_size) as i64;
            match input.shape().split_last() {
                Some((last, outer)) if *last == ratio => Shape::new(outer)?,
                _ => {
                    return Err(invalid_argument!(
                        "Cannot bitcast from {} to {}: shape {} should end in {ratio}",
                        from.number(),
                        to.number(),
                        input.shape()
                    ));
                }
            }
        };
        let output = if from_size == to_size {
            input.reinterpreted(to)?
        } else {
            let bytes = input
                .to_shared_bytes()
                .ok_or_else(|| internal!("elements of {from} are not plain bytes"))?;
            Tensor::from_bytes(to, shape, bytes)?
        };
        ctx.set(0, output);
        Ok(())
    })
}
