//! The engine of the forward pass and of the input's gradient: windows over images times a packed filter.
//!
//! ```text
//! task = a band: some output rows of one image, or some small images
//!   copy the band's input rows if they need padding
//!   for each slice of the taps   (its filter panel stays in the first-level cache)
//!     for each panel of output channels
//!       for each output row, for each few pixels of it: one register tile
//! ```
//!
//! A tile's A are the pixels' windows read where they are: for one filter row the window is one run of memory, so a tile takes
//! the rows of the filter as its segments. Nothing is unfolded.

use std::ops::Range;

use super::Conv2d;
use super::slab::{Columns, Images, Slab};
use crate::gemm::Epilogue;
use crate::gemm::pack::pack;
use crate::gemm::simd::{Kernels, Real, Store, Tile};
use crate::par::{Par, Serial};

/// Depth of a slice of taps.
const DEPTH: usize = 384;
/// Bytes of a band's output, and of its input that a slice of the taps touches: they stay in the second-level cache.
const BAND_BYTES: usize = 288 << 10;
/// Multiply-adds below which one thread is enough.
const PARALLEL_WORK: usize = 600_000;

/// Windows over images: output pixel `(y, x)` takes input `(origin + stride·y + dilation·tap)`.
pub(super) struct Correlation {
    pub(super) batch: usize,
    pub(super) images: Images,
    pub(super) taps: [usize; 2],
    pub(super) stride: [usize; 2],
    pub(super) dilation: [usize; 2],
    pub(super) origin: [isize; 2],
    pub(super) output: Output,
}

/// Where output pixels go.
#[derive(Clone, Copy)]
pub(super) struct Output {
    pub(super) size: [usize; 2],
    pub(super) channels: usize,
    pub(super) first: usize,
    pub(super) image: usize,
    pub(super) row: usize,
    pub(super) pixel: usize,
}

/// A filter as panels of output channels: panel after panel, tap after tap, channel after channel.
pub(super) struct Panels<T> {
    data: Vec<T>,
    depth: usize,
    columns: usize,
}

impl<T: Real> Panels<T> {
    /// Packs a `depth`×`columns` matrix: element `(p, j)` is `source(p)[j]` if plain, else lies at `j·stride` of `source(p)`.
    ///
    /// `runs` are consecutive rows of the matrix: where each begins in `data`, and how many rows it has.
    pub(super) fn pack(
        kernels: &Kernels<T>,
        data: &[T],
        runs: &[(usize, usize)],
        columns: usize,
        stride: usize,
        transposed: bool,
    ) -> Self {
        let unit = kernels.columns();
        let depth = runs.iter().map(|(_, rows)| rows).sum::<usize>();
        let mut room = vec![T::ZERO; depth * columns.next_multiple_of(unit) + unit];
        for at in (0..columns).step_by(unit) {
            let used = unit.min(columns - at);
            let width = kernels.tile(1, used).1;
            let mut done = at * depth;
            for &(begin, rows) in runs {
                let from = &data[begin + if transposed { at * stride } else { at }..];
                let to = &mut room[done..];
                pack(kernels, from, stride, transposed, (used, width), rows, to);
                done += rows * width;
            }
        }
        Self {
            data: room,
            depth,
            columns,
        }
    }

    /// Columns of the matrix.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// The panel that begins at column `at`, and its width.
    pub(super) fn panel(&self, kernels: &Kernels<T>, at: usize) -> (&[T], usize) {
        let used = kernels.columns().min(self.columns - at);
        let width = kernels.tile(1, used).1;
        (&self.data[at * self.depth..][..self.depth * width], width)
    }
}

/// A part of the taps: rows of the filter, and a part of the run of each.
struct Slice {
    taps: Range<usize>,
    begin: usize,
    depth: usize,
}

struct Job<'a, T: 'static> {
    kernels: &'a Kernels<T>,
    shape: &'a Correlation,
    input: &'a [T],
    filter: &'a Panels<T>,
    output: *mut T,
    epilogue: Epilogue<'a, T>,
    slices: Vec<Slice>,
    columns: Columns,
}

// SAFETY: tasks write disjoint rows of the output, which is borrowed exclusively; all else is only read.
unsafe impl<T: Sync> Sync for Job<'_, T> {}

/// The forward pass: a correlation for each group.
pub(super) fn forward<T: Real>(
    par: &dyn Par,
    kernels: &Kernels<T>,
    conv: &Conv2d,
    input: &[T],
    filter: &[T],
    output: &mut [T],
    epilogue: Epilogue<'_, T>,
) {
    let (depth, width) = (conv.group_in(), conv.group_out());
    for group in 0..conv.groups {
        let rows = conv.filter[0] * conv.filter[1] * depth;
        let runs = [(group * width, rows)];
        let panels = Panels::pack(kernels, filter, &runs, width, conv.out_channels, false);
        let shape = Correlation {
            batch: conv.batch,
            images: Images {
                height: conv.input[0],
                width: conv.input[1],
                pixel: conv.in_channels,
                channels: depth,
                first: group * depth,
            },
            taps: conv.filter,
            stride: conv.stride,
            dilation: conv.dilation,
            origin: conv.before.map(|before| -(before as isize)),
            output: Output {
                size: conv.output,
                channels: width,
                first: group * width,
                image: conv.output[0] * conv.output[1] * conv.out_channels,
                row: conv.output[1] * conv.out_channels,
                pixel: conv.out_channels,
            },
        };
        run(par, kernels, &shape, input, &panels, output, epilogue);
    }
}

