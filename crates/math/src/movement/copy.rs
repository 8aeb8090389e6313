//! Copying a [`View`] into a dense array and back: the engine behind slices, transposes, reversals, tiles and broadcasts.

use super::Item;
use super::view::{Cursor, View};
use crate::par::{Par, chunks_mut, rows_mut};

/// Elements per task.
pub(super) const GRAIN: usize = 16 * 1024;
/// Edge of the blocks in which two dimensions are exchanged: block rows of both sides stay in the first-level cache.
const BLOCK: usize = 32;

/// Copies the elements at the view's positions in `src` to `dst`, in order.
///
/// # Panics
/// If the view leaves `src` or has another number of positions than `dst` has elements.
pub fn copy_view<T: Item>(par: &dyn Par, src: &[T], view: &View, dst: &mut [T]) {
    assert_eq!(view.len(), dst.len(), "view and destination differ");
    view.check_inside(src.len());
    if dst.is_empty() {
        return;
    }
    let view = view.collapsed();
    match view.strides.iter().rposition(|&stride| stride == 1) {
        Some(unit) if unit + 1 < view.dims.len() => copy_exchanged(par, src, &view, unit, dst),
        _ => copy_runs(par, src, &view, dst),
    }
}

/// Copies run by run, where a run is the last dimension of the view.
fn copy_runs<T: Item>(par: &dyn Par, src: &[T], view: &View, dst: &mut [T]) {
    let outer = view.dims.len().saturating_sub(1);
    let run = view.dims.last().copied().unwrap_or(1);
    let stride = view.strides.last().copied().unwrap_or(1);
    chunks_mut(par, dst, GRAIN, |first, chunk| {
        let (dims, strides) = (&view.dims[..outer], &view.strides[..outer]);
        let mut cursor = Cursor::new(dims, strides, view.offset as isize, first / run);
        let skipped = first % run;
        let (head, rest) = chunk.split_at_mut((run - skipped).min(chunk.len()));
        copy_run(src, cursor.at + skipped as isize * stride, stride, head);
        for run in rest.chunks_mut(run) {
            cursor.advance();
            copy_run(src, cursor.at, stride, run);
        }
    });
}

#[inline]
fn copy_run<T: Item>(src: &[T], at: isize, stride: isize, dst: &mut [T]) {
    let at = at as usize;
    match stride {
        1 => copy_slice(&src[at..at + dst.len()], dst),
        0 => dst.fill(src[at].clone()),
        -1 => {
            let src = src[at + 1 - dst.len()..=at].iter().rev();
            for (dst, src) in dst.iter_mut().zip(src) {
                dst.clone_from(src);
            }
        }
        2.. => {
            let src = src[at..].iter().step_by(stride as usize);
            for (dst, src) in dst.iter_mut().zip(src) {
                dst.clone_from(src);
            }
        }
        _ => {
            let src = src[..=at].iter().rev().step_by(stride.unsigned_abs());
            for (dst, src) in dst.iter_mut().zip(src) {
                dst.clone_from(src);
            }
        }
    }
}

/// Copies slices of equal length; a short one without the call that a copy of unknown length costs.
#[inline(always)]
pub(super) fn copy_slice<T: Item>(src: &[T], dst: &mut [T]) {
    if dst.len() <= 8 {
        for (dst, src) in dst.iter_mut().zip(src) {
            dst.clone_from(src);
        }
    } else {
        dst.clone_from_slice(src);
    }
}

