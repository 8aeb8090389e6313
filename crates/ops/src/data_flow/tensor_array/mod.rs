//! TensorArrays: arrays of tensors that live within a step, the state of loops built from frames.
//!
//! A handle names the array and carries it; the array ends with its last handle. The float `flow` that
//! every op takes and gives orders reads after writes and lets gradients find their way back.

mod array;
pub(super) mod close;
pub(super) mod concat_split;
pub(super) mod create;
pub(super) mod element;
pub(super) mod gather_scatter;
pub(super) mod grad;

use std::sync::Arc;

use tensorfleet_graph::gradient::GradCtx;
use tensorfleet_graph::{Exactness, OpDef, Output};
use tensorfleet_kernel::KernelCtx;
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, Tensor};

use crate::state::names;
use array::TensorArray;

/// What all these ops have in common.
const STATEFUL: OpDef = OpDef {
    stateful: true,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// A handle that carries the array.
fn handle_to(ctx: &KernelCtx<'_>, array: &Arc<TensorArray>) -> Tensor {
    let container = format!("__per_step_{}", ctx.env().step_id);
    names::handle_to(ctx, &container, &array.options.name, array.clone())
}

/// The array in input 0, to be read as `dtype`.
fn array_to_read(ctx: &KernelCtx<'_>, dtype: DType) -> Result<Arc<TensorArray>> {
    let array = ctx.resource::<TensorArray>(0)?;
    let found = array.options.dtype;
    ensure!(
        found == dtype,
        invalid_argument,
        "TensorArray dtype is {found} but Op requested dtype {dtype}."
    );
    Ok(array)
}

/// The array in input 0, to be written with values of `dtype`.
fn array_to_write(ctx: &KernelCtx<'_>, dtype: DType) -> Result<Arc<TensorArray>> {
    let array = ctx.resource::<TensorArray>(0)?;
    let found = array.options.dtype;
    ensure!(
        found == dtype,
        invalid_argument,
        "TensorArray dtype is {found} but Op is trying to write dtype {dtype}."
    );
    Ok(array)
}

/// The index in input 1.
fn index(ctx: &KernelCtx<'_>) -> Result<i64> {
    let index = ctx.input(1)?;
    ensure!(
        index.rank() == 0,
        invalid_argument,
        "TensorArray index must be scalar, but had shape: {}",
        index.shape()
    );
    ctx.int(1)
}

/// Where the gradient of something read from the array in input 0 is to be written: (handle, flow).
fn grads_of_read(g: &mut GradCtx<'_>, flow: Output, grad: Output) -> Result<(Output, Output)> {
    let source = source_of(g, grad);
    grad_array(g, flow, source)
}

/// Where the gradient of something written to the array in input 0 can be read: (handle, flow).
///
/// The flow comes from the gradient of this node's flow and waits for the node, so that gradients are read
/// after everything was written.
fn grads_of_write(g: &mut GradCtx<'_>) -> Result<(Output, Output)> {
    let (flow, written) = (g.grad(0)?, g.output(0));
    let source = source_of(g, flow);
    let builder = g.builder();
    let barrier = builder.op("Identity").input(flow).control(written.node);
    let flow = barrier.output()?;
    grad_array(g, flow, source)
}

fn grad_array(g: &mut GradCtx<'_>, flow: Output, source: String) -> Result<(Output, Output)> {
    let handle = g.input(0);
    let builder = g.builder();
    let grad = builder.op("TensorArrayGradV3").input(handle).input(flow);
    let grad = grad.attr("source", source).build()?;
    let flow = builder.op("Identity").input(flow).control(grad).output()?;
    Ok((grad.output(0), flow))
}

/// Names the call of `gradients` that a node was made in: the part of the node's name that begins so.
fn source_of(g: &mut GradCtx<'_>, grad: Output) -> String {
    const PREFIX: &str = "gradients";
    let name = g.builder().graph().node(grad.node).name.to_string();
    let mut parts = name.split('/').scan(0, |end, part| {
        *end += part.len() + 1;
        Some((part, *end - 1))
    });
    match parts.find(|(part, _)| part.starts_with(PREFIX)) {
        Some((_, end)) => name[..end].to_owned(),
        None => PREFIX.to_owned(),
    }
}
