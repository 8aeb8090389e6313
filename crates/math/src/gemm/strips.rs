//! Strips of a product: what a thread packs once, and the blocks it computes from it as long as there are strips to claim.
//!
//! ```text
//! strip ──► for each depth slice: pack B ──► for each row slab: pack A ──► panels ──► register tiles
//! ```

use std::ops::Range;

use super::block::Product;
use super::driver::pieces;
use super::simd::Real;
use super::{Epilogue, scratch};
use crate::par::Member;

/// Depth of a slice: a panel of B of this depth stays in the first-level cache, by and large, while the panels of A pass.
const DEPTH: usize = 400;
/// Depth that is not sliced: going over C once makes up for the worse fit.
const WHOLE_DEPTH: usize = 512;
/// Bytes of packed A that stay in the second-level cache.
const SLAB_BYTES: usize = 192 << 10;
/// Bytes of C that are gone over together. More, and a product of little depth, which is all writing, goes down the rows of a
/// narrow panel too far: every row is a page of its own, and the lines are gone from the cache before their neighbours come.
const BLOCK_BYTES: usize = 256 << 10;
/// Most columns packed at once: bounds the work space.
const SLICE_COLUMNS: usize = 2048;
/// Elements behind packed panels that whole vectors may run over.
const BEHIND: usize = 16;

impl<T: Real> Product<'_, T> {
    /// Computes the claimed rows of some columns: packs B once for all of them.
    pub(super) fn row_strips(&self, ks: &Range<usize>, columns: &Range<usize>, claims: Member<'_>) {
        let mut strips = claims.peekable();
        if strips.peek().is_none() {
            return;
        }
        let depth = deepest(ks);
        let width = columns.len().next_multiple_of(self.kernels.columns());
        let pack_a = self.packs_a(columns.len());
        let pack_b = self.packs_b(self.dims.m / self.threads, depth);
        let room_a = (self.slab_rows(depth, columns.len()) * depth + BEHIND) * usize::from(pack_a);
        let kept = |slice: &Range<usize>| (slice.start - ks.start) * width;
        scratch::with(1, width * ks.len() + BEHIND, |b_room: &mut [T]| {
            for slice in slices(ks) {
                self.pack_b(&slice, columns, pack_b, &mut b_room[kept(&slice)..]);
            }
            scratch::with(0, room_a, |a_room: &mut [T]| {
                for rows in strips {
                    for slice in slices(ks) {
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
        });
    }

    /// Computes the claimed columns of some rows: packs A once for all of them.
    pub(super) fn column_strips(&self, ks: &Range<usize>, rows: &Range<usize>, claims: Member<'_>) {
        let mut strips = claims.peekable();
        if strips.peek().is_none() {
            return;
        }
        let depth = deepest(ks);
        let pack_a = self.packs_a(self.dims.n / self.threads);
        let pack_b = self.packs_b(rows.len(), depth);
        let room_a = (rows.len() * ks.len() + BEHIND) * usize::from(pack_a);
        let kept = |slice: &Range<usize>, slab: &Range<usize>| {
            (slice.start - ks.start) * rows.len() + (slab.start - rows.start) * slice.len()
        };
        scratch::with(0, room_a, |a_room: &mut [T]| {
            for slice in slices(ks).filter(|_| pack_a) {
                for slab in self.slabs(rows, depth, 0) {
                    self.pack_a(&slice, &slab, &mut a_room[kept(&slice, &slab)..]);
                }
            }
            let unit = self.kernels.columns();
            for columns in strips.flat_map(|strip| pieces(strip, SLICE_COLUMNS, unit)) {
                let room_b = columns.len().next_multiple_of(unit) * depth + BEHIND;
                scratch::with(1, room_b, |b_room: &mut [T]| {
                    for slice in slices(ks) {
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

    /// Rows whose packed A stays in the second-level cache, and whose `columns` of C are not too much at once.
    fn slab_rows(&self, depth: usize, columns: usize) -> usize {
        let of_a = SLAB_BYTES / size_of::<T>() / depth;
        let of_c = BLOCK_BYTES / size_of::<T>() / columns.max(1);
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

/// Slices of a pass.
fn slices(ks: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let whole = ks.len() <= WHOLE_DEPTH;
    pieces(ks.clone(), if whole { WHOLE_DEPTH } else { DEPTH }, 1)
}

fn deepest(ks: &Range<usize>) -> usize {
    slices(ks).map(|slice| slice.len()).max().unwrap_or(0)
}
