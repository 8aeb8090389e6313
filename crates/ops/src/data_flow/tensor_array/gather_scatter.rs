//! `TensorArrayGatherV3`, `TensorArrayScatterV3`: many elements of one shape as one tensor.
//!
//! TensorFlow: TensorArrayGatherV3(handle: resource, indices: int32, flow_in: float) -> value: dtype, with attr
//! element_shape: shape = unknown; TensorArrayScatterV3(handle: resource, indices: int32, value: T, flow_in: float)
//! -> flow_out: float.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, unimplemented};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor};

use super::{STATEFUL, array_to_read, array_to_write, grads_of_read, grads_of_write};
use crate::array::moves;
use crate::types::MOVABLE;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "TensorArrayGatherV3",
        inputs: &["handle: resource", "indices: int32", "flow_in: float"],
        outputs: &["value: dtype"],
        attrs: &["dtype: type", "element_shape: shape = {unknown_rank: true}"],
        gradient: Gradient::Rule(gradient_of_gather),
        kernels: &[cpu(&[("dtype", MOVABLE)], build_gather)],
        scripts: &[THERE_AND_BACK, NO_ELEMENTS, GATHER_ERRORS],
        ..STATEFUL
    },
    OpDef {
        name: "TensorArrayScatterV3",
        inputs: &[
            "handle: resource",
            "indices: int32",
            "value: T",
            "flow_in: float",
        ],
        outputs: &["flow_out: float"],
        attrs: &["T: type"],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient_of_scatter),
        kernels: &[cpu(&[("T", MOVABLE)], build_scatter)],
        scripts: &[THERE_AND_BACK, SCATTER_ERRORS],
        ..STATEFUL
    },
];

const THERE_AND_BACK: Script = script(
    "there and back",
    "three = int32[]{3}
     x = float[3,2]{1, 2, 3, 4, 5, 6}
     order = int32[3]{2, 0, 1}
     some = int32[2]{1, 2}
     ta = TensorArrayV3(three) {dtype=DT_FLOAT}
     w = TensorArrayScatterV3(ta, order, x, ta:1)
     y = TensorArrayGatherV3(ta, some, w) {dtype=DT_FLOAT}
     words = string[2]{a, b}
     texts = TensorArrayV3(three) {dtype=DT_STRING, dynamic_size=true, clear_after_read=false}
     ends = int32[2]{4, 0}
     repeated = int32[3]{4, 0, 4}
     wt = TensorArrayScatterV3(texts, ends, words, texts:1)
     size = TensorArraySizeV3(texts, wt)
     t = TensorArrayGatherV3(texts, repeated, wt) {dtype=DT_STRING, element_shape=[]}",
    &[
        "fetch y, w => float[2,2]{5, 6, 1, 2}; float[]{0}",
        "fetch t, size => string[3]{a, b, a}; int32[]{5}",
    ],
);

const NO_ELEMENTS: Script = script(
    "no elements",
    "zero = int32[]{0}
     none = int32[0]{}
     ta = TensorArrayV3(zero) {dtype=DT_FLOAT}
     y = TensorArrayGatherV3(ta, none, ta:1) {dtype=DT_FLOAT, element_shape=[2]}
     z = TensorArrayGatherV3(ta, none, ta:1) {dtype=DT_FLOAT, element_shape=[?]}
     tb = TensorArrayV3(zero) {dtype=DT_FLOAT, element_shape=[3]}
     u = TensorArrayGatherV3(tb, none, tb:1) {dtype=DT_FLOAT}
     x = float[0,3]{}
     w = TensorArrayScatterV3(tb, none, x, tb:1)",
    &[
        "fetch y, w => float[0,2]{}; float[]{0}",
        "fetch z fails UNIMPLEMENTED TensorArray has size zero, but element shape [?] is not fully defined.",
        "fetch u fails UNIMPLEMENTED TensorArray has size zero, but element shape <unknown> is not fully defined.",
    ],
);

const GATHER_ERRORS: Script = script(
    "what cannot be gathered",
    "two = int32[]{2}
     zero = int32[]{0}
     one = int32[]{1}
     both = int32[2]{0, 1}
     x = float[2]{1, 2}
     y = float[3]{1, 2, 3}
     ta = TensorArrayV3(two) {dtype=DT_FLOAT}
     wx = TensorArrayWriteV3(ta, zero, x, ta:1)
     wy = TensorArrayWriteV3(ta, one, y, wx)
     differ = TensorArrayGatherV3(ta, both, wy) {dtype=DT_FLOAT}
     scalar = TensorArrayGatherV3(ta, zero, wy) {dtype=DT_FLOAT}
     dtype = TensorArrayGatherV3(ta, both, wy) {dtype=DT_INT32}
     first = int32[1]{0}
     shape = TensorArrayGatherV3(ta, first, wx) {dtype=DT_FLOAT, element_shape=[3]}
     td = TensorArrayV3(two) {dtype=DT_FLOAT, element_shape=[2]}
     known = TensorArrayGatherV3(td, first, td:1) {dtype=DT_FLOAT, element_shape=[3]}",
    &[
        "fetch differ fails INVALID_ARGUMENT TensorArray has inconsistent shapes.  Index 0 has shape: [2] but index 1 has shape: [3]",
        "fetch scalar fails INVALID_ARGUMENT",
        "fetch dtype fails INVALID_ARGUMENT TensorArray dtype is float but Op requested dtype int32.",
        "fetch shape fails INVALID_ARGUMENT TensorArray was passed element_shape [3] which does not match the Tensor at index 0: [2]",
        "fetch known fails INVALID_ARGUMENT",
    ],
);

