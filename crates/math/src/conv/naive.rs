//! Convolutions by plain loops: integers, and what the fast paths are tested against.

use super::Conv2d;
use crate::gemm::{Element, Epilogue};
use crate::par::{Par, rows_mut};

/// A pair of positions that a tap of the filter joins.
struct Pair {
    out: usize,
    at: usize,
    tap: usize,
}

fn pairs(conv: &Conv2d, direction: usize) -> Vec<Pair> {
    let mut found = Vec::new();
    conv.pairs(direction, |out, at, tap| found.push(Pair { out, at, tap }));
    found
}

/// `output = input * filter`, then the epilogue on each pixel.
pub(super) fn forward<T: Element>(
    par: &dyn Par,
    conv: &Conv2d,
    input: &[T],
    filter: &[T],
    output: &mut [T],
    epilogue: Epilogue<'_, T>,
) {
    let (vertical, horizontal) = (pairs(conv, 0), pairs(conv, 1));
    let (depth, width) = (conv.group_in(), conv.group_out());
    let image = conv.output[0] * conv.output[1] * conv.out_channels;
    rows_mut(par, output, image, 1, |first, images| {
        images.fill(T::ZERO);
        for (n, image) in images.chunks_mut(image).enumerate() {
            for v in &vertical {
                for h in &horizontal {
                    let row = (first + n) * conv.input[0] + v.at;
                    let from = &input[(row * conv.input[1] + h.at) * conv.in_channels..]
                        [..conv.in_channels];
                    let to = (v.out * conv.output[1] + h.out) * conv.out_channels;
                    let to = &mut image[to..][..conv.out_channels];
                    let tap = (v.tap * conv.filter[1] + h.tap) * depth;
                    for (c, &x) in from.iter().enumerate() {
                        let (group, c) = (c / depth, c % depth);
                        let weights =
                            &filter[(tap + c) * conv.out_channels + group * width..][..width];
                        for (y, &w) in to[group * width..][..width].iter_mut().zip(weights) {
                            *y = y.plus(x.times(w));
                        }
                    }
                }
            }
            for pixel in image.chunks_mut(conv.out_channels) {
                epilogue.apply(0, pixel);
            }
        }
    });
}

/// The gradient with respect to the input.
pub(super) fn backprop_input<T: Element>(
    par: &dyn Par,
    conv: &Conv2d,
    filter: &[T],
    grad: &[T],
    input: &mut [T],
) {
    let (vertical, horizontal) = (pairs(conv, 0), pairs(conv, 1));
    let (depth, width) = (conv.group_in(), conv.group_out());
    let image = conv.input[0] * conv.input[1] * conv.in_channels;
    rows_mut(par, input, image, 1, |first, images| {
        images.fill(T::ZERO);
        for (n, image) in images.chunks_mut(image).enumerate() {
            for v in &vertical {
                for h in &horizontal {
                    let row = (first + n) * conv.output[0] + v.out;
                    let from = &grad[(row * conv.output[1] + h.out) * conv.out_channels..]
                        [..conv.out_channels];
                    let to = (v.at * conv.input[1] + h.at) * conv.in_channels;
                    let tap = (v.tap * conv.filter[1] + h.tap) * depth;
                    for (c, y) in image[to..][..conv.in_channels].iter_mut().enumerate() {
                        let (group, c) = (c / depth, c % depth);
                        let weights =
                            &filter[(tap + c) * conv.out_channels + group * width..][..width];
                        for (&g, &w) in from[group * width..].iter().zip(weights) {
                            *y = y.plus(g.times(w));
                        }
                    }
                }
            }
        }
    });
}

/// The gradient with respect to the filter.
pub(super) fn backprop_filter<T: Element>(
    par: &dyn Par,
    conv: &Conv2d,
    input: &[T],
    grad: &[T],
    filter: &mut [T],
) {
    let (vertical, horizontal) = (pairs(conv, 0), pairs(conv, 1));
    let (depth, width) = (conv.group_in(), conv.group_out());
    let row = conv.filter[1] * depth * conv.out_channels;
    rows_mut(par, filter, row, 1, |first, rows| {
        rows.fill(T::ZERO);
        for (tap_row, row) in rows.chunks_mut(row).enumerate() {
            for n in 0..conv.batch {
                for v in vertical.iter().filter(|v| v.tap == first + tap_row) {
                    for h in &horizontal {
                        let at =
                            ((n * conv.input[0] + v.at) * conv.input[1] + h.at) * conv.in_channels;
                        let out = ((n * conv.output[0] + v.out) * conv.output[1] + h.out)
                            * conv.out_channels;
                        for (c, &x) in input[at..][..conv.in_channels].iter().enumerate() {
                            let (group, c) = (c / depth, c % depth);
                            let to = (h.tap * depth + c) * conv.out_channels + group * width;
                            let from = &grad[out + group * width..][..width];
                            for (w, &g) in row[to..][..width].iter_mut().zip(from) {
                                *w = w.plus(x.times(g));
                            }
                        }
                    }
                }
            }
        }
    });
}