/// Writes all output pixels of `shape`.
///
/// # Panics
/// If a slice does not fit the shape.
pub(super) fn run<T: Real>(
    par: &dyn Par,
    kernels: &Kernels<T>,
    shape: &Correlation,
    input: &[T],
    filter: &Panels<T>,
    output: &mut [T],
    epilogue: Epilogue<'_, T>,
) {
    let out = &shape.output;
    let [rows, width] = out.size;
    if shape.batch * rows * width * out.channels == 0 {
        return;
    }
    let last = (shape.batch - 1) * out.image + (rows - 1) * out.row + (width - 1) * out.pixel;
    assert!(
        out.first + last + out.channels <= output.len(),
        "output too short"
    );
    let taps = shape.taps[0] * shape.taps[1] * shape.images.channels;
    assert_eq!(
        (filter.depth, filter.columns),
        (taps, out.channels),
        "filter of another shape"
    );
    let columns = Columns {
        begin: shape.origin[1],
        len: (width - 1) * shape.stride[1] + (shape.taps[1] - 1) * shape.dilation[1] + 1,
    };
    let job = Job {
        kernels,
        shape,
        input,
        filter,
        output: output.as_mut_ptr().wrapping_add(out.first),
        epilogue,
        slices: slices(shape),
        columns,
    };
    let work = (shape.batch * rows * width * out.channels).saturating_mul(taps);
    let par = if work < PARALLEL_WORK { &Serial } else { par };
    let (images, band) = job.band_size(par.threads());
    let bands = rows.div_ceil(band);
    par.for_each(shape.batch.div_ceil(images) * bands, 1, &|range| {
        for task in range {
            let (n, band) = (task / bands * images, task % bands);
            let images = n..shape.batch.min(n + images);
            job.band(images, rows * band / bands..rows * (band + 1) / bands);
        }
    });
}

fn slices(shape: &Correlation) -> Vec<Slice> {
    let [rows, taps] = shape.taps;
    let run = shape.run();
    let mut all = Vec::new();
    if run <= DEPTH && shape.dilation[1] == 1 {
        let parts = rows.div_ceil(DEPTH / run);
        for i in 0..parts {
            let taps = rows * i / parts..rows * (i + 1) / parts;
            all.push(Slice {
                taps,
                begin: 0,
                depth: run,
            });
        }
        return all;
    }
    let parts = run.div_ceil(DEPTH);
    for row in 0..rows {
        for part in 0..parts {
            let begin = run * part / parts;
            let depth = run * (part + 1) / parts - begin;
            if shape.dilation[1] == 1 {
                all.push(Slice {
                    taps: row..row + 1,
                    begin,
                    depth,
                });
            } else {
                all.extend((0..taps).map(|tap| Slice {
                    taps: row..row + 1,
                    begin: tap * run + begin,
                    depth,
                }));
            }
        }
    }
    all
}

impl Correlation {
    /// Elements of one window row that lie side by side.
    fn run(&self) -> usize {
        let taps = if self.dilation[1] == 1 {
            self.taps[1]
        } else {
            1
        };
        taps * self.images.channels
    }

    /// Rows of the filter, clipped to `taps`, that meet the image at output row `y`.
    fn clip(&self, y: usize, taps: &Range<usize>) -> Range<usize> {
        let at =
            |tap: usize| self.origin[0] + (y * self.stride[0] + tap * self.dilation[0]) as isize;
        let begin = taps.clone().find(|&tap| at(tap) >= 0).unwrap_or(taps.end);
        let end = taps
            .clone()
            .rev()
            .find(|&tap| at(tap) < self.images.height as isize);
        begin..end.map_or(begin, |end| (end + 1).max(begin))
    }

    /// Input rows that output rows `rows` see.
    fn input_rows(&self, rows: &Range<usize>) -> Range<usize> {
        let begin = self.origin[0] + (rows.start * self.stride[0]) as isize;
        let reach = (rows.len() - 1) * self.stride[0] + (self.taps[0] - 1) * self.dilation[0] + 1;
        let clamp = |at: isize| usize::try_from(at).unwrap_or(0).min(self.images.height);
        clamp(begin)..clamp(begin + reach as isize)
    }
}

