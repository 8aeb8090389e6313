//! `TensorArrayWriteV3`, `TensorArrayReadV3`: one element.
//!
//! TensorFlow: TensorArrayWriteV3(handle: resource, index: int32, value: T, flow_in: float) -> flow_out: float;
//! TensorArrayReadV3(handle: resource, index: int32, flow_in: float) -> value: dtype.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::DType;

use super::{STATEFUL, array_to_read, array_to_write, grads_of_read, grads_of_write, index};
use crate::types::MOVABLE;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "TensorArrayReadV3",
        inputs: &["handle: resource", "index: int32", "flow_in: float"],
        outputs: &["value: dtype"],
        attrs: &["dtype: type"],
        gradient: Gradient::Rule(gradient_of_read),
        kernels: &[cpu(&[("dtype", MOVABLE)], build_read)],
        cost: Cost::Cheap,
        scripts: &[WRITE_THEN_READ, READ_ERRORS, KEPT],
        ..STATEFUL
    },
    OpDef {
        name: "TensorArrayWriteV3",
        inputs: &[
            "handle: resource",
            "index: int32",
            "value: T",
            "flow_in: float",
        ],
        outputs: &["flow_out: float"],
        attrs: &["T: type"],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient_of_write),
        kernels: &[cpu(&[("T", MOVABLE)], build_write)],
        cost: Cost::Cheap,
        scripts: &[WRITE_THEN_READ, WRITE_ERRORS],
        ..STATEFUL
    },
];

const WRITE_THEN_READ: Script = script(
    "elements of several dtypes",
    "two = int32[]{2}
     zero = int32[]{0}
     one = int32[]{1}
     x = float[2]{1, 2}
     y = string[]{text}
     z = complex64[1]{(1,2)}
     e = bool[0,2]{}
     floats = TensorArrayV3(two) {dtype=DT_FLOAT}
     fx = TensorArrayWriteV3(floats, one, x, floats:1)
     x2 = TensorArrayReadV3(floats, one, fx) {dtype=DT_FLOAT}
     texts = TensorArrayV3(two) {dtype=DT_STRING}
     fy = TensorArrayWriteV3(texts, zero, y, texts:1)
     y2 = TensorArrayReadV3(texts, zero, fy) {dtype=DT_STRING}
     numbers = TensorArrayV3(two) {dtype=DT_COMPLEX64}
     fz = TensorArrayWriteV3(numbers, zero, z, numbers:1)
     z2 = TensorArrayReadV3(numbers, zero, fz) {dtype=DT_COMPLEX64}
     bools = TensorArrayV3(two) {dtype=DT_BOOL}
     fe = TensorArrayWriteV3(bools, zero, e, bools:1)
     e2 = TensorArrayReadV3(bools, zero, fe) {dtype=DT_BOOL}",
    &[
        "fetch x2, y2, z2, e2, fx => float[2]{1, 2}; string[]{text}; complex64[1]{(1,2)}; bool[0,2]{}; float[]{0}",
    ],
);

const READ_ERRORS: Script = script(
    "what cannot be read",
    "two = int32[]{2}
     zero = int32[]{0}
     minus = int32[]{-1}
     many = int32[1]{0}
     x = float[2]{1, 2}
     ta = TensorArrayV3(two) {dtype=DT_FLOAT}
     w = TensorArrayWriteV3(ta, zero, x, ta:1)
     once = TensorArrayReadV3(ta, zero, w) {dtype=DT_FLOAT}
     twice = TensorArrayReadV3(ta, zero, w, ^once) {dtype=DT_FLOAT}
     behind = TensorArrayReadV3(ta, two, w) {dtype=DT_FLOAT}
     before = TensorArrayReadV3(ta, minus, w) {dtype=DT_FLOAT}
     unwritten = TensorArrayReadV3(ta, zero, ta:1) {dtype=DT_FLOAT}
     vector = TensorArrayReadV3(ta, many, w) {dtype=DT_FLOAT}
     dtype = TensorArrayReadV3(ta, zero, w) {dtype=DT_INT32}",
    &[
        "fetch once => float[2]{1, 2}",
        "fetch twice fails INVALID_ARGUMENT Could not read index 0 twice because it was cleared after a previous read (perhaps try setting clear_after_read = false?).",
        "fetch behind fails INVALID_ARGUMENT Tried to read from index 2 but array size is: 2",
        "fetch before fails INVALID_ARGUMENT Tried to read from index -1 but array size is: 2",
        "fetch unwritten fails INVALID_ARGUMENT Could not read from TensorArray index 0.  Furthermore, the element shape is not fully defined: <unknown>.",
        "fetch vector fails INVALID_ARGUMENT",
        "fetch dtype fails INVALID_ARGUMENT TensorArray dtype is float but Op requested dtype int32.",
    ],
);

