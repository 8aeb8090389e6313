//! The input's gradient by columns: each gradient pixel times the whole filter, added to the input pixels its window covers.
//!
//! With one or three input channels a correlation would leave most lanes of a vector empty; here the taps fill them. It also
//! takes any stride with any dilation.
//!
//! ```text
//! task = a band of input rows of one image
//!   for each gradient row that reaches the band, for each few pixels: columns = pixels × turned filter, then add them up
//! ```

use std::ops::Range;

use super::Conv2d;
use super::correlate::Panels;
use crate::gemm::scratch;
use crate::gemm::simd::{Kernels, Real, Store, Tile};
use crate::par::{Par, Serial, rows_mut};

/// Register tiles whose columns are made before they are added up: they stay in the first-level cache.
const TILES: usize = 3;
/// Multiply-adds below which one thread is enough.
const PARALLEL_WORK: usize = 600_000;

struct Job<'a, T: 'static> {
    kernels: &'a Kernels<T>,
    conv: &'a Conv2d,
    /// The filter, turned: depth is the output channels, columns are (row, column, input channel).
    filter: &'a Panels<T>,
    grad: &'a [T],
    group: usize,
}

/// Whether columns beat windows for this shape.
pub(super) fn applies<T>(kernels: &Kernels<T>, conv: &Conv2d) -> bool {
    2 * conv.group_in() <= kernels.lanes
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
    let par = if conv.work() < PARALLEL_WORK {
        &Serial
    } else {
        par
    };
    let (depth, width) = (conv.group_in(), conv.group_out());
    let taps = conv.filter[0] * conv.filter[1] * depth;
    let row = conv.input[1] * conv.in_channels;
    let height = conv.input[0];
    let bands = (4 * par.threads()).div_ceil(conv.batch).min(height);
    let bands = if par.threads() == 1 { 1 } else { bands };
    // Bands of all images have the same height, so that a task's rows are a run of whole bands of whole images.
    let band = height.div_ceil(bands);
    for group in 0..conv.groups {
        let runs = [(group * width, width)];
        let turned = Panels::pack(kernels, filter, &runs, taps, conv.out_channels, true);
        let job = Job {
            kernels,
            conv,
            filter: &turned,
            grad,
            group,
        };
        rows_mut(par, input, row, band, |first, rows| {
            for (n, begin, rows) in split(first, height, rows, row) {
                if group == 0 {
                    rows.fill(T::ZERO);
                }
                job.band(n, begin..begin + rows.len() / row, rows);
            }
        });
    }
}

/// Cuts a run of rows of consecutive images into (image, first row, rows).
fn split<T>(
    first: usize,
    height: usize,
    mut rows: &mut [T],
    row: usize,
) -> impl Iterator<Item = (usize, usize, &mut [T])> {
    let mut at = first;
    std::iter::from_fn(move || {
        let all = std::mem::take(&mut rows);
        if all.is_empty() {
            return None;
        }
        let (n, begin) = (at / height, at % height);
        let here = (height - begin).min(all.len() / row);
        let (head, tail) = all.split_at_mut(here * row);
        rows = tail;
        at += here;
        Some((n, begin, head))
    })
}

