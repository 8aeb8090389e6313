//! The gradient rules of the ops in [`scatter_nd`](super::scatter_nd): what came from an update goes back
//! to it by `GatherNd`, what came from the tensor goes back to the tensor.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_status::Result;

use super::grads;

fn gather(g: &mut GradCtx<'_>, params: Output, indices: Output) -> Result<Output> {
    let policy = g.attr("bad_indices_policy")?;
    let node = g.builder().op("GatherNd").input(params).input(indices);
    node.attr("bad_indices_policy", policy).output()
}

fn both(tensor: Output, updates: Output) -> Result<InputGrads> {
    let (tensor, updates) = (Grad::Dense(tensor), Grad::Dense(updates));
    Ok(vec![Some(tensor), None, Some(updates)])
}

/// ScatterNd.
pub(super) fn scatter_nd(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices) = (g.grad(0)?, g.input(0));
    let updates = gather(g, grad, indices)?;
    Ok(vec![None, Some(Grad::Dense(updates)), None])
}

/// The adding ops.
pub(super) fn add(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices) = (g.grad(0)?, g.input(1));
    let updates = gather(g, grad, indices)?;
    both(grad, updates)
}

/// The subtracting op.
pub(super) fn sub(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices) = (g.grad(0)?, g.input(1));
    let updates = gather(g, grad, indices)?;
    let updates = g.apply("Neg", &[updates])?;
    both(grad, updates)
}

/// The overwriting op: nothing flows to what was overwritten.
pub(super) fn update(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices) = (g.grad(0)?, g.input(1));
    let updates = gather(g, grad, indices)?;
    let zeros = g.apply("ZerosLike", &[g.input(2)])?;
    let policy = g.attr("bad_indices_policy")?;
    let node = g.builder().op("TensorScatterUpdate");
    let node = node.input(grad).input(indices).input(zeros);
    let tensor = node.attr("bad_indices_policy", policy).output()?;
    both(tensor, updates)
}

/// The smallest or largest of several shares the gradient among all that equal it.
pub(super) fn extremum(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, tensor, indices, updates) = (g.grad(0)?, g.input(0), g.input(1), g.input(2));
    let output = g.output(0);
    let dtype = g.dtype(grad);
    let from_tensor = g.apply("Equal", &[tensor, output])?;
    let from_tensor = g.cast(from_tensor, dtype)?;
    let results = gather(g, output, indices)?;
    let from_updates = g.apply("Equal", &[updates, results])?;
    let from_updates = g.cast(from_updates, dtype)?;
    let index = g.dtype(indices);
    let shape = grads::shape_as(g, tensor, index)?;
    let policy = g.attr("bad_indices_policy")?;
    let node = g.builder().op("ScatterNd");
    let node = node.input(indices).input(from_updates).input(shape);
    let spread = node.attr("bad_indices_policy", policy).output()?;
    let sharers = g.apply("AddV2", &[from_tensor, spread])?;
    let share = g.apply("RealDiv", &[grad, sharers])?;
    let tensor_grad = g.apply("Mul", &[share, from_tensor])?;
    let gathered = gather(g, share, indices)?;
    let updates_grad = g.apply("Mul", &[gathered, from_updates])?;
    both(tensor_grad, updates_grad)
}
