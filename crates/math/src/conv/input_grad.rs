//! The input's gradient as windows over the output's gradient.
//!
//! With stride `s` the input pixels fall into `s·s` phases; those of one phase see the same taps, at neighbouring output pixels.
//! So each phase is a plain correlation of the gradient with its part of the filter, turned round, written `s` pixels apart:
//!
//! ```text
//! input row h = phase + s·i, tap k = r + s·t  with  r = (phase + before) mod s  ⇒  output row = i + (phase + before - r)/s - t
//! ```

use super::Conv2d;
use super::correlate::{self, Correlation, Output, Panels};
use super::slab::Images;
use crate::gemm::Epilogue;
use crate::gemm::simd::{Kernels, Real};
use crate::par::Par;

/// One direction of a phase: the taps in the order of rising output positions, and where the first one falls for `i = 0`.
struct Phase {
    taps: Vec<usize>,
    origin: isize,
    size: usize,
    dilation: usize,
}

fn phase(conv: &Conv2d, direction: usize, phase: usize) -> Phase {
    let (stride, before) = (conv.stride[direction], conv.before[direction]);
    let size = conv.input[direction].saturating_sub(phase).div_ceil(stride);
    let filter = conv.filter[direction];
    if stride == 1 {
        let dilation = conv.dilation[direction];
        let origin = before as isize - ((filter - 1) * dilation) as isize;
        return Phase {
            taps: (0..filter).rev().collect(),
            origin,
            size,
            dilation,
        };
    }
    let rest = (phase + before) % stride;
    let taps: Vec<usize> = (rest..filter).step_by(stride).rev().collect();
    let origin = ((phase + before - rest) / stride) as isize - (taps.len() as isize - 1);
    Phase {
        taps,
        origin,
        size,
        dilation: 1,
    }
}

/// Whether [`run`] handles the shape: strides and dilations in one direction at once would need phases of taps too.
pub(super) fn applies(conv: &Conv2d) -> bool {
    (0..2).all(|d| conv.stride[d] == 1 || conv.dilation[d] == 1)
}

/// Writes the gradient with respect to the input.
pub(super) fn run<T: Real>(
    par: &dyn Par,
    kernels: &Kernels<T>,
    conv: &Conv2d,
    filter: &[T],
    grad: &[T],
    input: &mut [T],
) {
    let (depth, width) = (conv.group_in(), conv.group_out());
    let mut zeroed = false;
    for at in (0..conv.stride[0] * conv.stride[1]).rev() {
        let offset = [at / conv.stride[1], at % conv.stride[1]];
        let [vertical, horizontal] = [0, 1].map(|d| phase(conv, d, offset[d]));
        if vertical.taps.is_empty() || horizontal.taps.is_empty() {
            // Pixels between the windows.
            if !zeroed {
                input.fill(T::ZERO);
                zeroed = true;
            }
            continue;
        }
        for group in 0..conv.groups {
            let tap = |v: &usize, h: &usize| {
                (v * conv.filter[1] + h) * depth * conv.out_channels + group * width
            };
            let runs: Vec<_> = vertical
                .taps
                .iter()
                .flat_map(|v| horizontal.taps.iter().map(move |h| (tap(v, h), width)))
                .collect();
            let panels = Panels::pack(kernels, filter, &runs, depth, conv.out_channels, true);
            let shape = Correlation {
                batch: conv.batch,
                images: Images {
                    height: conv.output[0],
                    width: conv.output[1],
                    pixel: conv.out_channels,
                    channels: width,
                    first: group * width,
                },
                taps: [vertical.taps.len(), horizontal.taps.len()],
                stride: [1, 1],
                dilation: [vertical.dilation, horizontal.dilation],
                origin: [vertical.origin, horizontal.origin],
                output: Output {
                    size: [vertical.size, horizontal.size],
                    channels: depth,
                    first: (offset[0] * conv.input[1] + offset[1]) * conv.in_channels
                        + group * depth,
                    image: conv.input[0] * conv.input[1] * conv.in_channels,
                    row: conv.stride[0] * conv.input[1] * conv.in_channels,
                    pixel: conv.stride[1] * conv.in_channels,
                },
            };
            correlate::run(par, kernels, &shape, grad, &panels, input, Epilogue::None);
        }
    }
}
