//! Copies through an index map in each dimension: mirror padding and its gradient.

use super::Item;
use super::copy::GRAIN;
use super::view::dense_strides;
use crate::par::{Par, rows_mut};

/// The source index of each element of a dimension that is continued by its mirror image.
///
/// `symmetric` repeats the edge element, otherwise (reflection) the edge is the axis of the mirror.
///
/// # Panics
/// If the padding is longer than the mirror image: `extent`, or one less in reflection.
pub fn mirrored(extent: usize, (before, behind): (usize, usize), symmetric: bool) -> Vec<usize> {
    let skip = usize::from(!symmetric);
    assert!(
        before.max(behind) + skip <= extent || (before, behind) == (0, 0),
        "padding ({before}, {behind}) is longer than the mirror image of {extent}"
    );
    let head = (skip..skip + before).rev();
    let tail = (0..behind).map(|i| extent - 1 - skip - i);
    head.chain(0..extent).chain(tail).collect()
}

/// Copies by index in each dimension: `dst[i, j, …] = src[maps[0][i], maps[1][j], …]` (`MirrorPad`).
///
/// # Panics
/// If a map leads outside of its dimension or a slice has another length than it must.
pub fn remap<T: Item>(
    par: &dyn Par,
    src: &[T],
    dims: &[usize],
    maps: &[Vec<usize>],
    dst: &mut [T],
) {
    let Some(last) = check_maps(src.len(), dims, maps, dst.len()) else {
        return dst.clone_from_slice(src);
    };
    if dst.is_empty() {
        return;
    }
    let strides = dense_strides(dims);
    let row_len = maps[last].len();
    let runs = runs(&maps[last]);
    rows_mut(
        par,
        dst,
        row_len,
        GRAIN.div_ceil(row_len),
        |first, chunk| {
            for (i, row) in chunk.chunks_exact_mut(row_len).enumerate() {
                let src = &src[mapped_row(first + i, maps, &strides)..][..dims[last]];
                let mut rest = row;
                for &(from, len) in &runs {
                    let (now, later) = rest.split_at_mut(len);
                    match now {
                        [one] => one.clone_from(&src[from]),
                        now => now.clone_from_slice(&src[from..from + len]),
                    }
                    rest = later;
                }
            }
        },
    );
}

/// The pieces of a map in which each index follows the one before: their first index and their length.
fn runs(map: &[usize]) -> Vec<(usize, usize)> {
    let pieces = map.chunk_by(|index, next| *next == index + 1);
    pieces.map(|piece| (piece[0], piece.len())).collect()
}

/// The reverse of [`remap`] for gradients: adds each element of `src` to the element of `dst` it came from.
///
/// # Panics
/// As [`remap`]; `dims` are those of `dst`.
pub fn remap_add<T: Copy + std::ops::AddAssign>(
    src: &[T],
    dims: &[usize],
    maps: &[Vec<usize>],
    dst: &mut [T],
) {
    let Some(last) = check_maps(dst.len(), dims, maps, src.len()) else {
        dst[0] += src[0];
        return;
    };
    if src.is_empty() {
        return;
    }
    let strides = dense_strides(dims);
    for (row, src) in src.chunks_exact(maps[last].len()).enumerate() {
        let dst = &mut dst[mapped_row(row, maps, &strides)..][..dims[last]];
        for (&src, &to) in src.iter().zip(&maps[last]) {
            dst[to] += src;
        }
    }
}

fn mapped_row(row: usize, maps: &[Vec<usize>], strides: &[isize]) -> usize {
    let (mut rest, mut at) = (row, 0);
    for i in (0..maps.len() - 1).rev() {
        at += maps[i][rest % maps[i].len()] * strides[i] as usize;
        rest /= maps[i].len();
    }
    at
}

/// Checks the arguments of a remap; returns the last dimension, if any.
fn check_maps(near: usize, dims: &[usize], maps: &[Vec<usize>], far: usize) -> Option<usize> {
    assert_eq!(dims.len(), maps.len(), "maps of another rank");
    assert_eq!(near, dims.iter().product(), "mapped array");
    assert_eq!(far, maps.iter().map(Vec::len).product(), "image");
    for (map, &extent) in maps.iter().zip(dims) {
        assert!(map.iter().all(|&i| i < extent), "map leaves its dimension");
    }
    dims.len().checked_sub(1)
}
