//! The filter's gradient: for each tap a product of input pixels (transposed) with gradient pixels, summed over all pixels.
//!
//! ```text
//! task = some rows of the filter's matrix (large filters), or some bands of pixels with a sum of its own (small ones)
//!   for each band: copy the input rows if they need padding, pack the gradient into panels
//!     for each few rows of the matrix, for each panel: one register tile, deep as a row of pixels, a segment for each row
//! ```

use std::ops::Range;
use std::sync::Mutex;

use super::Conv2d;
use super::slab::{Columns, Images, Slab};
use crate::gemm::pack::pack;
use crate::gemm::scratch;
use crate::gemm::simd::{Kernels, Real, Store, Tile};
use crate::par::{Par, Serial};

/// Pixels in a band: deep enough to pay for loading and storing the sums.
const BAND_PIXELS: usize = 256;
/// Multiply-adds below which one thread is enough.
const PARALLEL_WORK: usize = 600_000;
/// Elements of a filter that a task may keep a sum of its own of.
const OWN_SUM: usize = 48 << 10;

/// A run of rows of the filter's matrix: one filter row, or with dilation one tap of it.
#[derive(Clone)]
struct Run {
    /// Row of the filter.
    tap: usize,
    /// Offset in a slab row.
    skip: usize,
    /// Rows of the matrix.
    rows: Range<usize>,
}

struct Job<'a, T: 'static> {
    kernels: &'a Kernels<T>,
    conv: &'a Conv2d,
    input: &'a [T],
    grad: &'a [T],
    images: Images,
    columns: Columns,
    group: usize,
}

/// Writes the gradient with respect to the filter.
pub(super) fn run<T: Real>(
    par: &dyn Par,
    kernels: &Kernels<T>,
    conv: &Conv2d,
    input: &[T],
    grad: &[T],
    filter: &mut [T],
) {
    filter.fill(T::ZERO);
    let (depth, width) = (conv.group_in(), conv.group_out());
    let par = if conv.work() < PARALLEL_WORK {
        &Serial
    } else {
        par
    };
    for group in 0..conv.groups {
        let job = Job {
            kernels,
            conv,
            input,
            grad,
            images: Images {
                height: conv.input[0],
                width: conv.input[1],
                pixel: conv.in_channels,
                channels: depth,
                first: group * depth,
            },
            columns: Columns {
                begin: -(conv.before[1] as isize),
                len: (conv.output[1] - 1) * conv.stride[1]
                    + (conv.filter[1] - 1) * conv.dilation[1]
                    + 1,
            },
            group,
        };
        let rows = conv.filter[0] * conv.filter[1] * depth;
        if rows * width <= OWN_SUM && par.threads() > 1 {
            job.by_pixels(par, filter);
        } else {
            job.by_rows(par, filter);
        }
    }
}

/// The filter's matrix, written by several tasks.
struct Sum<T>(*mut T);

impl<T> Sum<T> {
    fn matrix(&self) -> *mut T {
        self.0
    }
}

// SAFETY: tasks write disjoint rows.
unsafe impl<T: Send> Sync for Sum<T> {}

