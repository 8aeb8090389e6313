//! The blocks of a real product: how operands are packed, and which register tiles are computed from them.
//!
//! Operands that are already laid out well are read in place.

use std::ops::Range;

use super::pack::pack;
use super::simd::{Kernels, Real, Store, Tile};
use super::{Dims, Epilogue, Job, Operand};

/// A product whose blocks may be computed by several threads at once.
pub(super) struct Product<'a, T: 'static> {
    pub(super) dims: Dims,
    alpha: T,
    beta: T,
    a: Operand<'a, T>,
    pub(super) b: Operand<'a, T>,
    pub(super) c: *mut T,
    pub(super) c_stride: usize,
    pub(super) epilogue: Epilogue<'a, T>,
    pub(super) kernels: &'a Kernels<T>,
    pub(super) threads: usize,
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

impl<'a, T: Real> Product<'a, T> {
    /// A checked job that `threads` may work on.
    pub(super) fn new(kernels: &'a Kernels<T>, job: Job<'a, T>, threads: usize) -> Self {
        Self {
            dims: job.dims,
            alpha: job.alpha,
            beta: job.beta,
            a: job.a,
            b: job.b,
            c: job.c.as_mut_ptr(),
            c_stride: job.c_stride,
            epilogue: job.epilogue,
            kernels,
            threads,
        }
    }

    /// Whether a block this wide repays packing A: rows that lie far apart evict each other from the cache.
    pub(super) fn packs_a(&self, columns: usize) -> bool {
        if self.a.transposed {
            columns >= 6 * self.kernels.columns()
        } else {
            columns > 16 * self.kernels.columns() && self.a.stride * size_of::<T>() >= 3072
        }
    }

    /// Whether a block this high repays packing B; transposed there is no other way.
    pub(super) fn packs_b(&self, rows: usize, depth: usize) -> bool {
        let small = rows <= 128 && depth <= 128;
        self.b.transposed || (rows > 4 * self.kernels.rows() && !small)
    }

    /// Panels of `rows`, as even as can be.
    fn panel_rows(&self, rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<T> {
        let (begin, len) = (rows.start, rows.len());
        let panels = len.div_ceil(self.kernels.rows());
        // One division for all panels: where the depth is small, one for each would be seen.
        let (each, longer) = (len / panels.max(1), len % panels.max(1));
        let at = move |i: usize| begin + each * i + i.min(longer);
        (0..panels).map(move |i| at(i)..at(i + 1))
    }

    pub(super) fn pack_a(&self, ks: &Range<usize>, rows: &Range<usize>, room: &mut [T]) {
        let (row, step) = self.a.strides();
        for panel in self.panel_rows(rows) {
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
    pub(super) fn pack_b(
        &self,
        ks: &Range<usize>,
        columns: &Range<usize>,
        all: bool,
        room: &mut [T],
    ) {
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
    pub(super) fn slab(
        &self,
        ks: &Range<usize>,
        rows: &Range<usize>,
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
            for panel in self.panel_rows(rows) {
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
