//! Gradient rules of Fourier transforms: each is a transform in the other direction.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

use crate::array::grads;
use crate::math::calculus::Calculus;

/// The other transform without its division, or with it: `back` is the op of the other direction.
pub(super) fn complex(g: &mut GradCtx<'_>, back: &str, rank: i32) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let found = g.f(back, grad)?;
    let count = elements(g, grad, rank)?;
    let count = g.cast(count, g.dtype(grad))?;
    dense(match back.starts_with('I') {
        true => g.mul(found, count)?,
        false => g.div(found, count)?,
    })
}

/// Of real numbers to half a spectrum: the other half has no gradient, and the real part of what comes back is taken.
pub(super) fn forward(g: &mut GradCtx<'_>, back: &str, rank: i32) -> Result<InputGrads> {
    let (input, lengths, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let minus_rank = grads::int(g, -rank)?;
    let shape = g.shape(grad)?;
    let zero = grads::int(g, 0)?;
    let before = grads::part(g, shape, zero, Some(minus_rank))?;
    let whole = grads::join(g, &[before, lengths])?;
    let padded = padded(g, grad, whole)?;
    let found = g.f(back, padded)?;
    let dtype = g.dtype(input);
    let found = g.builder().op("Real").input(found);
    let found = found.attr("Tout", dtype).output()?;
    let axes = g.ints(&[0])?;
    let count = g.apply("Prod", &[lengths, axes])?;
    let count = g.cast(count, dtype)?;
    let scaled = g.mul(found, count)?;
    let shape = g.shape(input)?;
    Ok(vec![
        Some(Grad::Dense(self::padded(g, scaled, shape)?)),
        None,
    ])
}

/// Of half a spectrum to real numbers: what stands for two frequencies counts twice.
pub(super) fn inverse(g: &mut GradCtx<'_>, back: &str, rank: i32) -> Result<InputGrads> {
    let (input, lengths, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let dtype = g.dtype(input);
    let node = g.builder().op(back).input(grad).input(lengths);
    let found = node.attr("Tcomplex", dtype).output()?;
    let weights = weights(g, found, lengths)?;
    let weights = g.cast(weights, g.dtype(grad))?;
    let count = elements(g, grad, rank)?;
    let count = g.cast(count, g.dtype(grad))?;
    let weights = g.div(weights, count)?;
    let weights = g.cast(weights, dtype)?;
    let scaled = g.mul(found, weights)?;
    let shape = g.shape(input)?;
    Ok(vec![Some(Grad::Dense(padded(g, scaled, shape)?)), None])
}

/// 1, 2, …, 2, with 1 at the end for an even length: how many frequencies each of the half spectrum stands for.
fn weights(g: &mut GradCtx<'_>, half: Output, lengths: Output) -> Result<Output> {
    let (minus_one, zero, one) = (grads::int(g, -1)?, grads::int(g, 0)?, grads::int(g, 1)?);
    let two = grads::int(g, 2)?;
    let last = grads::part(g, lengths, minus_one, None)?;
    let shape = g.shape(half)?;
    let count = grads::part(g, shape, minus_one, None)?;
    let count = g.apply("Squeeze", &[count])?;
    let places = g.apply("Range", &[zero, count, one])?;
    let doubled = g.mul(places, two)?;
    // Twice the place is zero or the length where a frequency is its own mirror image.
    let turned = g.apply("FloorMod", &[doubled, last])?;
    let is_single = g.apply("Equal", &[turned, zero])?;
    let single = g.cast(is_single, DType::I32)?;
    g.sub(two, single)
}

/// The product of the last `rank` dimensions.
fn elements(g: &mut GradCtx<'_>, tensor: Output, rank: i32) -> Result<Output> {
    let shape = g.shape(tensor)?;
    let begin = grads::int(g, -rank)?;
    let dims = grads::part(g, shape, begin, None)?;
    let axes = g.ints(&[0])?;
    g.apply("Prod", &[dims, axes])
}

/// The tensor with zeros behind it, up to this shape.
fn padded(g: &mut GradCtx<'_>, tensor: Output, shape: Output) -> Result<Output> {
    let own = g.shape(tensor)?;
    let behind = g.sub(shape, own)?;
    let before = g.f("ZerosLike", behind)?;
    let node = g.builder().op("Pack").list(&[before, behind]);
    let paddings = node.attr("axis", 1i64).output()?;
    g.apply("Pad", &[tensor, paddings])
}