impl<T: Real> Job<'_, T> {
    fn runs(&self) -> Vec<Run> {
        let [rows, taps] = self.conv.filter;
        let depth = self.images.channels;
        let mut all = Vec::new();
        for tap in 0..rows {
            if self.conv.dilation[1] == 1 {
                let begin = tap * taps * depth;
                all.push(Run {
                    tap,
                    skip: 0,
                    rows: begin..begin + taps * depth,
                });
                continue;
            }
            for h in 0..taps {
                let begin = (tap * taps + h) * depth;
                all.push(Run {
                    tap,
                    skip: h * self.conv.dilation[1] * depth,
                    rows: begin..begin + depth,
                });
            }
        }
        all
    }

    /// Bands as (image, output rows).
    fn bands(&self) -> Vec<(usize, Range<usize>)> {
        let [rows, width] = self.conv.output;
        let band = (BAND_PIXELS / width).max(1);
        let bands = rows.div_ceil(band);
        let all = (0..self.conv.batch).flat_map(|n| (0..bands).map(move |b| (n, b)));
        all.map(|(n, b)| (n, rows * b / bands..rows * (b + 1) / bands))
            .collect()
    }

    /// Every task has rows of the matrix for itself and goes over all pixels.
    fn by_rows(&self, par: &dyn Par, filter: &mut [T]) {
        let bands = self.bands();
        let runs = self.runs();
        let wanted = if par.threads() == 1 {
            1
        } else {
            4 * par.threads()
        };
        let parts = wanted.div_ceil(runs.len());
        let sum = Sum(filter
            .as_mut_ptr()
            .wrapping_add(self.group * self.conv.group_out()));
        let stride = self.conv.out_channels;
        if par.threads() == 1 {
            // SAFETY: one task.
            return unsafe { self.add(&bands, &runs, sum.matrix(), stride) };
        }
        par.for_each(runs.len() * parts, 1, &|range| {
            for task in range {
                let run = &runs[task / parts];
                let (part, unit) = (task % parts, self.kernels.rows());
                let units = run.rows.len().div_ceil(unit);
                let begin = (units * part / parts * unit).min(run.rows.len());
                let end = (units * (part + 1) / parts * unit).min(run.rows.len());
                let rows = run.rows.start + begin..run.rows.start + end;
                let part = Run {
                    tap: run.tap,
                    skip: run.skip + begin,
                    rows,
                };
                // SAFETY: the rows of this part are this task's only.
                unsafe { self.add(&bands, &[part], sum.matrix(), stride) };
            }
        });
    }

    /// Every task has a sum of its own over some bands; the sums are added at the end, in order.
    fn by_pixels(&self, par: &dyn Par, filter: &mut [T]) {
        let bands = self.bands();
        let runs = self.runs();
        let width = self.conv.group_out();
        let rows = self.conv.filter[0] * self.conv.filter[1] * self.images.channels;
        let tasks = bands.len().min(4 * par.threads());
        let sums: Vec<Mutex<Vec<T>>> = (0..tasks).map(|_| Mutex::default()).collect();
        par.for_each(tasks, 1, &|range| {
            for task in range {
                let mut own = vec![T::ZERO; rows * width];
                let mine = &bands[bands.len() * task / tasks..bands.len() * (task + 1) / tasks];
                // SAFETY: the whole sum is this task's.
                unsafe { self.add(mine, &runs, own.as_mut_ptr(), width) };
                if let Ok(mut sum) = sums[task].lock() {
                    *sum = own;
                }
            }
        });
        for sum in sums {
            let sum = sum.into_inner().unwrap_or_default();
            let to = filter.chunks_mut(self.conv.out_channels);
            for (to, from) in to.zip(sum.chunks(width)) {
                let to = &mut to[self.group * width..][..width];
                for (to, &x) in to.iter_mut().zip(from) {
                    *to = to.plus(x);
                }
            }
        }
    }

    /// Adds the products over `bands` to the rows `runs` of a matrix.
    ///
    /// # Safety
    /// `sum` points to a matrix with `stride` elements between rows, and those of `runs` are written by nobody else.
    unsafe fn add(
        &self,
        bands: &[(usize, Range<usize>)],
        runs: &[Run],
        sum: *mut T,
        stride: usize,
    ) {
        let conv = self.conv;
        for (n, rows) in bands {
            let pixels = rows.len() * conv.output[1];
            let width = conv.group_out();
            let room = pixels * width.next_multiple_of(self.kernels.columns()) + 16;
            let needed = self.input_rows(rows, runs);
            if needed.is_empty() {
                continue;
            }
            self.images
                .with_rows(0, self.input, *n..n + 1, needed, self.columns, |slab| {
                    scratch::with(1, room, |room: &mut [T]| {
                        let first =
                            (n * conv.output[0] + rows.start) * conv.output[1] * conv.out_channels;
                        let grad = &self.grad[first + self.group * width..];
                        self.pack_grad(grad, pixels, room);
                        for run in runs {
                            // SAFETY: the caller's contract.
                            unsafe { self.add_run(rows, slab, run, room, sum, stride) };
                        }
                    });
                });
        }
    }

    /// Input rows that the runs' taps see from output rows `rows`.
    fn input_rows(&self, rows: &Range<usize>, runs: &[Run]) -> Range<usize> {
        let conv = self.conv;
        let taps = runs.iter().map(|run| run.tap);
        let (low, high) = (taps.clone().min().unwrap_or(0), taps.max().unwrap_or(0));
        let at = |y: usize, tap: usize| {
            (y * conv.stride[0] + tap * conv.dilation[0]).saturating_sub(conv.before[0])
        };
        let end = ((rows.end - 1) * conv.stride[0] + high * conv.dilation[0] + 1)
            .saturating_sub(conv.before[0]);
        let end = end.min(conv.input[0]);
        at(rows.start, low).min(end)..end
    }

    fn pack_grad(&self, grad: &[T], pixels: usize, room: &mut [T]) {
        let (unit, width) = (self.kernels.columns(), self.conv.group_out());
        for at in (0..width).step_by(unit) {
            let used = unit.min(width - at);
            let wide = self.kernels.tile(1, used).1;
            let to = &mut room[at * pixels..];
            pack(
                self.kernels,
                &grad[at..],
                self.conv.out_channels,
                false,
                (used, wide),
                pixels,
                to,
            );
        }
    }

    /// Output rows of `rows` whose tap lies inside the image.
    fn clip(&self, rows: &Range<usize>, tap: usize) -> Range<usize> {
        let conv = self.conv;
        let inside = |&y: &usize| {
            let at = y * conv.stride[0] + tap * conv.dilation[0];
            at >= conv.before[0] && at - conv.before[0] < conv.input[0]
        };
        let begin = rows.clone().find(inside).unwrap_or(rows.end);
        let end = rows.clone().rev().find(inside).map_or(begin, |y| y + 1);
        begin..end
    }

    /// # Safety
    /// As `add`, for one run.
    unsafe fn add_run(
        &self,
        rows: &Range<usize>,
        slab: Slab<'_, T>,
        run: &Run,
        room: &[T],
        sum: *mut T,
        stride: usize,
    ) {
        let conv = self.conv;
        let inside = self.clip(rows, run.tap);
        if inside.is_empty() {
            return;
        }
        let width = conv.group_out();
        let pixels = rows.len() * conv.output[1];
        let top =
            inside.start * conv.stride[0] + run.tap * conv.dilation[0] - conv.before[0] - slab.top;
        let skipped = (inside.start - rows.start) * conv.output[1];
        let tiles = run.rows.len().div_ceil(self.kernels.rows());
        for tile in 0..tiles {
            let begin = run.rows.len() * tile / tiles;
            let end = run.rows.len() * (tile + 1) / tiles;
            for at in (0..width).step_by(self.kernels.columns()) {
                let used = self.kernels.columns().min(width - at);
                let wide = self.kernels.tile(1, used).1;
                let first = top * slab.pitch + run.skip + begin;
                let tile = Tile {
                    depth: conv.output[1],
                    segments: inside.len(),
                    a: slab.data.as_ptr().wrapping_add(first),
                    a_row: 1,
                    a_step: conv.stride[1] * self.images.channels,
                    a_segment: conv.stride[0] * slab.pitch,
                    b: room.as_ptr().wrapping_add(at * pixels + skipped * wide),
                    b_step: wide,
                    b_segment: conv.output[1] * wide,
                    c: sum.wrapping_add((run.rows.start + begin) * stride + at),
                    c_row: stride,
                    store: Store::Add,
                };
                debug_assert!(
                    first
                        + (inside.len() - 1) * tile.a_segment
                        + (conv.output[1] - 1) * tile.a_step
                        + end
                        - begin
                        <= slab.data.len()
                );
                // SAFETY: `clip` and `columns` keep A inside the slab; the panel has `pixels` rows; the rows of the sum are
                // this task's by the caller's contract.
                unsafe { self.kernels.run(end - begin, used, &tile) };
            }
        }
    }
}
