//! The types convolutions are made of, and which path each takes.

use half::{bf16, f16};

use super::{Conv2d, columns, correlate, depthwise, filter_grad, input_grad, naive};
use crate::gemm::simd::Real;
use crate::gemm::{self, Dims, Epilogue, Operand};
use crate::num::convert::HalfOrSingle;
use crate::num::{from_f32_slice, to_f32_slice};
use crate::par::{Par, chunks_mut};

/// A number that can be convolved.
pub trait Element: gemm::Element {
    /// The forward pass for checked, non-empty slices.
    #[doc(hidden)]
    fn forward(
        par: &dyn Par,
        conv: &Conv2d,
        input: &[Self],
        filter: &[Self],
        output: &mut [Self],
        epilogue: Epilogue<'_, Self>,
    ) {
        naive::forward(par, conv, input, filter, output, epilogue);
    }

    /// The input's gradient for checked, non-empty slices.
    #[doc(hidden)]
    fn backprop_input(
        par: &dyn Par,
        conv: &Conv2d,
        filter: &[Self],
        grad: &[Self],
        input: &mut [Self],
    ) {
        naive::backprop_input(par, conv, filter, grad, input);
    }

    /// The filter's gradient for checked, non-empty slices.
    #[doc(hidden)]
    fn backprop_filter(
        par: &dyn Par,
        conv: &Conv2d,
        input: &[Self],
        grad: &[Self],
        filter: &mut [Self],
    ) {
        naive::backprop_filter(par, conv, input, grad, filter);
    }
}

impl Element for i32 {}
impl Element for i64 {}

macro_rules! reals {
    ($($t:ty),*) => {$(
        impl Element for $t {
            fn forward(par: &dyn Par, conv: &Conv2d, input: &[Self], filter: &[Self], output: &mut [Self], epilogue: Epilogue<'_, Self>) {
                forward(par, conv, input, filter, output, epilogue);
            }

            fn backprop_input(par: &dyn Par, conv: &Conv2d, filter: &[Self], grad: &[Self], input: &mut [Self]) {
                backprop_input(par, conv, filter, grad, input);
            }

            fn backprop_filter(par: &dyn Par, conv: &Conv2d, input: &[Self], grad: &[Self], filter: &mut [Self]) {
                backprop_filter(par, conv, input, grad, filter);
            }
        }
    )*};
}
reals!(f32, f64);

/// Elements of a 1×1 filter from which on its gradient is cut by channels; below, by pixels.
const MANY_CHANNELS: usize = 8 << 10;

/// Sizes of the product that the convolution is, if it is one.
fn as_product(conv: &Conv2d) -> Option<Dims> {
    let (m, k) = if conv.is_pointwise() {
        (
            conv.batch * conv.output[0] * conv.output[1],
            conv.in_channels,
        )
    } else if conv.is_dense() {
        (conv.batch, conv.input[0] * conv.input[1] * conv.in_channels)
    } else {
        return None;
    };
    Some(Dims {
        m,
        n: conv.out_channels,
        k,
    })
}

/// Sizes of the product that the filter's gradient is, if it is one that has parts for all threads.
fn as_filter_product(conv: &Conv2d) -> Option<Dims> {
    let Dims { m, n, k } = as_product(conv)?;
    let dims = Dims { m: k, n, k: m };
    (conv.is_dense() || dims.m * n >= MANY_CHANNELS).then_some(dims)
}

fn forward<T: Real + Element>(
    par: &dyn Par,
    conv: &Conv2d,
    input: &[T],
    filter: &[T],
    output: &mut [T],
    epilogue: Epilogue<'_, T>,
) {
    if depthwise::applies(conv) {
        return depthwise::forward(par, conv, input, filter, output, epilogue);
    }
    if conv.in_channels == 0 {
        return naive::forward(par, conv, input, filter, output, epilogue);
    }
    if let Some(dims) = as_product(conv) {
        let (a, b) = (Operand::new(input, dims.k), Operand::new(filter, dims.n));
        return gemm::gemm(par, dims, T::ONE, a, b, T::ZERO, output, dims.n, epilogue);
    }
    correlate::forward(par, T::kernels(), conv, input, filter, output, epilogue);
}

