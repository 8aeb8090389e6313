//! Concatenation and padding: destinations made of pieces.

use super::Item;
use super::copy::GRAIN;
use super::mover::{ByClone, Mover};
use crate::par::{Par, chunks_mut, rows_mut};

/// Concatenates along an axis: row by row, the rows of all `parts`; a part is its data and the length of its rows.
///
/// Rows are what lies behind (and in) the axis; all parts have the same number of rows.
///
/// # Panics
/// If a part is not so many whole rows or `dst` has another length than all parts together.
pub fn concat<T: Item>(par: &dyn Par, parts: &[(&[T], usize)], dst: &mut [T]) {
    concat_with(ByClone, par, parts, dst);
}

pub(super) fn concat_with<T: Item>(
    mover: impl Mover<T>,
    par: &dyn Par,
    parts: &[(&[T], usize)],
    dst: &mut [T],
) {
    let row_len: usize = parts.iter().map(|(_, row_len)| row_len).sum();
    if dst.is_empty() {
        assert!(
            parts.iter().all(|(part, _)| part.is_empty()),
            "output is empty"
        );
        return;
    }
    let rows = dst.len() / row_len.max(1);
    assert_eq!(rows * row_len, dst.len(), "output is not whole rows");
    for (part, row_len) in parts {
        assert_eq!(part.len(), rows * row_len, "parts differ in rows");
    }
    chunks_mut(par, dst, GRAIN, |first, chunk| {
        let (mut row, mut column) = (first / row_len, first % row_len);
        let mut rest = chunk;
        while !rest.is_empty() {
            let mut begin = 0;
            for (part, len) in parts {
                if column < begin + len && !rest.is_empty() {
                    let skipped = column - begin;
                    let (piece, behind) = rest.split_at_mut((len - skipped).min(rest.len()));
                    let at = row * len + skipped;
                    mover.copy(&part[at..at + piece.len()], piece);
                    column += piece.len();
                    rest = behind;
                }
                begin += len;
            }
            row += 1;
            column = 0;
        }
    });
}

/// Surrounds `src` with `value`: `paddings[i]` elements before and behind in dimension `i`.
///
/// # Panics
/// If `paddings` has another rank or a slice has another length than it must.
pub fn pad<T: Item>(
    par: &dyn Par,
    src: &[T],
    dims: &[usize],
    paddings: &[(usize, usize)],
    value: &T,
    dst: &mut [T],
) {
    pad_with(ByClone, par, src, dims, paddings, value, dst);
}

pub(super) fn pad_with<T: Item>(
    mover: impl Mover<T>,
    par: &dyn Par,
    src: &[T],
    dims: &[usize],
    paddings: &[(usize, usize)],
    value: &T,
    dst: &mut [T],
) {
    let shape = Padded::new(dims, paddings);
    assert_eq!(src.len(), dims.iter().product(), "input");
    let padded = shape.padded();
    assert_eq!(dst.len(), padded.iter().product(), "output");
    if src.is_empty() {
        return chunks_mut(par, dst, GRAIN, |_, chunk| mover.fill(value, chunk));
    }
    let Some(last) = shape.dims.len().checked_sub(1) else {
        return dst.clone_from_slice(src);
    };
    let row_len = padded[last];
    let (before, extent) = (shape.paddings[last].0, shape.dims[last]);
    rows_mut(
        par,
        dst,
        row_len,
        GRAIN.div_ceil(row_len),
        |first, chunk| {
            for (i, row) in chunk.chunks_exact_mut(row_len).enumerate() {
                match shape.inner_row(first + i) {
                    None => mover.fill(value, row),
                    Some(at) => {
                        let (head, rest) = row.split_at_mut(before);
                        let (body, tail) = rest.split_at_mut(extent);
                        mover.fill(value, head);
                        mover.copy(&src[at..at + extent], body);
                        mover.fill(value, tail);
                    }
                }
            }
        },
    );
}

/// A box and its paddings, in as few dimensions as possible.
struct Padded {
    dims: Vec<usize>,
    paddings: Vec<(usize, usize)>,
}

impl Padded {
    fn new(dims: &[usize], paddings: &[(usize, usize)]) -> Self {
        assert_eq!(dims.len(), paddings.len(), "paddings of another rank");
        let mut shape = Self {
            dims: Vec::new(),
            paddings: Vec::new(),
        };
        for (&extent, &padding) in dims.iter().zip(paddings) {
            match (shape.dims.last_mut(), shape.paddings.last_mut()) {
                (Some(outer), Some((before, behind))) if padding == (0, 0) => {
                    *outer *= extent;
                    *before *= extent;
                    *behind *= extent;
                }
                _ => {
                    shape.dims.push(extent);
                    shape.paddings.push(padding);
                }
            }
        }
        shape
    }

    fn padded(&self) -> Vec<usize> {
        let dims = self.dims.iter().zip(&self.paddings);
        dims.map(|(extent, (before, behind))| before + extent + behind)
            .collect()
    }

    /// Where in the source the padded row number `row` has its elements; none if it is all padding.
    fn inner_row(&self, row: usize) -> Option<usize> {
        let last = self.dims.len() - 1;
        let (mut rest, mut at, mut stride) = (row, 0, self.dims[last]);
        for (&extent, &(before, behind)) in self.dims.iter().zip(&self.paddings).rev().skip(1) {
            let padded = before + extent + behind;
            let index = (rest % padded).checked_sub(before)?;
            rest /= padded;
            if index >= extent {
                return None;
            }
            at += index * stride;
            stride *= extent;
        }
        Some(at)
    }
}
