//! `TensorListLength`, `TensorListElementShape`, `TensorListResize`: what a list is, and how long.
//!
//! TensorFlow: TensorListLength(input_handle: variant) -> length: int32; TensorListElementShape(input_handle: variant) ->
//! element_shape: shape_type, the scalar -1 if nothing is known; TensorListResize(input_handle: variant, size: int32) ->
//! output_handle: variant.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, Tensor};

use super::{LIST, check_size, list, list_mut};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "TensorListElementShape",
        inputs: &["input_handle: variant"],
        outputs: &["element_shape: shape_type"],
        attrs: &["shape_type: {int32, int64}"],
        gradient: Gradient::Stop("a shape is no number to differentiate by"),
        kernels: &[cpu(&[], build_element_shape)],
        scripts: &[SHAPES],
        ..LIST
    },
    OpDef {
        name: "TensorListLength",
        inputs: &["input_handle: variant"],
        outputs: &["length: int32"],
        infer: infer::scalar,
        gradient: Gradient::Stop("a length is no number to differentiate by"),
        kernels: &[cpu(&[], build_length)],
        scripts: &[SIZES],
        ..LIST
    },
    OpDef {
        name: "TensorListResize",
        inputs: &["input_handle: variant", "size: int32"],
        outputs: &["output_handle: variant"],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient_of_resize),
        kernels: &[cpu(&[], build_resize)],
        scripts: &[SIZES],
        ..LIST
    },
];

const SHAPES: Script = script(
    "of all degrees of knowledge",
    "one = int32[]{1}
     unknown = int32[]{-1}
     some = int32[2]{-1, 3}
     scalar = int32[0]{}
     a = TensorListReserve(unknown, one) {element_dtype=DT_FLOAT}
     b = TensorListReserve(some, one) {element_dtype=DT_FLOAT}
     c = TensorListReserve(scalar, one) {element_dtype=DT_FLOAT}
     of_a = TensorListElementShape(a) {shape_type=DT_INT32}
     of_b = TensorListElementShape(b) {shape_type=DT_INT64}
     of_c = TensorListElementShape(c) {shape_type=DT_INT32}",
    &["fetch of_a, of_b, of_c => int32[]{-1}; int64[2]{-1, 3}; int32[0]{}"],
);

const SIZES: Script = script(
    "shorter and longer",
    "shape = int32[0]{}
     x = float[3]{1, 2, 3}
     list = TensorListFromTensor(x, shape)
     two = int32[]{2}
     four = int32[]{4}
     minus = int32[]{-1}
     short = TensorListResize(list, two)
     long = TensorListResize(list, four)
     bad = TensorListResize(list, minus)
     length = TensorListLength(list)
     ls = TensorListLength(short)
     a = TensorListStack(short, shape) {element_dtype=DT_FLOAT}
     b = TensorListStack(long, shape) {element_dtype=DT_FLOAT}",
    &[
        "fetch length, ls, a, b => int32[]{3}; int32[]{2}; float[2]{1, 2}; float[4]{1, 2, 3, 0}",
        "run bad fails INVALID_ARGUMENT TensorListSlice expects size to be non-negative. Got: -1",
    ],
);

fn build_element_shape(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("shape_type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let shape = list(ctx, 0)?.element_shape.dims();
        let tensor = match (shape, dtype) {
            (None, DType::I64) => Tensor::scalar(-1i64),
            (None, _) => Tensor::scalar(-1i32),
            (Some(dims), DType::I64) => Tensor::vector(dims),
            (Some(dims), _) => {
                let narrow: Vec<i32> = dims.iter().map(|dim| *dim as i32).collect();
                Tensor::vector(&narrow)
            }
        };
        ctx.set(0, tensor);
        Ok(())
    })
}

fn build_length(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let length = list(ctx, 0)?.items.len();
        ctx.set(0, Tensor::scalar(length as i32));
        Ok(())
    })
}

fn build_resize(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let size = ctx.int(1)?;
        ensure!(
            size >= 0,
            invalid_argument,
            "TensorListSlice expects size to be non-negative. Got: {size}"
        );
        check_size(size as usize)?;
        let mut handle = ctx.take(0)?;
        list_mut(&mut handle)?.items.resize(size as usize, None);
        ctx.set(0, handle);
        Ok(())
    })
}

fn gradient_of_resize(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, list) = (g.grad(0)?, g.input(0));
    let length = g.apply("TensorListLength", &[list])?;
    let grad = g.apply("TensorListResize", &[grad, length])?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}
