//! Rows picked by index.

use super::cell::Cells as _;
use super::index::{BadIndex, Index, check_indices};
use super::mover::{ByBytes, ByClone, Mover};
use super::{Item, by_size};
use crate::par::{Par, rows_mut};

/// Elements per task.
const GRAIN: usize = 8 * 1024;

/// The shape of a gather: `params[batch, outer, limit, inner]` by `indices[batch, count]` gives `[batch, outer, count, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// Product of the batch dimensions, which `params` and the indices share.
    pub batch: usize,
    /// Product of the dimensions between the batch dimensions and the axis.
    pub outer: usize,
    /// Extent of the axis.
    pub limit: usize,
    /// Product of the dimensions behind the axis.
    pub inner: usize,
    /// Indices in each batch.
    pub count: usize,
}

/// Gathers elements or rows of `src` along an axis.
///
/// # Panics
/// If the slices do not have the lengths that `shape` says.
pub fn gather<T: Item, I: Index>(
    par: &dyn Par,
    shape: Gather,
    src: &[T],
    indices: &[I],
    dst: &mut [T],
) -> Result<(), BadIndex> {
    gather_with(ByClone, par, shape, src, indices, dst)
}

fn gather_with<T: Item, I: Index>(
    mover: impl Mover<T>,
    par: &dyn Par,
    shape: Gather,
    src: &[T],
    indices: &[I],
    dst: &mut [T],
) -> Result<(), BadIndex> {
    let Gather {
        batch,
        outer,
        limit,
        inner,
        count,
    } = shape;
    assert_eq!(src.len(), batch * outer * limit * inner, "params");
    assert_eq!(indices.len(), batch * count, "indices");
    assert_eq!(dst.len(), batch * outer * count * inner, "output");
    check_indices(indices, limit)?;
    if dst.is_empty() {
        return Ok(());
    }
    let grain = GRAIN.div_ceil(inner);
    rows_mut(par, dst, inner, grain, |first, chunk| {
        // A segment is what one (batch, outer) pair has of this chunk: one plane of `src`, one run of indices.
        let (mut segment, mut skipped) = (first / count, first % count);
        let mut rest = chunk;
        while !rest.is_empty() {
            let rows = (rest.len() / inner).min(count - skipped);
            let (part, behind) = rest.split_at_mut(rows * inner);
            let plane = &src[segment * limit * inner..(segment + 1) * limit * inner];
            let run = segment / outer * count + skipped;
            gather_plane(mover, plane, inner, &indices[run..run + rows], part);
            rest = behind;
            segment += 1;
            skipped = 0;
        }
    });
    Ok(())
}

/// Gathers rows of one plane; the indices are good.
fn gather_plane<T: Item, I: Index>(
    mover: impl Mover<T>,
    src: &[T],
    inner: usize,
    indices: &[I],
    dst: &mut [T],
) {
    if inner == 1 {
        for (dst, index) in dst.iter_mut().zip(indices) {
            dst.clone_from(&src[index.position()]);
        }
        return;
    }
    mover.pick(src, inner, indices, dst);
}

/// As [`gather`] for elements of `size` bytes.
///
/// # Panics
/// As [`gather`], in bytes, and if `size` is not 1, 2, 4, 8 or 16.
pub fn gather_bytes<I: Index>(
    par: &dyn Par,
    size: usize,
    shape: Gather,
    src: &[u8],
    indices: &[I],
    dst: &mut [u8],
) -> Result<(), BadIndex> {
    // Rows of few bytes move as one element, others as so many bytes: the element size as such plays no part.
    let row = shape.inner * size;
    let unit = Gather { inner: 1, ..shape };
    let bytes = Gather {
        inner: row,
        ..shape
    };
    by_size!(rows row, Cell => gather(par, unit, Cell::of(src), indices, Cell::of_mut(dst)),
        else gather_with(ByBytes, par, bytes, <[u8; 1]>::of(src), indices, <[u8; 1]>::of_mut(dst)))
}
