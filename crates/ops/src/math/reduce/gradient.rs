//! Gradients of the reductions.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Tensor};

use crate::math::calculus::{Calculus, first_of};

/// Every summand gets the gradient of its sum.
pub(super) fn sum(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = spread(g)?;
    first_of(2, grad)
}

/// As for the sum, divided by the number of summands.
pub(super) fn mean(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = spread(g)?;
    let (whole, parts) = (g.f("Size", g.input(0))?, g.f("Size", g.output(0))?);
    let one = g.constant(1.0, DType::I32)?;
    let parts = g.apply("Maximum", &[parts, one])?;
    let count = g.apply("FloorDiv", &[whole, parts])?;
    let count = g.cast(count, g.dtype(grad))?;
    let grad = g.div(grad, count)?;
    first_of(2, grad)
}

/// The gradient goes to the extremes, shared evenly where there are several.
pub(super) fn extreme(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let kept = kept_shape(g)?;
    let y = g.apply("Reshape", &[g.output(0), kept])?;
    let grad = g.apply("Reshape", &[grad, kept])?;
    let chosen = g.apply("Equal", &[y, g.input(0)])?;
    let chosen = g.cast(chosen, g.dtype(grad))?;
    let count = g.apply("Sum", &[chosen, g.input(1)])?;
    let count = g.apply("Reshape", &[count, kept])?;
    let share = g.div(chosen, count)?;
    let grad = g.mul(share, grad)?;
    first_of(2, grad)
}

/// `x / (norm / dy)`.
pub(super) fn norm(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let kept = kept_shape(g)?;
    let y = g.apply("Reshape", &[g.output(0), kept])?;
    let grad = g.apply("Reshape", &[grad, kept])?;
    let ratio = g.div(y, grad)?;
    let grad = g.div(g.input(0), ratio)?;
    first_of(2, grad)
}

/// The product of all other factors, by products from both ends: dividing by the factor would fail where it is zero.
pub(super) fn prod(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let x = g.input(0);
    let grad = spread(g)?;
    let shape = g.shape(x)?;
    let reduced = axes(g)?;
    let all = range(g)?;
    let others = g.apply("ListDiff", &[all, reduced])?;
    let zero = g.builder().constant(Tensor::scalar(0i32))?;
    let order = g.builder().op("ConcatV2");
    let order = order.list(&[reduced, others]).input(zero).output()?;
    let mut sizes = Vec::with_capacity(2);
    let first = g.ints(&[0])?;
    for part in [reduced, others] {
        let dims = g.apply("GatherV2", &[shape, part, zero])?;
        sizes.push(g.apply("Prod", &[dims, first])?);
    }
    let matrix = g.builder().op("Pack").list(&sizes).output()?;
    let permuted = g.apply("Transpose", &[x, order])?;
    let permuted_shape = g.shape(permuted)?;
    let reshaped = g.apply("Reshape", &[permuted, matrix])?;
    let mut products = Vec::with_capacity(2);
    for reverse in [false, true] {
        let node = g.builder().op("Cumprod").input(reshaped).input(zero);
        let product = node.attr("exclusive", true).attr("reverse", reverse);
        let product = product.output()?;
        products.push(g.conj(product)?);
    }
    let y = g.mul(products[0], products[1])?;
    let y = g.apply("Reshape", &[y, permuted_shape])?;
    let back = g.f("InvertPermutation", order)?;
    let y = g.apply("Transpose", &[y, back])?;
    let grad = g.mul(grad, y)?;
    let grad = g.apply("Reshape", &[grad, shape])?;
    first_of(2, grad)
}

/// The incoming gradient, repeated to the shape of the input.
fn spread(g: &mut GradCtx<'_>) -> Result<Output> {
    let grad = g.grad(0)?;
    let kept = kept_shape(g)?;
    let grad = g.apply("Reshape", &[grad, kept])?;
    let shape = g.shape(g.input(0))?;
    g.apply("BroadcastTo", &[grad, shape])
}

/// The shape of the output with reduced dimensions kept as 1.
fn kept_shape(g: &mut GradCtx<'_>) -> Result<Output> {
    if g.attrs().bool("keep_dims")? {
        return g.shape(g.output(0));
    }
    let shape = g.shape(g.input(0))?;
    let axes = axes(g)?;
    let (all, ones) = (range(g)?, g.f("OnesLike", axes)?);
    let node = g.builder().op("DynamicStitch");
    node.list(&[all, axes]).list(&[shape, ones]).output()
}

/// The reduced axes as an int32 vector, none negative.
fn axes(g: &mut GradCtx<'_>) -> Result<Output> {
    let flat = g.ints(&[-1])?;
    let axes = g.cast(g.input(1), DType::I32)?;
    let axes = g.apply("Reshape", &[axes, flat])?;
    let rank = g.f("Rank", g.input(0))?;
    let shifted = g.add(axes, rank)?;
    g.apply("FloorMod", &[shifted, rank])
}

/// `0, 1, … rank - 1`.
fn range(g: &mut GradCtx<'_>) -> Result<Output> {
    let rank = g.f("Rank", g.input(0))?;
    let zero = g.builder().constant(Tensor::scalar(0i32))?;
    let one = g.builder().constant(Tensor::scalar(1i32))?;
    g.apply("Range", &[zero, rank, one])
}
