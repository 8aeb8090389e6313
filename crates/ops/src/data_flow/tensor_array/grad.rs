//! `TensorArrayGradV3`, `TensorArrayGradWithShape`: the array of an array's gradients.
//!
//! TensorFlow: TensorArrayGradV3(handle: resource, flow_in: float) -> (grad_handle: resource, flow_out: float), with
//! attr source: string; TensorArrayGradWithShape also takes shape_to_prepend: int32, dimensions that every gradient
//! has before those of its element. All nodes with one source share one array.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::{Shape, Tensor};

use super::array::TensorArray;
use super::{STATEFUL, handle_to};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "TensorArrayGradV3",
        inputs: &["handle: resource", "flow_in: float"],
        kernels: &[cpu(&[], build)],
        scripts: &[SUMS, ZEROS, SIZES],
        ..GRAD
    },
    OpDef {
        name: "TensorArrayGradWithShape",
        inputs: &[
            "handle: resource",
            "flow_in: float",
            "shape_to_prepend: int32",
        ],
        kernels: &[cpu(&[], build_with_shape)],
        scripts: &[WITH_SHAPE],
        ..GRAD
    },
];

const GRAD: OpDef = OpDef {
    outputs: &["grad_handle: resource", "flow_out: float"],
    attrs: &["source: string"],
    infer: infer::scalar,
    gradient: Gradient::Stop("a handle is no number to differentiate by"),
    cost: Cost::Cheap,
    ..STATEFUL
};

const SUMS: Script = script(
    "writes to one index add up",
    "one = int32[]{1}
     zero = int32[]{0}
     x = float[2]{1, 2}
     y = float[2]{10, 20}
     z = float[3]{1, 1, 1}
     ta = TensorArrayV3(one) {dtype=DT_FLOAT}
     w = TensorArrayWriteV3(ta, zero, x, ta:1)
     r = TensorArrayReadV3(ta, zero, w) {dtype=DT_FLOAT}
     g = TensorArrayGradV3(ta, w, ^r) {source='gradients'}
     a = TensorArrayWriteV3(g, zero, x, g:1)
     h = TensorArrayGradV3(ta, a) {source='gradients'}
     b = TensorArrayWriteV3(h, zero, y, h:1)
     sum = TensorArrayReadV3(g, zero, b) {dtype=DT_FLOAT}
     other = TensorArrayGradV3(ta, b) {source='gradients_1'}
     none = TensorArrayReadV3(other, zero, other:1) {dtype=DT_FLOAT}
     wrong = TensorArrayWriteV3(g, zero, z, b)
     of_grad = TensorArrayGradV3(g, b) {source='second'}",
    &[
        "fetch sum, none => float[2]{11, 22}; float[2]{0, 0}",
        "fetch wrong fails INVALID_ARGUMENT Could not aggregate to TensorArray index 0 because the existing shape is [2] but the new input shape is [3].",
        "run of_grad fails INVALID_ARGUMENT Wrong input container. _tensor_array_grads",
    ],
);

const ZEROS: Script = script(
    "zeros where nothing was written",
    "two = int32[]{2}
     zero = int32[]{0}
     one = int32[]{1}
     both = int32[2]{0, 1}
     x = float[2]{1, 2}
     ta = TensorArrayV3(two) {dtype=DT_FLOAT}
     w = TensorArrayWriteV3(ta, zero, x, ta:1)
     g = TensorArrayGradV3(ta, w) {source='g'}
     written = TensorArrayReadV3(g, zero, g:1) {dtype=DT_FLOAT}
     unwritten = TensorArrayReadV3(g, one, g:1) {dtype=DT_FLOAT}
     known = TensorArrayV3(two) {dtype=DT_FLOAT, element_shape=[2]}
     kw = TensorArrayWriteV3(known, zero, x, known:1)
     kg = TensorArrayGradV3(known, kw) {source='g'}
     all = TensorArrayGatherV3(kg, both, kg:1) {dtype=DT_FLOAT}
     behind = TensorArrayReadV3(kg, two, kg:1) {dtype=DT_FLOAT}",
    &[
        "fetch written => float[2]{0, 0}",
        "fetch unwritten fails INVALID_ARGUMENT Could not read from TensorArray index 1.",
        "fetch all, behind => float[2,2]{0, 0, 0, 0}; float[2]{0, 0}",
    ],
);

const SIZES: Script = script(
    "lengths of a split, growth no more",
    "one = int32[]{1}
     zero = int32[]{0}
     x = float[3]{1, 2, 3}
     lengths = int64[2]{1, 2}
     ta = TensorArrayV3(zero) {dtype=DT_FLOAT, dynamic_size=true}
     w = TensorArraySplitV3(ta, x, lengths, ta:1)
     g = TensorArrayGradV3(ta, w) {source='g'}
     part = float[2]{10, 20}
     gw = TensorArrayWriteV3(g, one, part, g:1)
     all = TensorArrayConcatV3(g, gw) {dtype=DT_FLOAT}
     two = int32[]{2}
     more = TensorArrayWriteV3(ta, two, x, g:1)",
    &[
        "fetch all, all:1 => float[3]{0, 10, 20}; int64[2]{1, 2}",
        "run more fails INVALID_ARGUMENT Tried to write to index 2 but array is not resizeable and size is: 2",
    ],
);

const WITH_SHAPE: Script = script(
    "gradients with more dimensions",
    "two = int32[]{2}
     zero = int32[]{0}
     one = int32[]{1}
     x = float[2]{1, 2}
     prepend = int32[1]{3}
     ta = TensorArrayV3(two) {dtype=DT_FLOAT}
     w = TensorArrayWriteV3(ta, zero, x, ta:1)
     g = TensorArrayGradWithShape(ta, w, prepend) {source='g'}
     written = TensorArrayReadV3(g, zero, g:1) {dtype=DT_FLOAT}
     known = TensorArrayV3(two) {dtype=DT_FLOAT, element_shape=[1]}
     kg = TensorArrayGradWithShape(known, known:1, prepend) {source='g'}
     unwritten = TensorArrayReadV3(kg, one, kg:1) {dtype=DT_FLOAT}
     minus = int32[1]{-1}
     bad = TensorArrayGradWithShape(ta, w, minus) {source='g'}",
    &[
        "fetch written, unwritten => float[3,2]{0}; float[3,1]{0}",
        "run bad fails INVALID_ARGUMENT",
    ],
);

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let source = node.attrs.str("source")?.to_owned();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| make(ctx, &source, &Shape::scalar()))
}

fn build_with_shape(node: &NodeInfo) -> Result<AnyKernel> {
    let source = node.attrs.str("source")?.to_owned();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let prepend = Shape::new(&ctx.ints(2)?)?;
        make(ctx, &source, &prepend)
    })
}

fn make(ctx: &mut KernelCtx<'_>, source: &str, prepend: &Shape) -> Result<()> {
    let grad = ctx.resource::<TensorArray>(0)?.grad(source, prepend)?;
    let handle = handle_to(ctx, &grad);
    ctx.set(0, handle);
    ctx.set(1, Tensor::scalar(0f32));
    Ok(())
}
