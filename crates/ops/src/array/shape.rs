//! `Shape`, `ShapeN`, `Size`, `Rank`: what is known of a tensor without looking at its elements.
//!
//! TensorFlow: Shape(input: T) -> output: out_type; ShapeN(input: N * T) -> output: N * out_type;
//! Size(input: T) -> output: out_type; Rank(input: T) -> output: int32.

use tensorfleet_graph::example::{Lit, ex, ex_attrs, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor};

use crate::types::INDEX;

const LOOK: OpDef = OpDef {
    inputs: &["input: T"],
    outputs: &["output: out_type"],
    attrs: &["T: type", "out_type: {int32, int64} = DT_INT32"],
    gradient: Gradient::Stop("a shape does not depend on the elements"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const INT64: &[(&str, &str)] = &[("out_type", "int64")];
const MATRIX: Lit = x(&[2, 3], &[1.0]);

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "Rank",
        outputs: &["output: int32"],
        attrs: &["T: type"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_rank)],
        examples: &[
            ex("matrix", &[MATRIX], &[i32s(&[], &[2])]),
            ex("scalar", &[strs(&[], &["a"])], &[i32s(&[], &[0])]),
        ],
        ..LOOK
    },
    OpDef {
        name: "Shape",
        infer: infer_shape,
        kernels: &[cpu(&[("out_type", INDEX)], build_shape)],
        examples: &[
            ex("matrix", &[MATRIX], &[i32s(&[2], &[2, 3])]),
            ex_attrs("int64", INT64, &[MATRIX], &[i64s(&[2], &[2, 3])]),
            ex("scalar", &[strs(&[], &["a"])], &[i32s(&[0], &[])]),
            ex("empty", &[x(&[2, 0], &[])], &[i32s(&[2], &[2, 0])]),
        ],
        ..LOOK
    },
    OpDef {
        name: "ShapeN",
        inputs: &["input: N * T"],
        outputs: &["output: N * out_type"],
        attrs: &[
            "N: int >= 1",
            "T: type",
            "out_type: {int32, int64} = DT_INT32",
        ],
        infer: infer_shape,
        kernels: &[cpu(&[("out_type", INDEX)], build_shape)],
        examples: &[
            ex(
                "two",
                &[MATRIX, x(&[], &[1.0])],
                &[i32s(&[2], &[2, 3]), i32s(&[0], &[])],
            ),
            ex_attrs(
                "int64",
                INT64,
                &[f32s(&[0], &[]), f32s(&[1, 2], &[1.0])],
                &[i64s(&[1], &[0]), i64s(&[2], &[1, 2])],
            ),
        ],
        ..LOOK
    },
    OpDef {
        name: "Size",
        infer: infer::scalar,
        kernels: &[cpu(&[("out_type", INDEX)], build_size)],
        examples: &[
            ex("matrix", &[MATRIX], &[i32s(&[], &[6])]),
            ex_attrs("int64", INT64, &[MATRIX], &[i64s(&[], &[6])]),
            ex("scalar", &[strs(&[], &["a"])], &[i32s(&[], &[1])]),
            ex("empty", &[x(&[2, 0], &[])], &[i32s(&[], &[0])]),
        ],
        ..LOOK
    },
];

fn infer_shape(ctx: &mut InferCtx<'_>) -> Result<()> {
    for index in 0..ctx.num_inputs() {
        let rank = ctx.input(index).rank().map_or(-1, |rank| rank as i64);
        ctx.set(index, PartialShape::new(&[rank]));
    }
    Ok(())
}

fn build_rank(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let rank = ctx.input(0)?.rank() as i32;
        ctx.set(0, Tensor::scalar(rank));
        Ok(())
    })
}

fn build_shape(node: &NodeInfo) -> Result<AnyKernel> {
    let wide = node.attrs.dtype("out_type")? == DType::I64;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        for index in 0..ctx.num_inputs() {
            let shape = ctx.input(index)?.shape();
            let tensor = if wide {
                Tensor::vector::<i64>(shape)
            } else {
                narrow(shape)?
            };
            ctx.set(index, tensor);
        }
        Ok(())
    })
}

fn narrow(shape: &Shape) -> Result<Tensor> {
    let mut tensor = Tensor::new(DType::I32, Shape::vector(shape.rank()))?;
    let out = tensor.slice_mut::<i32>()?;
    for (axis, (out, dim)) in out.iter_mut().zip(shape.iter()).enumerate() {
        *out = i32::try_from(*dim).map_err(|_| {
            invalid_argument!("Shape output type is 32-bit but dim {axis} is {dim}")
        })?;
    }
    Ok(tensor)
}

fn build_size(node: &NodeInfo) -> Result<AnyKernel> {
    let wide = node.attrs.dtype("out_type")? == DType::I64;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let size = ctx.input(0)?.elements() as i64;
        let tensor = if wide {
            Tensor::scalar(size)
        } else {
            let size = i32::try_from(size).map_err(|_| {
                invalid_argument!(
                    "Number of elements was larger than representable by 32-bit output type: {size}"
                )
            })?;
            Tensor::scalar(size)
        };
        ctx.set(0, tensor);
        Ok(())
    })
}
