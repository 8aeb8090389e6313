//! The gradient of `Einsum`, itself sums of products over named dimensions.
//!
//! For `x,y->z` the gradient of `x` is `z,y->x` of the incoming gradient and `y`. A label that only `x` has was summed: its
//! gradient is the same all along it, so it is repeated. Broadcast dimensions are summed at the end.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use crate::math::calculus::{Calculus, both};

const ELLIPSIS: &str = "...";

pub(super) fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let equation = g.attrs().str("equation")?.to_string();
    let Some((inputs, output)) = equation.split_once("->") else {
        return Err(invalid_argument!("no '->' in einsum equation {equation}"));
    };
    let grad = g.grad(0)?;
    let Some((x_subs, y_subs)) = inputs.split_once(',') else {
        let shape = g.shape(g.input(0))?;
        let grad = repeated(g, grad, output, inputs, shape)?;
        return dense(grad);
    };
    let with_ellipsis = |subs: &str| match output.contains(ELLIPSIS) && !subs.contains(ELLIPSIS) {
        true => format!("{subs}{ELLIPSIS}"),
        false => subs.to_string(),
    };
    let (x_subs, y_subs) = (with_ellipsis(x_subs), with_ellipsis(y_subs));
    let (x, y) = (g.conj_input(0)?, g.conj_input(1)?);
    let shapes = [g.shape(x)?, g.shape(y)?];
    let grads = [
        towards(g, grad, output, (y, &y_subs), (shapes[0], &x_subs))?,
        towards(g, grad, output, (x, &x_subs), (shapes[1], &y_subs))?,
    ];
    if !output.contains(ELLIPSIS) {
        return both(grads[0], grads[1]);
    }
    unbroadcast(g, grads, shapes, [&x_subs, &y_subs])
}

/// The gradient of one of two inputs, given the other; broadcast dimensions are not summed yet.
fn towards(
    g: &mut GradCtx<'_>,
    grad: Output,
    output: &str,
    (other, other_subs): (Output, &str),
    (shape, subs): (Output, &str),
) -> Result<Output> {
    let is_kept = |c: &char| *c == '.' || output.contains(*c) || other_subs.contains(*c);
    let kept: String = subs.chars().filter(is_kept).collect();
    let equation = format!("{output},{other_subs}->{kept}");
    let part = einsum(g, &[grad, other], equation)?;
    repeated(g, part, &kept, subs, shape)
}

/// `grad` with dimensions `from`, turned to the dimensions `to`; labels that `from` lacks are repeated.
fn repeated(
    g: &mut GradCtx<'_>,
    grad: Output,
    from: &str,
    to: &str,
    shape: Output,
) -> Result<Output> {
    let mut missing = String::new();
    for label in to.chars() {
        if label != '.' && !from.contains(label) && !missing.contains(label) {
            missing.push(label);
        }
    }
    if missing.is_empty() {
        if from == to {
            return Ok(grad);
        }
        return einsum(g, &[grad], format!("{from}->{to}"));
    }
    // The repeated dimensions come first, in front of those the gradient has.
    let axes: Vec<i32> = missing.chars().map(|label| axis_of(to, label)).collect();
    let axes = g.ints(&axes)?;
    let rank = g.f("Size", shape)?;
    let axes = g.add(axes, rank)?;
    let axes = g.apply("FloorMod", &[axes, rank])?;
    let zero = g.builder().constant(Tensor::scalar(0i32))?;
    let sizes = g.apply("GatherV2", &[shape, axes, zero])?;
    let own = g.shape(grad)?;
    let node = g.builder().op("ConcatV2").list(&[sizes, own]);
    let whole = node.input(zero).output()?;
    let grad = g.apply("BroadcastTo", &[grad, whole])?;
    einsum(g, &[grad], format!("{missing}{from}->{to}"))
}

/// Where a label stands, counted from the end if behind the ellipsis.
fn axis_of(subs: &str, label: char) -> i32 {
    let (before, after) = subs.split_once(ELLIPSIS).unwrap_or((subs, ""));
    match before.chars().position(|c| c == label) {
        Some(axis) => axis as i32,
        None => {
            let behind = after.chars().position(|c| c == label).unwrap_or(0);
            behind as i32 - after.chars().count() as i32
        }
    }
}

fn unbroadcast(
    g: &mut GradCtx<'_>,
    grads: [Output; 2],
    shapes: [Output; 2],
    subs: [&str; 2],
) -> Result<InputGrads> {
    let mut parts = Vec::with_capacity(2);
    for (shape, subs) in shapes.into_iter().zip(subs) {
        let (before, after) = subs.split_once(ELLIPSIS).unwrap_or((subs, ""));
        let begin = g.ints(&[before.chars().count() as i32])?;
        let end = g.ints(&[-(after.chars().count() as i32)])?;
        let one = g.ints(&[1])?;
        let node = g.builder().op("StridedSlice").input(shape);
        let node = node.input(begin).input(end).input(one);
        parts.push(
            node.attr("end_mask", i64::from(after.is_empty()))
                .output()?,
        );
    }
    let args = g.builder().op("BroadcastGradientArgs");
    let args = args.input(parts[0]).input(parts[1]).build()?;
    let mut summed = Vec::with_capacity(2);
    for (index, grad) in grads.into_iter().enumerate() {
        let before = subs[index].split(ELLIPSIS).next().unwrap_or_default();
        let begin = g.constant(before.chars().count() as f64, DType::I32)?;
        let axes = g.add(args.output(index), begin)?;
        let sum = g.apply("Sum", &[grad, axes])?;
        summed.push(g.apply("Reshape", &[sum, shapes[index]])?);
    }
    both(summed[0], summed[1])
}

fn einsum(g: &mut GradCtx<'_>, inputs: &[Output], equation: String) -> Result<Output> {
    let node = g.builder().op("Einsum").list(inputs);
    node.attr("equation", equation.as_str()).output()
}
