//! Three-dimensional pooling over NDHWC arrays.
//!
//! As in [`pool2d`](crate::pool2d) windows are clipped to the input: padding takes no part in a maximum, nor in the count of
//! an average. All loops run along the channels, which lie next to each other.
//!
//! | ops | call |
//! |---|---|
//! | MaxPool3D, MaxPool3DGrad, MaxPool3DGradGrad | [`max_pool`], [`max_pool_grad`], [`max_pool_grad_grad`] |
//! | AvgPool3D, AvgPool3DGrad | [`avg_pool`], [`avg_pool_grad`] |

use std::ops::Range;

use crate::num::isa::multiversion;
use crate::num::{Float, Num, Real};
use crate::par::{Par, rows_mut};
use crate::pool2d::PoolElement;

/// How near an element must be to its window's maximum to count as one, as in TensorFlow.
const NEAR: f64 = 1e-5;

/// Channels that are summed up together.
const STRIP: usize = 16;

/// The shapes of a pooling: input, windows, strides, zeros before the input, and output, each by depth, height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Pool3d {
    pub batch: usize,
    pub channels: usize,
    pub input: [usize; 3],
    pub window: [usize; 3],
    pub stride: [usize; 3],
    pub before: [usize; 3],
    pub output: [usize; 3],
}

impl Pool3d {
    fn check(&self, input: usize, output: usize) {
        let len = |sizes: [usize; 3]| self.batch * sizes.iter().product::<usize>() * self.channels;
        assert_eq!(input, len(self.input), "input");
        assert_eq!(output, len(self.output), "output");
        assert!(!self.stride.contains(&0), "strides must be positive");
    }

    /// What the window at `out` sees in one direction.
    fn seen(&self, direction: usize, out: usize) -> Range<usize> {
        let start = out * self.stride[direction];
        let before = self.before[direction];
        let end = (start + self.window[direction]).saturating_sub(before);
        let end = end.min(self.input[direction]);
        start.saturating_sub(before).min(end)..end
    }

    /// The pixel at a place of a volume.
    fn pixel(sizes: [usize; 3], volume: usize, [d, h, w]: [usize; 3]) -> usize {
        ((volume * sizes[0] + d) * sizes[1] + h) * sizes[2] + w
    }

    /// Calls `body(pixel)` for every input pixel of a window, in row order.
    fn for_pixels(&self, volume: usize, out: [usize; 3], mut body: impl FnMut(usize)) {
        for d in self.seen(0, out[0]) {
            for h in self.seen(1, out[1]) {
                for w in self.seen(2, out[2]) {
                    body(Self::pixel(self.input, volume, [d, h, w]));
                }
            }
        }
    }

    /// Input pixels that a window sees.
    fn count(&self, out: [usize; 3]) -> usize {
        (0..3).map(|i| self.seen(i, out[i]).len()).product()
    }

    /// Calls `body(volume, place, channels)` for every output pixel.
    fn for_windows<T: Send>(
        &self,
        par: &dyn Par,
        out: &mut [T],
        body: impl Fn(usize, [usize; 3], &mut [T]) + Sync,
    ) {
        let [depth, height, width] = self.output;
        let row_len = width * self.channels;
        if row_len == 0 {
            return;
        }
        rows_mut(par, out, row_len, 1, |first, rows| {
            for (row, out) in (first..).zip(rows.chunks_exact_mut(row_len)) {
                let (plane, h) = (row / height, row % height);
                for (w, out) in out.chunks_exact_mut(self.channels).enumerate() {
                    body(plane / depth, [plane % depth, h, w], out);
                }
            }
        });
    }

    /// Calls `body(window, pixels)` for every pair of a window and the channels of an input pixel that it sees; `window` is
    /// that of an output pixel, with the number of pixels it sees.
    fn for_pairs<T: Send>(
        &self,
        par: &dyn Par,
        input: &mut [T],
        body: impl Fn(usize, usize, usize, &mut [T]) + Sync,
    ) {
        let [depth, height, width] = self.input;
        let plane_len = height * width * self.channels;
        if plane_len == 0 {
            return;
        }
        rows_mut(par, input, plane_len, 1, |first, planes| {
            for (plane, pixels) in (first..).zip(planes.chunks_exact_mut(plane_len)) {
                let (volume, d) = (plane / depth, plane % depth);
                for od in (0..self.output[0]).filter(|&od| self.seen(0, od).contains(&d)) {
                    for oh in 0..self.output[1] {
                        for ow in 0..self.output[2] {
                            let place = [od, oh, ow];
                            let out = Self::pixel(self.output, volume, place);
                            let count = self.count(place);
                            for h in self.seen(1, oh) {
                                for w in self.seen(2, ow) {
                                    let at = (h * width + w) * self.channels;
                                    let pixel = &mut pixels[at..at + self.channels];
                                    body(out, count, plane * plane_len + at, pixel);
                                }
                            }
                        }
                    }
                }
            }
        });
    }
}

/// Writes the largest element of each window.
///
/// # Panics
/// If a slice has another length than the shapes say.
pub fn max_pool<T: PoolElement>(par: &dyn Par, shape: &Pool3d, input: &[T], out: &mut [T]) {
    shape.check(input.len(), out.len());
    shape.for_windows(par, out, |volume, place, out| {
        out.fill(T::BOTTOM);
        shape.for_pixels(volume, place, |pixel| {
            let pixel = &input[pixel * shape.channels..];
            for (best, &x) in out.iter_mut().zip(pixel) {
                *best = if x > *best { x } else { *best };
            }
        });
    });
}

