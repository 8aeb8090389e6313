//! Blocking of a real product.
//!
//! ```text
//! C ──► blocks, one task each (Grid) ──► for each depth slice: pack B ──► for each row slab: pack A ──► panels ──► register tiles
//! ```
//!
//! Every task packs for itself: a second copy of a panel costs less than a meeting of the threads. Operands that are already
//! laid out well are read in place.

use std::ops::Range;

use super::pack::pack;
use super::simd::{Kernels, Real, Store, Tile};
use super::{Epilogue, Job, Operand, scratch, thin};
use crate::par::Par;

/// Multiply-adds below which a second thread costs more than it brings.
pub(super) const PARALLEL_WORK: usize = 360_000;
/// Multiply-adds of a task that a thread may as well have many of; smaller ones pack too much twice.
const LARGE_TASK: usize = 8 << 20;
/// Depth of a slice: a panel of B of this depth stays in the first-level cache, by and large, while the panels of A pass.
const DEPTH: usize = 400;
/// Depth that is not sliced: going over C once makes up for the worse fit.
const WHOLE_DEPTH: usize = 512;
/// Bytes of packed A that stay in the second-level cache.
const SLAB_BYTES: usize = 192 << 10;
/// Most columns packed at once: bounds the work space.
const SLICE_COLUMNS: usize = 2048;

/// Runs one checked product.
pub(super) fn run<T: Real>(par: &dyn Par, job: Job<'_, T>) {
    let kernels = T::kernels();
    if thin::applies(&job) {
        return thin::run(par, kernels, job);
    }
    run_blocks(par, kernels, job);
}

/// The blocked path with a given set of kernels.
pub(super) fn run_blocks<T: Real>(par: &dyn Par, kernels: &Kernels<T>, job: Job<'_, T>) {
    let dims = job.dims;
    let grid = Grid::new(par.threads(), kernels, dims.m, dims.n, dims.k);
    let product = Product {
        k: dims.k,
        alpha: job.alpha,
        beta: job.beta,
        a: job.a,
        b: job.b,
        c: job.c.as_mut_ptr(),
        c_stride: job.c_stride,
        epilogue: job.epilogue,
        kernels,
    };
    par.for_each(grid.rows.0 * grid.columns.0, 1, &|range| {
        for task in range {
            let rows = part(dims.m, grid.rows, task % grid.rows.0);
            let columns = part(dims.n, grid.columns, task / grid.rows.0);
            product.block(rows, columns);
        }
    });
}

/// How C is cut for the threads: (parts, unit) in each direction; parts begin at multiples of the unit.
struct Grid {
    rows: (usize, usize),
    columns: (usize, usize),
}

impl Grid {
    fn new<T>(threads: usize, kernels: &Kernels<T>, m: usize, n: usize, k: usize) -> Self {
        let units = (kernels.rows(), kernels.columns());
        let work = m.saturating_mul(n).saturating_mul(k);
        // More tasks than threads, so that a thread that comes late does not hold up the rest.
        let most = if work / (4 * threads) >= LARGE_TASK {
            4 * threads
        } else {
            2 * threads
        };
        let tasks = match work / (PARALLEL_WORK / 2) {
            0 | 1 => 1,
            w if threads > 1 => w.min(most),
            _ => 1,
        };
        // Few threads' worth of tasks is uneven unless it is a multiple of the threads.
        let tasks = if tasks > threads {
            tasks / threads * threads
        } else {
            tasks
        };
        let most = (m.div_ceil(units.0), n.div_ceil(units.1));
        let mut best = (1, 1);
        let mut cost = f64::INFINITY;
        for columns in 1..=tasks.min(most.1) {
            let rows = tasks.div_ceil(columns).min(most.0);
            // Packed twice: A once for each column of blocks, B once for each row of blocks.
            let packed = (m * columns + n * rows) as f64;
            let missing = tasks as f64 / (rows * columns) as f64;
            let this = packed * missing.max(1.0);
            if this < cost {
                (best, cost) = ((rows, columns), this);
            }
        }
        Self {
            rows: (best.0, units.0),
            columns: (best.1, units.1),
        }
    }
}

/// Part `i` of `len` cut into `(parts, unit)`.
fn part(len: usize, (parts, unit): (usize, usize), i: usize) -> Range<usize> {
    let units = len.div_ceil(unit);
    let at = |i: usize| (units * i / parts * unit).min(len);
    at(i)..at(i + 1)
}

