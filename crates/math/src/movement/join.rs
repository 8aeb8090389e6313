//! Concatenation and padding: destinations made of pieces.

use super::Item;
use super::copy::{GRAIN, copy_slice};
use super::view::dense_strides;
use crate::par::{Par, chunks_mut, rows_mut};

/// Concatenates along an axis: row by row, the rows of all `parts`; a part is its data and the length of its rows.
///
/// Rows are what lies behind (and in) the axis; all parts have the same number of rows.
///
/// # Panics
/// If a part is not so many whole rows or `dst` has another length than all parts together.
pub fn concat<T: Item>(par: &dyn Par, parts: &[(&[T], usize)], dst: &mut [T]) {
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
                    copy_slice(&part[at..at + piece.len()], piece);
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
    assert_eq!(dims.len(), paddings.len(), "paddings of another rank");
    assert_eq!(src.len(), dims.iter().product(), "input");
    let padded: Vec<usize> = dims
        .iter()
        .zip(paddings)
        .map(|(extent, (before, behind))| before + extent + behind)
        .collect();
    assert_eq!(dst.len(), padded.iter().product(), "output");
    if src.is_empty() {
        return chunks_mut(par, dst, GRAIN, |_, chunk| chunk.fill(value.clone()));
    }
    let Some(last) = dims.len().checked_sub(1) else {
        return dst.clone_from_slice(src);
    };
    let strides = dense_strides(dims);
    let row_len = padded[last];
    let (before, extent) = (paddings[last].0, dims[last]);
    rows_mut(
        par,
        dst,
        row_len,
        GRAIN.div_ceil(row_len),
        |first, chunk| {
            for (i, row) in chunk.chunks_exact_mut(row_len).enumerate() {
                match inner_row(first + i, dims, paddings, &padded, &strides) {
                    None => row.fill(value.clone()),
                    Some(at) => {
                        let (head, rest) = row.split_at_mut(before);
                        let (body, tail) = rest.split_at_mut(extent);
                        head.fill(value.clone());
                        copy_slice(&src[at..at + extent], body);
                        tail.fill(value.clone());
                    }
                }
            }
        },
    );
}

/// Where in the source the padded row number `row` has its elements; none if it is all padding.
fn inner_row(
    row: usize,
    dims: &[usize],
    paddings: &[(usize, usize)],
    padded: &[usize],
    strides: &[isize],
) -> Option<usize> {
    let (mut rest, mut at) = (row, 0);
    for i in (0..dims.len() - 1).rev() {
        let index = (rest % padded[i]).checked_sub(paddings[i].0)?;
        rest /= padded[i];
        if index >= dims[i] {
            return None;
        }
        at += index * strides[i] as usize;
    }
    Some(at)
}