const SCATTER_ERRORS: Script = script(
    "what cannot be scattered",
    "two = int32[]{2}
     scalar = float[]{1}
     x = float[2,1]{1, 2}
     ends = int32[2]{0, 2}
     one = int32[1]{0}
     before = int32[2]{0, -1}
     ta = TensorArrayV3(two) {dtype=DT_FLOAT}
     a = TensorArrayScatterV3(ta, ends, x, ta:1)
     b = TensorArrayScatterV3(ta, one, x, ta:1)
     c = TensorArrayScatterV3(ta, one, scalar, ta:1)
     d = TensorArrayScatterV3(ta, before, x, ta:1)
     e = TensorArrayScatterV3(ta, one, one, ta:1)",
    &[
        "fetch a fails INVALID_ARGUMENT Max scatter index must be < array size (2 vs. 2)",
        "fetch b fails INVALID_ARGUMENT Expected len(indices) == values.shape[0], but saw: 1 vs. 2",
        "fetch c fails INVALID_ARGUMENT Input value for unpack must be at least a vector but received shape: []",
        "fetch d fails INVALID_ARGUMENT Tried to write to index -1",
        "fetch e fails INVALID_ARGUMENT TensorArray dtype is float but Op is trying to write dtype int32.",
    ],
);

/// The indices in input 1.
fn indices(ctx: &KernelCtx<'_>) -> Result<Vec<i64>> {
    let indices = ctx.input(1)?;
    ensure!(
        indices.rank() == 1,
        invalid_argument,
        "Expected indices to be a vector, but received shape: {}",
        indices.shape()
    );
    Ok(ctx.ints(1)?.to_vec())
}

fn build_gather(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    let element_shape = node.attrs.shape("element_shape")?.clone();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let value = gather(ctx, dtype, &element_shape)?;
        ctx.set(0, value);
        Ok(())
    })
}

fn gather(ctx: &KernelCtx<'_>, dtype: DType, element_shape: &PartialShape) -> Result<Tensor> {
    let array = array_to_read(ctx, dtype)?;
    array.merge_element_shape(element_shape)?;
    let indices = indices(ctx)?;
    if indices.is_empty() {
        let shape = element_shape.to_shape().ok_or_else(|| unimplemented!(
            "TensorArray has size zero, but element shape {element_shape} is not fully defined. Currently only static shapes are supported when packing zero-size TensorArrays."
        ))?;
        return Tensor::new(dtype, Shape::new(&[0])?.concat(&shape)?);
    }
    let values = array.read(indices)?;
    let first = values.first().map(Tensor::shape).cloned();
    let first = first.unwrap_or_default();
    ensure!(
        element_shape.admits(&first),
        invalid_argument,
        "TensorArray was passed element_shape {element_shape} which does not match the Tensor at index 0: {first}"
    );
    for (index, value) in values.iter().enumerate() {
        ensure!(
            *value.shape() == first,
            invalid_argument,
            "TensorArray has inconsistent shapes.  Index 0 has shape: {first} but index {index} has shape: {}",
            value.shape()
        );
    }
    let shape = Shape::new(&[values.len() as i64])?.concat(&first)?;
    let parts = values.iter().map(|value| (value, value.elements()));
    moves::concat(ctx.par(), dtype, &parts.collect::<Vec<_>>(), shape)
}

fn build_scatter(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        scatter(ctx, dtype)?;
        let flow = ctx.take(3)?;
        ctx.set(0, flow);
        Ok(())
    })
}

fn scatter(ctx: &KernelCtx<'_>, dtype: DType) -> Result<()> {
    let array = array_to_write(ctx, dtype)?;
    let (indices, value) = (indices(ctx)?, ctx.input(2)?);
    ensure!(
        value.rank() > 0,
        invalid_argument,
        "Input value for unpack must be at least a vector but received shape: {}",
        value.shape()
    );
    let rows = value.shape().dim(0);
    ensure!(
        indices.len() == rows,
        invalid_argument,
        "Expected len(indices) == values.shape[0], but saw: {} vs. {rows}",
        indices.len()
    );
    let max = indices.iter().copied().max().unwrap_or(-1);
    let size = array.size_for((max + 1).max(0) as usize)?;
    ensure!(
        max < size as i64,
        invalid_argument,
        "Max scatter index must be < array size ({max} vs. {size})"
    );
    let shape = Shape::new(&value.shape()[1..])?;
    let values = indices.iter().enumerate().map(|(row, index)| {
        let element = value.rows(row, 1)?.reshaped(shape.clone())?;
        Ok((*index, element))
    });
    array.write(ctx.par(), values)
}

fn gradient_of_gather(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices, flow) = (g.grad(0)?, g.input(1), g.input(2));
    let (handle, flow) = grads_of_read(g, flow, grad)?;
    let flow = g.apply("TensorArrayScatterV3", &[handle, indices, grad, flow])?;
    Ok(vec![None, None, Some(Grad::Dense(flow))])
}

fn gradient_of_scatter(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (indices, dtype) = (g.input(1), g.attr("T")?);
    let (handle, flow) = grads_of_write(g)?;
    let gather = g.builder().op("TensorArrayGatherV3");
    let gather = gather.input(handle).input(indices).input(flow);
    let value = gather.attr("dtype", dtype).output()?;
    Ok(vec![
        None,
        None,
        Some(Grad::Dense(value)),
        Some(Grad::Dense(flow)),
    ])
}