/// Copies a view whose dimension `unit` runs along `src` while its last runs along `dst`, block by block.
fn copy_exchanged<T: Item>(par: &dyn Par, src: &[T], view: &View, unit: usize, dst: &mut [T]) {
    let last = view.dims.len() - 1;
    let row_len: usize = view.dims[unit + 1..].iter().product();
    let grain = (GRAIN / row_len).max(1).next_multiple_of(BLOCK);
    let height = view.dims[unit];
    rows_mut(par, dst, row_len, grain, |first, chunk| {
        let (dims, strides) = (&view.dims[..unit], &view.strides[..unit]);
        let mut outer = Cursor::new(dims, strides, view.offset as isize, first / height);
        let mut skipped = first % height;
        let mut rest = chunk;
        while !rest.is_empty() {
            let rows = (rest.len() / row_len).min(height - skipped);
            let (part, behind) = rest.split_at_mut(rows * row_len);
            let (dims, strides) = (&view.dims[unit + 1..last], &view.strides[unit + 1..last]);
            let mut middle = Cursor::new(dims, strides, outer.at + skipped as isize, 0);
            for column in (0..row_len).step_by(view.dims[last]) {
                let plane = Plane {
                    at: middle.at,
                    stride: view.strides[last],
                    width: view.dims[last],
                    column,
                    row_len,
                };
                plane.copy(src, part);
                middle.advance();
            }
            rest = behind;
            skipped = 0;
            outer.advance();
        }
    });
}

/// Two dimensions to exchange: `dst[row][column + i] = src[at + row + i·stride]`.
struct Plane {
    at: isize,
    stride: isize,
    width: usize,
    column: usize,
    row_len: usize,
}

impl Plane {
    fn copy<T: Item>(&self, src: &[T], dst: &mut [T]) {
        let mut first_row = 0;
        for rows in dst.chunks_mut(BLOCK * self.row_len) {
            for first in (0..self.width).step_by(BLOCK) {
                let width = BLOCK.min(self.width - first);
                let at = self.at + first_row + first as isize * self.stride;
                let column = self.column + first;
                for (row, dst) in rows.chunks_exact_mut(self.row_len).enumerate() {
                    let mut from = at + row as isize;
                    for dst in &mut dst[column..column + width] {
                        dst.clone_from(&src[from as usize]);
                        from += self.stride;
                    }
                }
            }
            first_row += BLOCK as isize;
        }
    }
}

/// Copies `src`, in order, to the view's positions in `dst`; the other elements keep their values.
///
/// # Panics
/// If the view leaves `dst` or has another number of positions than `src` has elements.
pub fn paste_view<T: Item>(src: &[T], view: &View, dst: &mut [T]) {
    let run = view.dims.last().copied().unwrap_or(1);
    for_runs(src, view, dst.len(), |run_src, at, stride| {
        if stride == 1 {
            copy_slice(run_src, &mut dst[at as usize..at as usize + run]);
        } else {
            let mut at = at;
            for src in run_src {
                dst[at as usize].clone_from(src);
                at += stride;
            }
        }
    });
}

/// Adds `src`, in order, to the view's positions in `dst`: what a tile, broadcast or slice needs for its gradient.
///
/// # Panics
/// As [`paste_view`].
pub fn add_view<T: Copy + std::ops::AddAssign>(src: &[T], view: &View, dst: &mut [T]) {
    for_runs(src, view, dst.len(), |run_src, at, stride| {
        let mut at = at;
        for &src in run_src {
            dst[at as usize] += src;
            at += stride;
        }
    });
}

/// Calls `body(run of src, position, stride)` for each last-dimension run of the view.
fn for_runs<T>(src: &[T], view: &View, len: usize, mut body: impl FnMut(&[T], isize, isize)) {
    assert_eq!(view.len(), src.len(), "view and source differ");
    view.check_inside(len);
    if src.is_empty() {
        return;
    }
    let outer = view.dims.len().saturating_sub(1);
    let run = view.dims.last().copied().unwrap_or(1);
    let stride = view.strides.last().copied().unwrap_or(1);
    let mut cursor = Cursor::new(
        &view.dims[..outer],
        &view.strides[..outer],
        view.offset as isize,
        0,
    );
    for run in src.chunks_exact(run) {
        body(run, cursor.at, stride);
        cursor.advance();
    }
}