/// Writes the gradient of [`max_pool`] for its input, from its input, its output and its output's gradient: each window's
/// gradient goes to all elements that are as large as its maximum, but for a very small difference.
///
/// # Panics
/// As [`max_pool`].
pub fn max_pool_grad<T: Real>(
    par: &dyn Par,
    shape: &Pool3d,
    (input, output, grad): (&[T], &[T], &[T]),
    out: &mut [T],
) {
    shape.check(input.len(), output.len());
    shape.check(out.len(), grad.len());
    let (near, minus) = (T::from_f64(NEAR), T::from_f64(-NEAR));
    out.fill(T::ZERO);
    shape.for_pairs(par, out, |window, _, at, pixel| {
        let window = window * shape.channels;
        for (c, out) in pixel.iter_mut().enumerate() {
            let difference = input[at + c].sub(output[window + c]);
            if difference < near && difference > minus {
                *out = out.add(grad[window + c]);
            }
        }
    });
}

/// Writes the gradient of [`max_pool_grad`] for its gradient input: of `grad`, shaped as the input, the elements at the first
/// maximum of each window; zero where no element equals that of `output`.
///
/// # Panics
/// As [`max_pool`].
pub fn max_pool_grad_grad<T: Real>(
    par: &dyn Par,
    shape: &Pool3d,
    (input, output, grad): (&[T], &[T], &[T]),
    out: &mut [T],
) {
    shape.check(input.len(), output.len());
    shape.check(grad.len(), out.len());
    shape.for_windows(par, out, |volume, place, out| {
        let window = Pool3d::pixel(shape.output, volume, place) * shape.channels;
        for (c, out) in out.iter_mut().enumerate() {
            let mut found = None;
            shape.for_pixels(volume, place, |pixel| {
                let at = pixel * shape.channels + c;
                if found.is_none() && input[at] == output[window + c] {
                    found = Some(grad[at]);
                }
            });
            *out = found.unwrap_or(T::ZERO);
        }
    });
}

/// Writes the average of each window.
///
/// # Panics
/// As [`max_pool`].
pub fn avg_pool<T: Float>(par: &dyn Par, shape: &Pool3d, input: &[T], out: &mut [T]) {
    shape.check(input.len(), out.len());
    let [depth, height, width] = shape.output;
    let (in_len, row_len) = (shape.input[2] * shape.channels, width * shape.channels);
    if row_len == 0 {
        return;
    }
    let columns: Vec<Range<usize>> = (0..width).map(|w| shape.seen(2, w)).collect();
    rows_mut(par, out, row_len, 1, |first, rows| {
        let mut sums = vec![T::Acc::ZERO; row_len];
        for (row, out) in (first..).zip(rows.chunks_exact_mut(row_len)) {
            let (plane, h) = (row / height, row % height);
            let (planes, lines) = (shape.seen(0, plane % depth), shape.seen(1, h));
            sums.fill(T::Acc::ZERO);
            for d in planes.clone() {
                for h in lines.clone() {
                    let line = (plane / depth * shape.input[0] + d) * shape.input[1] + h;
                    let line = &input[line * in_len..(line + 1) * in_len];
                    add_line(line, &columns, shape.channels, &mut sums);
                }
            }
            let lines = planes.len() * lines.len();
            let pixels = out.chunks_exact_mut(shape.channels);
            let sums = sums.chunks_exact(shape.channels);
            for ((columns, out), sums) in columns.iter().zip(pixels).zip(sums) {
                let count = T::Acc::from_f64((lines * columns.len()) as f64);
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = T::from_acc(sum.div(count));
                }
            }
        }
    });
}

/// Adds the pixels of a line that each window sees, `columns` of it.
#[inline(always)]
fn add_line_body<T: Float>(
    line: &[T],
    columns: &[Range<usize>],
    channels: usize,
    sums: &mut [T::Acc],
) {
    for (columns, sums) in columns.iter().zip(sums.chunks_exact_mut(channels)) {
        let pixels = &line[columns.start * channels..columns.end * channels];
        let (strips, rest) = sums.as_chunks_mut::<STRIP>();
        for pixel in pixels.chunks_exact(channels) {
            let (pixel, pixel_rest) = pixel.as_chunks::<STRIP>();
            for (sums, pixel) in strips.iter_mut().zip(pixel) {
                for (sum, x) in sums.iter_mut().zip(pixel) {
                    *sum = sum.add(x.to_acc());
                }
            }
            for (sum, x) in rest.iter_mut().zip(pixel_rest) {
                *sum = sum.add(x.to_acc());
            }
        }
    }
}

multiversion! {
    fn add_line<T: Float>(line: &[T], columns: &[Range<usize>], channels: usize, sums: &mut [T::Acc]) = add_line_body;
}

/// Writes the gradient of [`avg_pool`] for its input: each window's gradient in equal parts.
///
/// # Panics
/// As [`max_pool`].
pub fn avg_pool_grad<T: Float>(par: &dyn Par, shape: &Pool3d, grad: &[T], out: &mut [T]) {
    shape.check(out.len(), grad.len());
    out.fill(T::ZERO);
    shape.for_pairs(par, out, |window, count, _, pixel| {
        let share = T::Acc::from_f64(1.0 / count as f64);
        let grad = &grad[window * shape.channels..];
        for (out, &x) in pixel.iter_mut().zip(grad) {
            *out = T::from_acc(out.to_acc().add(x.to_acc().mul(share)));
        }
    });
}
