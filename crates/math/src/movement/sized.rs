//! The `…_bytes` twins: raw bytes and an element size instead of an element type.
//!
//! All of them panic as their twins do (lengths being in bytes) and for an element size other than 1, 2, 4, 8 or 16.

use super::by_size;
use super::cell::Cells as _;
use super::index::Index;
use super::view::View;
use super::{concat, copy_view, one_hot, pad, paste_view, remap};
use crate::par::Par;

/// [`copy_view`] for elements of `size` bytes.
pub fn copy_view_bytes(par: &dyn Par, size: usize, src: &[u8], view: &View, dst: &mut [u8]) {
    by_size!(size, Cell => copy_view(par, Cell::of(src), view, Cell::of_mut(dst)));
}

/// [`paste_view`] for elements of `size` bytes.
pub fn paste_view_bytes(size: usize, src: &[u8], view: &View, dst: &mut [u8]) {
    by_size!(size, Cell => paste_view(Cell::of(src), view, Cell::of_mut(dst)));
}

/// [`concat`] for elements of any size: row lengths are in bytes.
pub fn concat_bytes(par: &dyn Par, parts: &[(&[u8], usize)], dst: &mut [u8]) {
    let narrow = parts
        .iter()
        .all(|(part, row_len)| row_len.is_multiple_of(4) && part.len().is_multiple_of(4));
    if !narrow {
        return concat(par, parts, dst);
    }
    // Four bytes at a time: short rows then take few moves.
    let parts: Vec<_> = parts
        .iter()
        .map(|(part, row_len)| (<[u8; 4]>::of(part), row_len / 4))
        .collect();
    concat(par, &parts, <[u8; 4]>::of_mut(dst));
}

/// [`pad`] for elements of `size` bytes.
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
        pad(par, Cell::of(src), dims, paddings, &Cell::of(value)[0], Cell::of_mut(dst));
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
