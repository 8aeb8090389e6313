//! Copying a [`View`] into a dense array and back: the engine behind slices, transposes, reversals, tiles and broadcasts.

use super::Item;
use super::mover::{BLOCK, Block, ByClone, Mover, SHORT};
use super::view::{Cursor, View};
use crate::par::{Par, chunks_mut, rows_mut};

/// Elements per task.
pub(super) const GRAIN: usize = 16 * 1024;

/// Copies the elements at the view's positions in `src` to `dst`, in order.
///
/// # Panics
/// If the view leaves `src` or has another number of positions than `dst` has elements.
pub fn copy_view<T: Item>(par: &dyn Par, src: &[T], view: &View, dst: &mut [T]) {
    copy_view_with(ByClone, par, src, view, dst);
}

pub(super) fn copy_view_with<T: Item>(
    mover: impl Mover<T>,
    par: &dyn Par,
    src: &[T],
    view: &View,
    dst: &mut [T],
) {
    assert_eq!(view.len(), dst.len(), "view and destination differ");
    view.check_inside(src.len());
    if dst.is_empty() {
        return;
    }
    let view = view.collapsed();
    let runs_apart = view.strides.last().is_some_and(|last| last.abs() > 1);
    match view.strides.iter().rposition(|&stride| stride == 1) {
        Some(unit) if runs_apart => copy_exchanged(mover, par, src, &view, unit, dst),
        _ => copy_runs(mover, par, src, &view, dst),
    }
}

/// Copies run by run, where a run is the last dimension of the view.
fn copy_runs<T: Item>(mover: impl Mover<T>, par: &dyn Par, src: &[T], view: &View, dst: &mut [T]) {
    let outer = view.dims.len().saturating_sub(1);
    let run = view.dims.last().copied().unwrap_or(1);
    let stride = view.strides.last().copied().unwrap_or(1);
    chunks_mut(par, dst, GRAIN, |first, chunk| {
        let (dims, strides) = (&view.dims[..outer], &view.strides[..outer]);
        let mut cursor = Cursor::new(dims, strides, view.offset as isize, first / run);
        let skipped = first % run;
        let (head, rest) = chunk.split_at_mut((run - skipped).min(chunk.len()));
        let at = cursor.at + skipped as isize * stride;
        copy_run(mover, src, at, stride, head);
        for run in rest.chunks_mut(run) {
            cursor.advance();
            copy_run(mover, src, cursor.at, stride, run);
        }
    });
}

#[inline(always)]
fn copy_run<T: Item>(mover: impl Mover<T>, src: &[T], at: isize, stride: isize, dst: &mut [T]) {
    let at = at as usize;
    match stride {
        1 => mover.copy(&src[at..at + dst.len()], dst),
        0 => mover.fill(&src[at], dst),
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

/// Copies a view whose dimension `unit` runs along `src` while its last runs along `dst`, block by block.
fn copy_exchanged<T: Item>(
    mover: impl Mover<T>,
    par: &dyn Par,
    src: &[T],
    view: &View,
    unit: usize,
    dst: &mut [T],
) {
    let last = view.dims.len() - 1;
    let row_len: usize = view.dims[unit + 1..].iter().product();
    let grain = (GRAIN / row_len).max(1).next_multiple_of(BLOCK);
    let (height, width) = (view.dims[unit], view.dims[last]);
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
            for column in (0..row_len).step_by(width) {
                let plane = Block {
                    at: middle.at,
                    stride: view.strides[last],
                    width,
                    rows,
                    row_len,
                };
                exchange(mover, plane, src, &mut part[column..]);
                middle.advance();
            }
            rest = behind;
            skipped = 0;
            outer.advance();
        }
    });
}

/// Exchanges two dimensions of any extent.
fn exchange<T>(mover: impl Mover<T>, plane: Block, src: &[T], dst: &mut [T]) {
    for row in (0..plane.rows).step_by(BLOCK) {
        let block = |column: usize| Block {
            at: plane.at + row as isize + column as isize * plane.stride,
            width: BLOCK.min(plane.width - column),
            rows: BLOCK.min(plane.rows - row),
            ..plane
        };
        for column in (0..plane.width).step_by(BLOCK) {
            if column + BLOCK < plane.width && plane.rows >= SHORT {
                block(column + BLOCK).prefetch(src);
                let next = &dst[row * plane.row_len + column + BLOCK..];
                block(column + BLOCK).prefetch_rows(next);
            }
            mover.exchange(block(column), src, &mut dst[row * plane.row_len + column..]);
        }
    }
}

/// Copies `src`, in order, to the view's positions in `dst`; the other elements keep their values.
///
/// # Panics
/// If the view leaves `dst` or has another number of positions than `src` has elements.
pub fn paste_view<T: Item>(src: &[T], view: &View, dst: &mut [T]) {
    for_runs(src, view, dst.len(), |run, at, stride| {
        let mut at = at;
        if stride == 1 {
            ByClone.copy(run, &mut dst[at as usize..at as usize + run.len()]);
            return;
        }
        for src in run {
            dst[at as usize].clone_from(src);
            at += stride;
        }
    });
}

/// Adds `src`, in order, to the view's positions in `dst`: what a tile, broadcast or slice needs for its gradient.
///
/// # Panics
/// As [`paste_view`].
pub fn add_view<T: Copy + std::ops::AddAssign>(src: &[T], view: &View, dst: &mut [T]) {
    for_runs(src, view, dst.len(), |run, at, stride| {
        let mut at = at;
        for &src in run {
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
    let view = view.collapsed();
    let outer = view.dims.len().saturating_sub(1);
    let run = view.dims.last().copied().unwrap_or(1);
    let stride = view.strides.last().copied().unwrap_or(1);
    let (dims, strides) = (&view.dims[..outer], &view.strides[..outer]);
    let mut cursor = Cursor::new(dims, strides, view.offset as isize, 0);
    for run in src.chunks_exact(run) {
        body(run, cursor.at, stride);
        cursor.advance();
    }
}
