//! `TensorStridedSliceUpdate`, `StridedSliceAssign`: a value written over a strided slice, of a copy or of a variable.
//!
//! TensorFlow: TensorStridedSliceUpdate(input: T, begin: Index, end: Index, strides: Index, value: T) -> output: T;
//! StridedSliceAssign(ref: Ref(T), begin, end, strides, value: T) -> output_ref: Ref(T). The value is broadcast
//! to the slice.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, script, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, Value};
use tensorfleet_status::{Code, Result};

use super::grads;
use super::slicing::{MASKS, Masks, Slicing, strided_slice_attrs};
use crate::types::{INDEX, MOVABLE};

const UPDATE: OpDef = OpDef {
    attrs: strided_slice_attrs!("T: type", "Index: {int32, int64}"),
    infer: infer::same_as_first,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "StridedSliceAssign",
        inputs: &[
            "ref: Ref(T)",
            "begin: Index",
            "end: Index",
            "strides: Index",
            "value: T",
        ],
        outputs: &["output_ref: Ref(T)"],
        kernels: &[cpu(&[("T", MOVABLE), ("Index", INDEX)], build_assign)],
        scripts: &[script(
            "middle",
            "v = VariableV2() {shape=[4], dtype=float}
             start = float[4]{1, 2, 3, 4}
             init = Assign(v, start)
             one = int32[1]{1}
             three = int32[1]{3}
             value = float[2]{8, 9}
             write = StridedSliceAssign(v, one, three, one, value)",
            &[
                "run init",
                "fetch write => float[4]{1, 8, 9, 4}",
                "fetch v => float[4]{1, 8, 9, 4}",
            ],
        )],
        ..UPDATE
    },
    OpDef {
        name: "TensorStridedSliceUpdate",
        inputs: &[
            "input: T",
            "begin: Index",
            "end: Index",
            "strides: Index",
            "value: T",
        ],
        outputs: &["output: T"],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", MOVABLE), ("Index", INDEX)], build_update)],
        examples: &[
            ex(
                "every second",
                &[
                    x(&[4], &[1.0, 2.0, 3.0, 4.0]),
                    i32s(&[1], &[0]),
                    i32s(&[1], &[4]),
                    i32s(&[1], &[2]),
                    x(&[2], &[8.0, 9.0]),
                ],
                &[x(&[4], &[8.0, 2.0, 9.0, 4.0])],
            ),
            ex_attrs(
                "broadcast to a column",
                &[
                    ("begin_mask", "1"),
                    ("end_mask", "1"),
                    ("shrink_axis_mask", "2"),
                ],
                &[
                    f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                    i32s(&[2], &[0, 1]),
                    i32s(&[2], &[0, 2]),
                    i32s(&[2], &[1, 1]),
                    f32s(&[], &[9.0]),
                ],
                &[f32s(&[2, 2], &[1.0, 9.0, 3.0, 9.0])],
            ),
            ex_err(
                "wrong shape",
                &[],
                &[
                    f32s(&[4], &[1.0]),
                    i32s(&[1], &[0]),
                    i32s(&[1], &[2]),
                    i32s(&[1], &[1]),
                    f32s(&[3], &[1.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..UPDATE
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let slice = strided(g, "StridedSlice", &[grad])?;
    let zeros = g.apply("ZerosLike", &[slice])?;
    let input_grad = strided(g, "TensorStridedSliceUpdate", &[grad, zeros])?;
    let index = g.dtype(g.input(1));
    let slice_shape = grads::shape_as(g, slice, index)?;
    let value_shape = grads::shape_as(g, g.input(4), index)?;
    let args = g.builder().op("BroadcastGradientArgs");
    let args = args.input(slice_shape).input(value_shape).build()?;
    let summed = g.apply("Sum", &[slice, args.output(1)])?;
    let value_grad = g.apply("Reshape", &[summed, value_shape])?;
    let (input_grad, value_grad) = (Grad::Dense(input_grad), Grad::Dense(value_grad));
    Ok(vec![Some(input_grad), None, None, None, Some(value_grad)])
}

/// An op on the same slice of another tensor; what follows the tensor comes behind the vectors.
fn strided(g: &mut GradCtx<'_>, op: &str, inputs: &[Output]) -> Result<Output> {
    let vectors = [g.input(1), g.input(2), g.input(3)];
    let masks = MASKS.map(|mask| (mask, g.attr(mask)));
    let mut node = g.builder().op(op).input(inputs[0]);
    for input in vectors.iter().chain(&inputs[1..]) {
        node = node.input(*input);
    }
    for (mask, value) in masks {
        node = node.attr(mask, value?);
    }
    node.output()
}

fn build_update(node: &NodeInfo) -> Result<AnyKernel> {
    let masks = Masks::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let slicing = Slicing::of_inputs(ctx, 1, masks, ctx.input(0)?.shape())?;
        let mut output = ctx.take(0)?;
        slicing.put(ctx, ctx.input(4)?, &mut output)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn build_assign(node: &NodeInfo) -> Result<AnyKernel> {
    let masks = Masks::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let var = ctx.input_ref(0)?.clone();
        var.update(|tensor| {
            let slicing = Slicing::of_inputs(ctx, 1, masks, tensor.shape())?;
            slicing.put(ctx, ctx.input(4)?, tensor)
        })?;
        ctx.set_value(0, Value::Ref(var));
        Ok(())
    })
}
