//! The gradient rules of convolutions: a convolution, its gradient for the input and that for the filter are linear in both
//! of their tensors, and the gradients of each are the other two.
//!
//! `op` is the convolution's name; its gradients are called the same with `BackpropInput` and `BackpropFilter` behind.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_status::Result;

use super::conv_attrs::with_attrs;

/// The attributes that a convolution shares with its gradients.
const SHARED: [&str; 5] = [
    "strides",
    "padding",
    "explicit_paddings",
    "data_format",
    "dilations",
];

/// Of the convolution itself.
pub(super) fn forward(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let (grad, input, filter) = (g.grad(0)?, g.input(0), g.input(1));
    let to_input = for_input(g, op, input, filter, grad)?;
    let to_filter = for_filter(g, op, input, filter, grad)?;
    Ok(vec![to_input, to_filter])
}

/// Of `{op}BackpropInput(input_sizes, filter, out_backprop)`.
pub(super) fn backprop_input(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let (grad, filter, out_backprop) = (g.grad(0)?, g.input(1), g.input(2));
    let to_filter = for_filter(g, op, grad, filter, out_backprop)?;
    let to_backprop = with_attrs(g, op, &SHARED, &[grad, filter])?;
    Ok(vec![None, to_filter, Some(Grad::Dense(to_backprop))])
}

/// Of `{op}BackpropFilter(input, filter_sizes, out_backprop)`.
pub(super) fn backprop_filter(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let (grad, input, out_backprop) = (g.grad(0)?, g.input(0), g.input(2));
    let to_input = for_input(g, op, input, grad, out_backprop)?;
    let to_backprop = with_attrs(g, op, &SHARED, &[input, grad])?;
    Ok(vec![to_input, None, Some(Grad::Dense(to_backprop))])
}

fn for_input(
    g: &mut GradCtx<'_>,
    op: &str,
    input: Output,
    filter: Output,
    out_backprop: Output,
) -> Result<Option<Grad>> {
    let (op, sizes) = (format!("{op}BackpropInput"), g.shape(input)?);
    let grad = with_attrs(g, &op, &SHARED, &[sizes, filter, out_backprop])?;
    Ok(Some(Grad::Dense(grad)))
}

fn for_filter(
    g: &mut GradCtx<'_>,
    op: &str,
    input: Output,
    filter: Output,
    out_backprop: Output,
) -> Result<Option<Grad>> {
    let (op, sizes) = (format!("{op}BackpropFilter"), g.shape(filter)?);
    let grad = with_attrs(g, &op, &SHARED, &[input, sizes, out_backprop])?;
    Ok(Some(Grad::Dense(grad)))
}
