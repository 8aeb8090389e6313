//! Strips of a product: what a thread packs once, or all together, and the blocks it computes from it as long as there are
//! strips to claim.
//!
//! ```text
//! strip ──► for each depth slice: pack B ──► for each row slab: pack A ──► panels ──► register tiles
//! ```

use std::ops::Range;

use super::block::Product;
use super::driver::pieces;
use super::simd::Real;
use super::{Epilogue, scratch};
use crate::disjoint::Disjoint;
use crate::par::{Member, Par, poll};

/// Depth of a slice with vectors of 32 bytes: a panel of B of this depth stays in the first-level cache, by and large, while
/// the panels of A pass. Wider vectors are those of machines with a large second-level cache, from which it may come.
const SLICE_DEPTH: usize = 400;
/// Depth that is not sliced with vectors of 32 bytes: going over C once makes up for the worse fit.
const WHOLE_DEPTH: usize = 512;
/// Bytes of packed A that stay in the second-level cache of machines with vectors of 32 bytes.
const SLAB_BYTES: usize = 192 << 10;
/// Bytes of C that are gone over together. More, and a product of little depth, which is all writing, goes down the rows of a
/// narrow panel too far: every row is a page of its own, and the lines are gone from the cache before their neighbours come.
const BLOCK_BYTES: usize = 256 << 10;
/// Bytes of C that each step of the depth makes up for, where that is more.
const BLOCK_BYTES_PER_DEPTH: usize = 1 << 10;
/// Most columns packed at once: bounds the work space.
const SLICE_COLUMNS: usize = 2048;
/// Elements behind packed panels that whole vectors may run over.
const BEHIND: usize = 16;
/// Bytes of B that the threads pack together: less is packed by each for itself, which costs less than a meeting.
const SHARED_BYTES: usize = 1 << 20;
/// Panels of B that a thread packs at a time.
const SHARED_PANELS: usize = 4;