impl<T: Real> Job<'_, T> {
    /// Images and output rows of a band: few enough for the cache and for all threads to have some.
    fn band_size(&self, threads: usize) -> (usize, usize) {
        let shape = self.shape;
        let (rows, batch) = (shape.output.size[0], shape.batch);
        let channels = shape.images.channels.min(DEPTH);
        let input = self.columns.len * channels * shape.stride[0];
        let row = (input + shape.output.size[1] * shape.output.channels) * size_of::<T>();
        let fits = (BAND_BYTES / row)
            .saturating_sub(shape.taps[0] / shape.stride[0])
            .max(1);
        let wanted = if threads == 1 { 1 } else { 4 * threads };
        let images = (fits / rows).min(batch / wanted).max(1);
        let bands = wanted.div_ceil(batch);
        (images, fits.min(rows.div_ceil(bands)).max(1))
    }

    fn band(&self, images: Range<usize>, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        let shape = self.shape;
        let needed = shape.input_rows(&rows);
        let all = images.clone();
        shape
            .images
            .with_rows(0, self.input, all, needed, self.columns, |slab| {
                for (i, slice) in self.slices.iter().enumerate() {
                    let store = if i == 0 { Store::Set } else { Store::Add };
                    for at in (0..shape.output.channels).step_by(self.kernels.columns()) {
                        for (i, n) in images.clone().enumerate() {
                            let data = slab.data.get(i * slab.image..).unwrap_or_default();
                            self.panel(n, &rows, Slab { data, ..slab }, slice, at, store);
                        }
                    }
                }
            });
        if !matches!(self.epilogue, Epilogue::None) {
            images.for_each(|n| self.finish(n, rows.clone()));
        }
    }

    /// One slice of the taps for one panel of output channels.
    fn panel(
        &self,
        n: usize,
        rows: &Range<usize>,
        slab: Slab<'_, T>,
        slice: &Slice,
        at: usize,
        store: Store<T>,
    ) {
        let shape = self.shape;
        let used = self.kernels.columns().min(shape.output.channels - at);
        let (panel, width) = self.filter.panel(self.kernels, at);
        let line = shape.taps[1] * shape.images.channels;
        let pixels = shape.output.size[1];
        let tiles = pixels.div_ceil(self.kernels.rows());
        // Where the slice begins in a slab row; without dilation its begin is that very place.
        let tap = if shape.dilation[1] == 1 {
            0
        } else {
            slice.begin / shape.images.channels
        };
        let skip = slice.begin + tap * (shape.dilation[1] - 1) * shape.images.channels;
        for y in rows.clone() {
            let taps = shape.clip(y, &slice.taps);
            if taps.is_empty() && store == Store::Add {
                continue;
            }
            let row =
                shape.origin[0] + (y * shape.stride[0] + taps.start * shape.dilation[0]) as isize;
            // An empty clip has no row to point at; its tile reads nothing and stores zeros.
            let row = if taps.is_empty() {
                0
            } else {
                row as usize - slab.top
            };
            let c = self
                .output
                .wrapping_add(n * shape.output.image + y * shape.output.row + at);
            for tile in 0..tiles {
                let (begin, end) = (pixels * tile / tiles, pixels * (tile + 1) / tiles);
                let a_row = shape.stride[1] * shape.images.channels;
                let first = row * slab.pitch + begin * a_row + skip;
                let tile = Tile {
                    depth: slice.depth,
                    segments: taps.len(),
                    a: slab.data.as_ptr().wrapping_add(first),
                    a_row,
                    a_step: 1,
                    a_segment: shape.dilation[0] * slab.pitch,
                    b: panel
                        .as_ptr()
                        .wrapping_add((taps.start * line + slice.begin) * width),
                    b_step: width,
                    b_segment: line * width,
                    c: c.wrapping_add(begin * shape.output.pixel),
                    c_row: shape.output.pixel,
                    store,
                };
                debug_assert!(
                    taps.is_empty()
                        || first
                            + (end - begin - 1) * a_row
                            + (taps.len() - 1) * tile.a_segment
                            + slice.depth
                            <= slab.data.len()
                );
                // SAFETY: `clip` keeps the rows inside the slab, whose rows are `columns.len` pixels wide: enough for the
                // windows of all pixels of a row. The panel has `depth` rows of `width`. The output pixels were checked by
                // `run` and belong to this task's band.
                unsafe { self.kernels.run(end - begin, used, &tile) };
            }
        }
    }

    fn finish(&self, n: usize, rows: Range<usize>) {
        let out = &self.shape.output;
        for y in rows {
            for x in 0..out.size[1] {
                let first = self
                    .output
                    .wrapping_add(n * out.image + y * out.row + x * out.pixel);
                // SAFETY: a pixel of this task's band, inside the output as checked by `run`.
                let pixel = unsafe { std::slice::from_raw_parts_mut(first, out.channels) };
                self.epilogue.apply(out.first, pixel);
            }
        }
    }
}
