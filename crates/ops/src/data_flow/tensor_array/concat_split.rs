//! `TensorArrayConcatV3`, `TensorArraySplitV3`: all elements joined along dimension 0, of whatever length each.
//!
//! TensorFlow: TensorArrayConcatV3(handle: resource, flow_in: float) -> (value: dtype, lengths: int64), with attr
//! element_shape_except0: shape = unknown; TensorArraySplitV3(handle: resource, value: T, lengths: int64,
//! flow_in: float) -> flow_out: float.

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
        name: "TensorArrayConcatV3",
        inputs: &["handle: resource", "flow_in: float"],
        outputs: &["value: dtype", "lengths: int64"],
        attrs: &[
            "dtype: type",
            "element_shape_except0: shape = {unknown_rank: true}",
        ],
        gradient: Gradient::Rule(gradient_of_concat),
        kernels: &[cpu(&[("dtype", MOVABLE)], build_concat)],
        scripts: &[THERE_AND_BACK, NO_ELEMENTS, CONCAT_ERRORS],
        ..STATEFUL
    },
    OpDef {
        name: "TensorArraySplitV3",
        inputs: &[
            "handle: resource",
            "value: T",
            "lengths: int64",
            "flow_in: float",
        ],
        outputs: &["flow_out: float"],
        attrs: &["T: type"],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient_of_split),
        kernels: &[cpu(&[("T", MOVABLE)], build_split)],
        scripts: &[THERE_AND_BACK, SPLIT_ERRORS],
        ..STATEFUL
    },
];

const THERE_AND_BACK: Script = script(
    "there and back",
    "three = int32[]{3}
     one = int32[]{1}
     x = int32[4,2]{1, 2, 3, 4, 5, 6, 7, 8}
     lengths = int64[3]{1, 0, 3}
     ta = TensorArrayV3(three) {dtype=DT_INT32, clear_after_read=false}
     w = TensorArraySplitV3(ta, x, lengths, ta:1)
     middle = TensorArrayReadV3(ta, one, w) {dtype=DT_INT32}
     y = TensorArrayConcatV3(ta, w) {dtype=DT_INT32}
     z = TensorArrayConcatV3(ta, w) {dtype=DT_INT32, element_shape_except0=[2]}",
    &[
        "fetch y, y:1, middle, w => int32[4,2]{1, 2, 3, 4, 5, 6, 7, 8}; int64[3]{1, 0, 3}; int32[0,2]{}; float[]{0}",
        "fetch z, z:1 => int32[4,2]{1, 2, 3, 4, 5, 6, 7, 8}; int64[3]{1, 0, 3}",
    ],
);

const NO_ELEMENTS: Script = script(
    "no elements",
    "zero = int32[]{0}
     ta = TensorArrayV3(zero) {dtype=DT_FLOAT}
     y = TensorArrayConcatV3(ta, ta:1) {dtype=DT_FLOAT, element_shape_except0=[2]}
     z = TensorArrayConcatV3(ta, ta:1) {dtype=DT_FLOAT}",
    &[
        "fetch y, y:1 => float[0,2]{}; int64[0]{}",
        "fetch z fails UNIMPLEMENTED TensorArray has size zero, but element_shape_except0 <unknown> is not fully defined.",
    ],
);

const CONCAT_ERRORS: Script = script(
    "what cannot be joined",
    "two = int32[]{2}
     zero = int32[]{0}
     one = int32[]{1}
     scalar = float[]{1}
     x = float[1,2]{1, 2}
     y = float[1,3]{1, 2, 3}
     ta = TensorArrayV3(two) {dtype=DT_FLOAT}
     a = TensorArrayWriteV3(ta, zero, x, ta:1)
     b = TensorArrayWriteV3(ta, one, y, a)
     differ = TensorArrayConcatV3(ta, b) {dtype=DT_FLOAT}
     shape = TensorArrayConcatV3(ta, b) {dtype=DT_FLOAT, element_shape_except0=[3]}
     c = TensorArrayWriteV3(ta, one, scalar, a)
     low = TensorArrayConcatV3(ta, c) {dtype=DT_FLOAT}",
    &[
        "fetch differ fails INVALID_ARGUMENT TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: [2] but index 1 has (excepting dimension 0) shape: [3]",
        "fetch shape fails INVALID_ARGUMENT TensorArray was passed element_shape_except0 [3] but index 0 has (excepting dimension 0) shape: [2] which does not match.",
        "fetch low fails INVALID_ARGUMENT Concat saw a scalar shape at index 1 but requires at least vectors.  Did you mean to call pack?",
    ],
);

const SPLIT_ERRORS: Script = script(
    "what cannot be split",
    "two = int32[]{2}
     scalar = float[]{1}
     x = float[3]{1, 2, 3}
     fit = int64[2]{1, 2}
     long = int64[2]{2, 2}
     few = int64[1]{3}
     flat = int64[]{3}
     ta = TensorArrayV3(two) {dtype=DT_FLOAT}
     a = TensorArraySplitV3(ta, x, long, ta:1)
     b = TensorArraySplitV3(ta, x, few, ta:1)
     c = TensorArraySplitV3(ta, x, flat, ta:1)
     d = TensorArraySplitV3(ta, scalar, fit, ta:1)
     ints = int32[3]{1, 2, 3}
     f = TensorArraySplitV3(ta, ints, fit, ta:1)",
    &[
        "fetch a fails INVALID_ARGUMENT Expected sum of lengths to be equal to values.shape[0], but sum of lengths is 4 and value's shape is: [3]",
        "fetch b fails INVALID_ARGUMENT TensorArray's size is not equal to the size of lengths (2 vs. 1), and the TensorArray is not marked as dynamically resizeable",
        "fetch c fails INVALID_ARGUMENT",
        "fetch d fails INVALID_ARGUMENT Expected value to be at least a vector, but received shape: []",
        "fetch f fails INVALID_ARGUMENT TensorArray dtype is float but Op is trying to write dtype int32.",
    ],
);