fn backprop_input<T: Real + Element>(
    par: &dyn Par,
    conv: &Conv2d,
    filter: &[T],
    grad: &[T],
    input: &mut [T],
) {
    if depthwise::applies(conv) {
        return depthwise::backprop_input(par, conv, filter, grad, input);
    }
    if let Some(Dims { m, n, k }) = as_product(conv) {
        let dims = Dims { m, n: k, k: n };
        let (a, b) = (Operand::new(grad, n), Operand::transposed(filter, n));
        return gemm::gemm(par, dims, T::ONE, a, b, T::ZERO, input, k, Epilogue::None);
    }
    let kernels = T::kernels();
    if columns::applies(kernels, conv) || !input_grad::applies(conv) {
        return columns::run(par, kernels, conv, filter, grad, input);
    }
    input_grad::run(par, kernels, conv, filter, grad, input);
}

fn backprop_filter<T: Real + Element>(
    par: &dyn Par,
    conv: &Conv2d,
    input: &[T],
    grad: &[T],
    filter: &mut [T],
) {
    if depthwise::applies(conv) {
        return depthwise::backprop_filter(par, conv, input, grad, filter);
    }
    if let Some(dims) = as_filter_product(conv) {
        let (a, b) = (
            Operand::transposed(input, dims.m),
            Operand::new(grad, dims.n),
        );
        return gemm::gemm(
            par,
            dims,
            T::ONE,
            a,
            b,
            T::ZERO,
            filter,
            dims.n,
            Epilogue::None,
        );
    }
    filter_grad::run(par, T::kernels(), conv, input, grad, filter);
}

/// Half types are widened to f32, convolved there, and rounded once; the epilogue runs on the rounded values.
macro_rules! halves {
    ($($t:ty),*) => {$(
        impl Element for $t {
            fn forward(par: &dyn Par, conv: &Conv2d, input: &[Self], filter: &[Self], output: &mut [Self], epilogue: Epilogue<'_, Self>) {
                let mut wide = vec![0.0; output.len()];
                let [input, filter] = [input, filter].map(|x| widen(par, x));
                forward(par, conv, &input, &filter, &mut wide, Epilogue::None);
                round(par, &wide, output);
                if !matches!(epilogue, Epilogue::None) {
                    for pixel in output.chunks_mut(conv.out_channels) {
                        epilogue.apply(0, pixel);
                    }
                }
            }

            fn backprop_input(par: &dyn Par, conv: &Conv2d, filter: &[Self], grad: &[Self], input: &mut [Self]) {
                let mut wide = vec![0.0; input.len()];
                let [filter, grad] = [filter, grad].map(|x| widen(par, x));
                backprop_input(par, conv, &filter, &grad, &mut wide);
                round(par, &wide, input);
            }

            fn backprop_filter(par: &dyn Par, conv: &Conv2d, input: &[Self], grad: &[Self], filter: &mut [Self]) {
                let mut wide = vec![0.0; filter.len()];
                let [input, grad] = [input, grad].map(|x| widen(par, x));
                backprop_filter(par, conv, &input, &grad, &mut wide);
                round(par, &wide, filter);
            }
        }
    )*};
}
halves!(f16, bf16);

/// Elements a thread converts at least.
const GRAIN: usize = 16 << 10;

fn widen<T: HalfOrSingle>(par: &dyn Par, from: &[T]) -> Vec<f32> {
    let mut to = vec![0.0; from.len()];
    chunks_mut(par, &mut to, GRAIN, |first, to| {
        to_f32_slice(&from[first..], to)
    });
    to
}

fn round<T: HalfOrSingle>(par: &dyn Par, from: &[f32], to: &mut [T]) {
    chunks_mut(par, to, GRAIN, |first, to| {
        from_f32_slice(&from[first..], to)
    });
}