const KEPT: Script = script(
    "kept after reading",
    "one = int32[]{1}
     zero = int32[]{0}
     x = float[2]{1, 2}
     ta = TensorArrayV3(one) {dtype=DT_FLOAT, clear_after_read=false}
     w = TensorArrayWriteV3(ta, zero, x, ta:1)
     once = TensorArrayReadV3(ta, zero, w) {dtype=DT_FLOAT}
     twice = TensorArrayReadV3(ta, zero, w, ^once) {dtype=DT_FLOAT}",
    &["fetch once, twice => float[2]{1, 2}; float[2]{1, 2}"],
);

const WRITE_ERRORS: Script = script(
    "what cannot be written",
    "two = int32[]{2}
     zero = int32[]{0}
     minus = int32[]{-1}
     many = int32[2]{0, 1}
     x = float[2]{1, 2}
     ta = TensorArrayV3(two) {dtype=DT_FLOAT}
     once = TensorArrayWriteV3(ta, zero, x, ta:1)
     twice = TensorArrayWriteV3(ta, zero, x, once)
     read = TensorArrayReadV3(ta, zero, once) {dtype=DT_FLOAT}
     again = TensorArrayWriteV3(ta, zero, x, once, ^read)
     before = TensorArrayWriteV3(ta, minus, x, ta:1)
     vector = TensorArrayWriteV3(ta, many, x, ta:1)
     dtype = TensorArrayWriteV3(ta, zero, two, ta:1)",
    &[
        "fetch twice fails INVALID_ARGUMENT Could not write to TensorArray index 0 because it has already been written to.",
        "fetch again fails INVALID_ARGUMENT Could not write to TensorArray index 0 because it has already been read.",
        "fetch before fails INVALID_ARGUMENT Tried to write to index -1 but array is not resizeable and size is: 2",
        "fetch vector fails INVALID_ARGUMENT",
        "fetch dtype fails INVALID_ARGUMENT TensorArray dtype is float but Op is trying to write dtype int32.",
    ],
);

fn build_read(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let index = index(ctx)?;
        let array = array_to_read(ctx, dtype)?;
        let value = array.read([index])?.pop();
        ctx.set(0, value.ok_or_else(|| internal!("one read gave nothing"))?);
        Ok(())
    })
}

fn build_write(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype: DType = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let index = index(ctx)?;
        let array = array_to_write(ctx, dtype)?;
        let (value, flow) = (ctx.take(2)?, ctx.take(3)?);
        array.write(ctx.par(), [Ok((index, value))])?;
        ctx.set(0, flow);
        Ok(())
    })
}

/// Writes the gradient where the value was read.
fn gradient_of_read(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, index, flow) = (g.grad(0)?, g.input(1), g.input(2));
    let (handle, flow) = grads_of_read(g, flow, grad)?;
    let flow = g.apply("TensorArrayWriteV3", &[handle, index, grad, flow])?;
    Ok(vec![None, None, Some(Grad::Dense(flow))])
}

/// Reads the gradient of what was written.
fn gradient_of_write(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (index, dtype) = (g.input(1), g.attr("T")?);
    let (handle, flow) = grads_of_write(g)?;
    let read = g.builder().op("TensorArrayReadV3");
    let read = read.input(handle).input(index).input(flow);
    let value = read.attr("dtype", dtype).output()?;
    Ok(vec![
        None,
        None,
        Some(Grad::Dense(value)),
        Some(Grad::Dense(flow)),
    ])
}