impl<T: Real> Job<'_, T> {
    /// Adds everything that falls on `band`, the input rows in `to`.
    fn band(&self, n: usize, band: Range<usize>, to: &mut [T]) {
        let conv = self.conv;
        let (unit, step) = (self.kernels.columns(), self.kernels.rows() * TILES);
        let line = conv.filter[1] * conv.group_in();
        let pitch = self.filter.columns().next_multiple_of(unit);
        scratch::with(0, step * pitch, |room: &mut [T]| {
            for y in 0..conv.output[0] {
                let taps = self.taps(y, &band);
                if taps.is_empty() {
                    continue;
                }
                for begin in (0..conv.output[1]).step_by(step) {
                    let pixels = begin..conv.output[1].min(begin + step);
                    self.columns(
                        n,
                        y,
                        &pixels,
                        taps.start * line..taps.end * line,
                        room,
                        pitch,
                    );
                    for tap in taps.clone() {
                        let row = y * conv.stride[0] + tap * conv.dilation[0]
                            - conv.before[0]
                            - band.start;
                        let row = &mut to[row * conv.input[1] * conv.in_channels..]
                            [..conv.input[1] * conv.in_channels];
                        for (x, columns) in pixels.clone().zip(room.chunks(pitch)) {
                            self.add(x, &columns[tap * line..][..line], row);
                        }
                    }
                }
            }
        });
    }

    /// Rows of the filter that carry gradient row `y` into `band`.
    fn taps(&self, y: usize, band: &Range<usize>) -> Range<usize> {
        let conv = self.conv;
        let inside = |&tap: &usize| {
            let at = y * conv.stride[0] + tap * conv.dilation[0];
            at >= conv.before[0] + band.start && at < conv.before[0] + band.end
        };
        let begin = (0..conv.filter[0]).find(inside).unwrap_or(0);
        let end = (0..conv.filter[0])
            .rev()
            .find(inside)
            .map_or(begin, |tap| tap + 1);
        begin..end
    }

    /// Computes the panels that hold `wanted` columns of some pixels of gradient row `y`.
    fn columns(
        &self,
        n: usize,
        y: usize,
        pixels: &Range<usize>,
        wanted: Range<usize>,
        room: &mut [T],
        pitch: usize,
    ) {
        let conv = self.conv;
        let (unit, width) = (self.kernels.columns(), conv.group_out());
        let first = ((n * conv.output[0] + y) * conv.output[1] + pixels.start) * conv.out_channels;
        let grad = &self.grad[first..][..pixels.len() * conv.out_channels];
        let tiles = pixels.len().div_ceil(self.kernels.rows());
        for at in (wanted.start / unit * unit..wanted.end).step_by(unit) {
            let used = unit.min(self.filter.columns() - at);
            let (panel, wide) = self.filter.panel(self.kernels, at);
            for tile in 0..tiles {
                let begin = pixels.len() * tile / tiles;
                let end = pixels.len() * (tile + 1) / tiles;
                let tile = Tile {
                    depth: width,
                    segments: 1,
                    a: grad[begin * conv.out_channels + self.group * width..].as_ptr(),
                    a_row: conv.out_channels,
                    a_step: 1,
                    a_segment: 0,
                    b: panel.as_ptr(),
                    b_step: wide,
                    b_segment: 0,
                    c: room[begin * pitch + at..].as_mut_ptr(),
                    c_row: pitch,
                    store: Store::Set,
                };
                // SAFETY: `grad` has `pixels` pixels with this group's channels; the panel is `width` deep; `room` has
                // `pitch` columns, a multiple of the panel, for at least `pixels` rows.
                unsafe { self.kernels.run(end - begin, used, &tile) };
            }
        }
    }

    /// Adds one pixel's columns of one filter row to an input row.
    fn add(&self, x: usize, columns: &[T], row: &mut [T]) {
        let conv = self.conv;
        let depth = conv.group_in();
        let at = (x * conv.stride[1]) as isize - conv.before[1] as isize;
        if conv.dilation[1] == 1 && conv.groups == 1 {
            let skip = usize::try_from(-at).unwrap_or(0).min(conv.filter[1]) * depth;
            let begin = usize::try_from(at).unwrap_or(0).min(conv.input[1]) * depth;
            for (to, &x) in row[begin..].iter_mut().zip(&columns[skip..]) {
                *to = to.plus(x);
            }
            return;
        }
        for (tap, columns) in columns.chunks(depth).enumerate() {
            let Ok(at) = usize::try_from(at + (tap * conv.dilation[1]) as isize) else {
                continue;
            };
            if at < conv.input[1] {
                let to = &mut row[at * conv.in_channels + self.group * depth..][..depth];
                for (to, &x) in to.iter_mut().zip(columns) {
                    *to = to.plus(x);
                }
            }
        }
    }
}
