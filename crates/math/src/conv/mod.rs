//! Two-dimensional convolutions on NHWC images with HWIO filters, and their gradients.
//!
//! ```text
//! geometry         sizes, padding
//! slab             rows of an image, padded if need be
//! correlate        forward; also the engine of input_grad
//! columns          backprop_input for few channels or odd strides
//! input_grad       windows over the gradient, one phase of the stride at a time
//! filter_grad      products over pixels
//! depthwise        groups of one input channel, all three passes
//! volume           three dimensions, by two
//! naive            plain loops: integers, the reference of the tests
//! ```
//!
//! Depthwise convolutions are those with as many groups as input channels; their filters `[h, w, channels, multiplier]` are
//! HWIO filters with one input channel, see [`Conv2d::depthwise`].
//!
//! What is a plain matrix product (1×1 filters, filters as large as the image) goes to [`gemm`](crate::gemm).

mod columns;
mod correlate;
mod depthwise;
mod depthwise_rows;
mod element;
mod filter_grad;
mod geometry;
mod input_grad;
mod naive;
mod slab;
#[cfg(test)]
mod tests;
mod volume;
#[cfg(test)]
mod volume_tests;

use crate::gemm::Epilogue;
use crate::par::Par;

pub use element::Element;
pub use geometry::{Conv2d, Padding, Window};
pub use volume::{Conv3d, backprop_filter_3d, backprop_input_3d, forward_3d};

/// `output = input * filter`, then the epilogue on each pixel (its columns are the output channels).
///
/// # Panics
/// If a slice is not as long as the sizes say.
pub fn forward<T: Element>(
    par: &dyn Par,
    conv: &Conv2d,
    input: &[T],
    filter: &[T],
    output: &mut [T],
    epilogue: Epilogue<'_, T>,
) {
    check(conv, input, filter, output);
    if !output.is_empty() {
        T::forward(par, conv, input, filter, output, epilogue);
    }
}

/// `input` becomes the gradient with respect to the input, for the gradient `grad` of the output.
///
/// # Panics
/// If a slice is not as long as the sizes say.
pub fn backprop_input<T: Element>(
    par: &dyn Par,
    conv: &Conv2d,
    filter: &[T],
    grad: &[T],
    input: &mut [T],
) {
    check(conv, input, filter, grad);
    if input.is_empty() || grad.is_empty() || filter.is_empty() {
        input.fill(T::ZERO);
    } else {
        T::backprop_input(par, conv, filter, grad, input);
    }
}

/// `filter` becomes the gradient with respect to the filter, for the gradient `grad` of the output.
///
/// # Panics
/// If a slice is not as long as the sizes say.
pub fn backprop_filter<T: Element>(
    par: &dyn Par,
    conv: &Conv2d,
    input: &[T],
    grad: &[T],
    filter: &mut [T],
) {
    check(conv, input, filter, grad);
    if filter.is_empty() || grad.is_empty() || input.is_empty() {
        filter.fill(T::ZERO);
    } else {
        T::backprop_filter(par, conv, input, grad, filter);
    }
}

fn check<T>(conv: &Conv2d, input: &[T], filter: &[T], output: &[T]) {
    assert_eq!(input.len(), conv.input_len(), "input of {conv:?}");
    assert_eq!(filter.len(), conv.filter_len(), "filter of {conv:?}");
    assert_eq!(output.len(), conv.output_len(), "output of {conv:?}");
}