fn build_concat(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    let inner = node.attrs.shape("element_shape_except0")?.clone();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (value, lengths) = concat(ctx, dtype, &inner)?;
        ctx.set(0, value);
        ctx.set(1, lengths);
        Ok(())
    })
}

/// Joins all elements; `inner` is what is known of their shapes without dimension 0.
fn concat(ctx: &KernelCtx<'_>, dtype: DType, inner: &PartialShape) -> Result<(Tensor, Tensor)> {
    let array = array_to_read(ctx, dtype)?;
    let size = array.concat_size()?;
    if size == 0 {
        let shape = inner.to_shape().ok_or_else(|| unimplemented!(
            "TensorArray has size zero, but element_shape_except0 {inner} is not fully defined. Currently only static shapes are supported when concatenating zero-size TensorArrays."
        ))?;
        let value = Tensor::new(dtype, Shape::new(&[0])?.concat(&shape)?)?;
        return Ok((value, Tensor::vector::<i64>(&[])));
    }
    let values = array.read(0..size as i64)?;
    let mut first: &[i64] = &[];
    let mut lengths = Vec::with_capacity(size);
    for (index, value) in values.iter().enumerate() {
        let Some((length, row)) = value.shape().split_first() else {
            return Err(tensorfleet_status::invalid_argument!(
                "Concat saw a scalar shape at index {index} but requires at least vectors.  Did you mean to call pack?"
            ));
        };
        if index == 0 {
            first = row;
            ensure!(
                inner.admits(row),
                invalid_argument,
                "TensorArray was passed element_shape_except0 {inner} but index 0 has (excepting dimension 0) shape: {} which does not match.",
                PartialShape::new(row)
            );
        }
        ensure!(
            row == first,
            invalid_argument,
            "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: {} but index {index} has (excepting dimension 0) shape: {}",
            PartialShape::new(first),
            PartialShape::new(row)
        );
        lengths.push(*length);
    }
    let shape = Shape::new(&[lengths.iter().sum()])?.concat(first)?;
    let parts = values.iter().map(|value| (value, value.elements()));
    let value = moves::concat(ctx.par(), dtype, &parts.collect::<Vec<_>>(), shape)?;
    Ok((value, Tensor::vector(&lengths)))
}

fn build_split(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        split(ctx, dtype)?;
        let flow = ctx.take(3)?;
        ctx.set(0, flow);
        Ok(())
    })
}

fn split(ctx: &KernelCtx<'_>, dtype: DType) -> Result<()> {
    let (value, lengths) = (ctx.input(1)?, ctx.input(2)?);
    ensure!(
        lengths.rank() == 1,
        invalid_argument,
        "Expected lengths to be a vector, received shape: {}",
        lengths.shape()
    );
    let lengths = lengths.slice::<i64>()?;
    ensure!(
        value.rank() > 0,
        invalid_argument,
        "Expected value to be at least a vector, but received shape: {}",
        value.shape()
    );
    // TensorFlow's process ends at a negative length.
    let sum = lengths.iter().try_fold(0i64, |sum, length| {
        sum.checked_add(*length).filter(|_| *length >= 0)
    });
    ensure!(
        sum == value.shape().first().copied(),
        invalid_argument,
        "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {} and value's shape is: {} ",
        lengths.iter().copied().fold(0, i64::wrapping_add),
        value.shape()
    );
    let array = array_to_write(ctx, dtype)?;
    let size = array.size_for(lengths.len())?;
    ensure!(
        size == lengths.len(),
        invalid_argument,
        "TensorArray's size is not equal to the size of lengths ({size} vs. {}), and the TensorArray is not marked as dynamically resizeable",
        lengths.len()
    );
    array.mark_size(size);
    let mut begin = 0;
    let values = lengths.iter().enumerate().map(|(index, length)| {
        let part = value.rows(begin, *length as usize);
        begin += *length as usize;
        Ok((index as i64, part?))
    });
    array.write(ctx.par(), values)
}

fn gradient_of_concat(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, flow, lengths) = (g.grad(0)?, g.input(1), g.output(1));
    let (handle, flow) = grads_of_read(g, flow, grad)?;
    let flow = g.apply("TensorArraySplitV3", &[handle, grad, lengths, flow])?;
    Ok(vec![None, Some(Grad::Dense(flow))])
}

fn gradient_of_split(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let dtype = g.attr("T")?;
    let (handle, flow) = grads_of_write(g)?;
    let concat = g.builder().op("TensorArrayConcatV3");
    let concat = concat.input(handle).input(flow);
    let value = concat.attr("dtype", dtype).output()?;
    Ok(vec![
        None,
        Some(Grad::Dense(value)),
        None,
        Some(Grad::Dense(flow)),
    ])
}
