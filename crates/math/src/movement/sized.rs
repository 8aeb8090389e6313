//! The `…_bytes` twins: raw bytes and an element size instead of an element type.
//!
//! All of them panic as their twins do (lengths being in bytes) and for an element size other than 1, 2, 4, 8 or 16.

use super::by_size;
use super::cell::Cells as _;
use super::copy::copy_view_with;
use super::index::Index;
use super::join::{concat_with, pad_with};
use super::mover::ByBytes;
use super::view::View;
use super::{one_hot, paste_view, remap};
use crate::par::Par;

/// [`copy_view`](super::copy_view) for elements of `size` bytes.
pub fn copy_view_bytes(par: &dyn Par, size: usize, src: &[u8], view: &View, dst: &mut [u8]) {
    by_size!(size, Cell => copy_view_with(ByBytes, par, Cell::of(src), view, Cell::of_mut(dst)));
}

/// [`paste_view`] for elements of `size` bytes.
pub fn paste_view_bytes(size: usize, src: &[u8], view: &View, dst: &mut [u8]) {
    by_size!(size, Cell => paste_view(Cell::of(src), view, Cell::of_mut(dst)));
}

/// [`concat`](super::concat) for elements of any size: row lengths are in bytes.
pub fn concat_bytes(par: &dyn Par, parts: &[(&[u8], usize)], dst: &mut [u8]) {
    let narrow = parts
        .iter()
        .all(|(part, row_len)| row_len.is_multiple_of(4) && part.len().is_multiple_of(4));
    if !narrow {
        let parts: Vec<_> = parts
            .iter()
            .map(|(part, row_len)| (<[u8; 1]>::of(part), *row_len))
            .collect();
        return concat_with(ByBytes, par, &parts, <[u8; 1]>::of_mut(dst));
    }
    // Four bytes at a time: short rows then take few moves.
    let parts: Vec<_> = parts
        .iter()
        .map(|(part, row_len)| (<[u8; 4]>::of(part), row_len / 4))
        .collect();
    concat_with(ByBytes, par, &parts, <[u8; 4]>::of_mut(dst));
}

/// [`pad`](super::pad) for elements of `size` bytes.
pub fn pad_bytes(
    par: &dyn Par,
    size: usize,
    src: &[u8],
    dims: &[usize],
    paddings: &[(usize, usize)],
    value: &[u8],
    dst: &mut [u8],
) {
    assert_eq!(value.len(), size, "value of another size");
    by_size!(size, Cell => {
        pad_with(ByBytes, par, Cell::of(src), dims, paddings, &Cell::of(value)[0], Cell::of_mut(dst));
    });
}

/// [`remap`] for elements of `size` bytes.
pub fn remap_bytes(
    par: &dyn Par,
    size: usize,
    src: &[u8],
    dims: &[usize],
    maps: &[Vec<usize>],
    dst: &mut [u8],
) {
    by_size!(size, Cell => remap(par, Cell::of(src), dims, maps, Cell::of_mut(dst)));
}

/// [`one_hot`] for elements of `size` bytes.
pub fn one_hot_bytes<I: Index>(
    par: &dyn Par,
    size: usize,
    indices: &[I],
    depth: usize,
    suffix: usize,
    (on, off): (&[u8], &[u8]),
    dst: &mut [u8],
) {
    assert!(
        on.len() == size && off.len() == size,
        "value of another size"
    );
    by_size!(size, Cell => {
        let values = (&Cell::of(on)[0], &Cell::of(off)[0]);
        one_hot(par, indices, depth, suffix, values, Cell::of_mut(dst));
    });
}