/// A product whose blocks may be computed by several threads at once.
struct Product<'a, T: 'static> {
    k: usize,
    alpha: T,
    beta: T,
    a: Operand<'a, T>,
    b: Operand<'a, T>,
    c: *mut T,
    c_stride: usize,
    epilogue: Epilogue<'a, T>,
    kernels: &'a Kernels<T>,
}

// SAFETY: blocks handed to different threads are disjoint parts of C, which the job borrows exclusively; all else is shared
// and read only.
unsafe impl<T: Sync> Sync for Product<'_, T> {}

/// One packed or direct operand: where a panel begins and how it is stepped.
#[derive(Clone, Copy)]
struct Panel<T> {
    first: *const T,
    row: usize,
    step: usize,
}

impl<T: Real> Product<'_, T> {
    /// Computes one block of C.
    fn block(&self, rows: Range<usize>, columns: Range<usize>) {
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        let slices = if self.k <= WHOLE_DEPTH {
            1
        } else {
            self.k.div_ceil(DEPTH)
        };
        let depth = self.k.div_ceil(slices);
        let height = (SLAB_BYTES / size_of::<T>() / depth)
            .max(self.kernels.rows())
            .min(rows.len());
        let slabs = rows.len().div_ceil(height);
        let width = columns
            .len()
            .min(SLICE_COLUMNS)
            .next_multiple_of(self.kernels.columns());
        let pack_a = self.packs_a(columns.len());
        let room_a = if pack_a {
            (height + self.kernels.rows()) * depth + 16
        } else {
            0
        };
        let room_b = width * depth + 16;
        scratch::with(0, room_a, |a_room: &mut [T]| {
            scratch::with(1, room_b, |b_room: &mut [T]| {
                for slice in 0..slices {
                    let ks = self.k * slice / slices..self.k * (slice + 1) / slices;
                    for left in columns.clone().step_by(SLICE_COLUMNS) {
                        let columns = left..columns.end.min(left + SLICE_COLUMNS);
                        let pack_b = self.packs_b(rows.len(), depth);
                        self.pack_b(&ks, &columns, pack_b, b_room);
                        for slab in 0..slabs {
                            let begin = rows.start + rows.len() * slab / slabs;
                            let end = rows.start + rows.len() * (slab + 1) / slabs;
                            if pack_a {
                                self.pack_a(&ks, begin..end, a_room);
                            }
                            let a_room = pack_a.then_some(&*a_room);
                            self.slab(&ks, begin..end, &columns, a_room, pack_b, b_room);
                        }
                    }
                }
            });
        });
        if !matches!(self.epilogue, Epilogue::None) {
            for i in rows {
                let first = self.c.wrapping_add(i * self.c_stride + columns.start);
                // SAFETY: a run of a row of this block; the block belongs to this task.
                let row = unsafe { std::slice::from_raw_parts_mut(first, columns.len()) };
                self.epilogue.apply(columns.start, row);
            }
        }
    }

    /// Whether a block this wide repays packing A: rows that lie far apart evict each other from the cache.
    fn packs_a(&self, columns: usize) -> bool {
        if self.a.transposed {
            columns >= 6 * self.kernels.columns()
        } else {
            columns > 8 * self.kernels.columns() && self.a.stride * size_of::<T>() >= 3072
        }
    }

    /// Whether a block this high repays packing B; transposed there is no other way.
    fn packs_b(&self, rows: usize, depth: usize) -> bool {
        let small = rows <= 128 && depth <= 128;
        self.b.transposed || (rows > 4 * self.kernels.rows() && !small)
    }

    /// Panels of `rows`, as even as can be.
    fn panel_rows(&self, rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<T> {
        let (begin, len) = (rows.start, rows.len());
        let panels = len.div_ceil(self.kernels.rows());
        (0..panels).map(move |i| begin + len * i / panels..begin + len * (i + 1) / panels)
    }

    fn pack_a(&self, ks: &Range<usize>, rows: Range<usize>, room: &mut [T]) {
        let (row, step) = self.a.strides();
        for panel in self.panel_rows(&rows) {
            let from = &self.a.data[panel.start * row + ks.start * step..];
            let to = &mut room[(panel.start - rows.start) * ks.len()..];
            pack(
                self.kernels,
                from,
                self.a.stride,
                !self.a.transposed,
                (panel.len(), panel.len()),
                ks.len(),
                to,
            );
        }
    }

    /// Packs all panels, or only the last one if it is not whole.
    fn pack_b(&self, ks: &Range<usize>, columns: &Range<usize>, all: bool, room: &mut [T]) {
        let (step, column) = self.b.strides();
        let unit = self.kernels.columns();
        let whole = columns.len() - columns.len() % unit;
        let begin = if all { 0 } else { whole };
        for at in (begin..columns.len()).step_by(unit) {
            let used = unit.min(columns.len() - at);
            let width = self.kernels.tile(1, used).1;
            let from = &self.b.data[ks.start * step + (columns.start + at) * column..];
            let to = &mut room[at * ks.len()..];
            // What stands behind a narrow panel may come along, as nobody looks at these columns of the product: whole
            // vectors are copied quicker. The last rows have nothing behind them.
            let whole = if self.b.transposed || from.len() < width {
                0
            } else {
                ks.len().min((from.len() - width) / self.b.stride + 1)
            };
            for (rows, used) in [(0..whole, width), (whole..ks.len(), used)] {
                if rows.is_empty() {
                    continue;
                }
                pack(
                    self.kernels,
                    &from[rows.start * step..],
                    self.b.stride,
                    self.b.transposed,
                    (used, width),
                    rows.len(),
                    &mut to[rows.start * width..],
                );
            }
        }
    }

    /// All register tiles of one slab of rows.
    fn slab(
        &self,
        ks: &Range<usize>,
        rows: Range<usize>,
        columns: &Range<usize>,
        a_room: Option<&[T]>,
        pack_b: bool,
        b_room: &[T],
    ) {
        let unit = self.kernels.columns();
        let (a_row, a_step) = self.a.strides();
        let store = match (ks.start == 0, self.alpha == T::ONE) {
            (true, true) if self.beta == T::ZERO => Store::Set,
            (true, true) if self.beta == T::ONE => Store::Add,
            (true, _) => Store::Scale(self.alpha, self.beta),
            (false, true) => Store::Add,
            (false, false) => Store::Scale(self.alpha, T::ONE),
        };
        for at in (0..columns.len()).step_by(unit) {
            let used = unit.min(columns.len() - at);
            let (_, width) = self.kernels.tile(1, used);
            let b = if pack_b || used < unit {
                Panel {
                    first: b_room[at * ks.len()..].as_ptr(),
                    row: 1,
                    step: width,
                }
            } else {
                let first = ks.start * self.b.stride + columns.start + at;
                Panel {
                    first: self.b.data[first..].as_ptr(),
                    row: 1,
                    step: self.b.stride,
                }
            };
            for panel in self.panel_rows(&rows) {
                let a = match a_room {
                    Some(room) => {
                        let first = room[(panel.start - rows.start) * ks.len()..].as_ptr();
                        Panel {
                            first,
                            row: 1,
                            step: panel.len(),
                        }
                    }
                    None => {
                        let first = panel.start * a_row + ks.start * a_step;
                        Panel {
                            first: self.a.data[first..].as_ptr(),
                            row: a_row,
                            step: a_step,
                        }
                    }
                };
                let c = self
                    .c
                    .wrapping_add(panel.start * self.c_stride + columns.start + at);
                self.tile(ks.len(), (panel.len(), used), a, b, c, store);
            }
        }
    }

    /// One register tile.
    fn tile(
        &self,
        depth: usize,
        (rows, used): (usize, usize),
        a: Panel<T>,
        b: Panel<T>,
        c: *mut T,
        store: Store<T>,
    ) {
        let tile = Tile {
            depth,
            segments: 1,
            a: a.first,
            a_row: a.row,
            a_step: a.step,
            a_segment: 0,
            b: b.first,
            b_step: b.step,
            b_segment: 0,
            c,
            c_row: self.c_stride,
            store,
        };
        // SAFETY: panels are `depth` deep and as wide as the kernel reads (packed ones are padded); the tile lies in this
        // task's block of C; the kernels were chosen for this CPU.
        unsafe { self.kernels.run(rows, used, &tile) };
    }
}