impl<T: Real> Product<'_, T> {
    /// Calls `body` with B packed for these columns by all threads together, if there is much of it.
    pub(super) fn with_shared_b(
        &self,
        par: &dyn Par,
        ks: &Range<usize>,
        columns: &Range<usize>,
        body: impl FnOnce(Option<&[T]>),
    ) {
        let unit = self.kernels.columns();
        let width = columns.len().next_multiple_of(unit);
        let much = par.threads() > 1 && width * ks.len() * size_of::<T>() >= SHARED_BYTES;
        // What is transposed while it is packed may run over the end of a panel.
        if self.b.transposed || !much || !self.packs_b(self.dims.m / self.threads, self.deepest(ks))
        {
            return body(None);
        }
        scratch::with(1, width * ks.len() + BEHIND, |room: &mut [T]| {
            let panels = Disjoint::new(&mut *room);
            par.for_each(width / unit, SHARED_PANELS, &|some| {
                let begin = some.start * unit;
                let end = columns.len().min(some.end * unit);
                for slice in self.slices(ks) {
                    let at = (slice.start - ks.start) * width + begin * slice.len();
                    // SAFETY: these panels of this slice, of which `Par` hands out each once.
                    let to = unsafe { panels.slice(at, some.len() * unit * slice.len()) };
                    let columns = columns.start + begin..columns.start + end;
                    self.pack_b(&slice, &columns, true, to);
                }
            });
            body(Some(room));
        });
    }

    /// Computes the claimed rows of some columns: packs B once for all of them, unless that was done for all threads.
    pub(super) fn row_strips(
        &self,
        ks: &Range<usize>,
        columns: &Range<usize>,
        shared_b: Option<&[T]>,
        claims: Member<'_>,
    ) {
        let mut strips = claims.peekable();
        if strips.peek().is_none() {
            return;
        }
        let depth = self.deepest(ks);
        let width = columns.len().next_multiple_of(self.kernels.columns());
        let pack_a = self.packs_a(columns.len());
        let pack_b = self.packs_b(self.dims.m / self.threads, depth);
        let room_a = (self.slab_rows(depth, columns.len()) * depth + BEHIND) * usize::from(pack_a);
        let kept = |slice: &Range<usize>| (slice.start - ks.start) * width;
        let compute = |b_room: &[T]| {
            scratch::with(0, room_a, |a_room: &mut [T]| {
                for rows in strips {
                    poll();
                    for slice in self.slices(ks) {
                        let b_room = &b_room[kept(&slice)..];
                        for slab in self.slabs(&rows, depth, columns.len()) {
                            if pack_a {
                                self.pack_a(&slice, &slab, a_room);
                            }
                            let a_room = pack_a.then_some(&*a_room);
                            self.slab(&slice, &slab, columns, a_room, pack_b, b_room);
                        }
                    }
                    self.finish(ks, rows, columns);
                }
            });
        };
        if let Some(b_room) = shared_b {
            return compute(b_room);
        }
        scratch::with(1, width * ks.len() + BEHIND, |b_room: &mut [T]| {
            for slice in self.slices(ks) {
                self.pack_b(&slice, columns, pack_b, &mut b_room[kept(&slice)..]);
            }
            compute(b_room);
        });
    }

    /// Computes the claimed columns of some rows: packs A once for all of them.
    pub(super) fn column_strips(&self, ks: &Range<usize>, rows: &Range<usize>, claims: Member<'_>) {
        let mut strips = claims.peekable();
        if strips.peek().is_none() {
            return;
        }
        let depth = self.deepest(ks);
        let pack_a = self.packs_a(self.dims.n / self.threads);
        let pack_b = self.packs_b(rows.len(), depth);
        let room_a = (rows.len() * ks.len() + BEHIND) * usize::from(pack_a);
        let kept = |slice: &Range<usize>, slab: &Range<usize>| {
            (slice.start - ks.start) * rows.len() + (slab.start - rows.start) * slice.len()
        };
        scratch::with(0, room_a, |a_room: &mut [T]| {
            for slice in self.slices(ks).filter(|_| pack_a) {
                for slab in self.slabs(rows, depth, 0) {
                    self.pack_a(&slice, &slab, &mut a_room[kept(&slice, &slab)..]);
                }
            }
            let unit = self.kernels.columns();
            for columns in strips.flat_map(|strip| pieces(strip, SLICE_COLUMNS, unit)) {
                poll();
                let room_b = columns.len().next_multiple_of(unit) * depth + BEHIND;
                scratch::with(1, room_b, |b_room: &mut [T]| {
                    for slice in self.slices(ks) {
                        self.pack_b(&slice, &columns, pack_b, b_room);
                        for slab in self.slabs(rows, depth, 0) {
                            let a_room = pack_a.then(|| &a_room[kept(&slice, &slab)..]);
                            self.slab(&slice, &slab, &columns, a_room, pack_b, b_room);
                        }
                    }
                });
                self.finish(ks, rows.clone(), &columns);
            }
        });
    }

    /// What is right for vectors of 32 bytes, for those of these kernels.
    fn scaled(&self, amount: usize) -> usize {
        amount * self.kernels.vector_bytes() / 32
    }

    /// Depth up to which a pass is not sliced.
    pub(super) fn whole_depth(&self) -> usize {
        self.scaled(WHOLE_DEPTH)
    }

    /// Slices of a pass.
    fn slices(&self, ks: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<T> {
        let whole = self.whole_depth();
        let most = if ks.len() <= whole {
            whole
        } else {
            self.scaled(SLICE_DEPTH)
        };
        pieces(ks.clone(), most, 1)
    }

    fn deepest(&self, ks: &Range<usize>) -> usize {
        let depths = self.slices(ks).map(|slice| slice.len());
        depths.max().unwrap_or(0)
    }

    /// Rows whose packed A stays in the second-level cache, and whose `columns` of C are not too much at once.
    fn slab_rows(&self, depth: usize, columns: usize) -> usize {
        let of_a = self.scaled(SLAB_BYTES) / size_of::<T>() / depth;
        let of_c = BLOCK_BYTES.max(BLOCK_BYTES_PER_DEPTH * depth) / size_of::<T>() / columns.max(1);
        of_a.min(of_c).max(self.kernels.rows())
    }

    fn slabs(
        &self,
        rows: &Range<usize>,
        depth: usize,
        columns: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<T> {
        let most = self.slab_rows(depth, columns);
        pieces(rows.clone(), most, self.kernels.rows())
    }

    /// Applies the epilogue to a block, if its sums are complete.
    fn finish(&self, ks: &Range<usize>, rows: Range<usize>, columns: &Range<usize>) {
        if ks.end < self.dims.k || matches!(self.epilogue, Epilogue::None) {
            return;
        }
        for i in rows {
            let first = self.c.wrapping_add(i * self.c_stride + columns.start);
            // SAFETY: a run of a row of this block; the block belongs to this thread.
            let row = unsafe { std::slice::from_raw_parts_mut(first, columns.len()) };
            self.epilogue.apply(columns.start, row);
        }
    }
}
