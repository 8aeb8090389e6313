//! Data movement on tensors: the loops of [`tensorfleet_math::movement`]. Plain elements move as bytes, by loops that are
//! compiled there once for each size; booleans, strings, handles and variants are cloned by loops that are compiled here and
//! nowhere else.

use smallvec::SmallVec;
use tensorfleet_math::movement::{self, Gather, Index, Updates, View};
use tensorfleet_math::par::{Par, chunks_mut};
use tensorfleet_status::{Result, Status, internal, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor, Word, by_typed, by_word};

/// Elements per task of a loop that only writes.
const GRAIN: usize = 32 * 1024;

/// Dimensions as lengths.
pub(crate) type Extents = SmallVec<[usize; 8]>;

/// The dimensions of a shape as lengths.
pub(crate) fn extents(dims: &[i64]) -> Extents {
    dims.iter().map(|dim| *dim as usize).collect()
}

/// Runs the body for elements that have no bytes to write.
macro_rules! cloned {
    ($dtype:expr, $word:ident => $body:expr) => {
        by_typed!($dtype, $word => $body, else plain => {
            return Err(internal!("a tensor of dtype {plain} without bytes").into())
        })
    };
}

/// The size of plain elements, and their bytes; there are none to write of booleans.
fn plain<'a>(src: &'a Tensor, out: &'a mut Tensor) -> Option<(usize, &'a [u8], &'a mut [u8])> {
    Some((src.dtype().size()?, src.bytes()?, out.bytes_mut()?))
}

/// The elements at the positions of a view of `src`, as a tensor of `shape`.
pub(crate) fn copy_view(par: &dyn Par, src: &Tensor, view: &View, shape: Shape) -> Result<Tensor> {
    let mut out = Tensor::new(src.dtype(), shape)?;
    if let Some((size, from, to)) = plain(src, &mut out) {
        movement::copy_view_bytes(par, size, from, view, to);
        return Ok(out);
    }
    cloned!(src.dtype(), W => {
        movement::copy_view(par, src.words::<W>()?, view, out.words_mut::<W>()?);
    });
    Ok(out)
}

/// Writes the elements of `src` to the positions of a view of `dst`.
pub(crate) fn paste_view(src: &Tensor, view: &View, dst: &mut Tensor) -> Result<()> {
    if let Some((size, from, to)) = plain(src, dst) {
        movement::paste_view_bytes(size, from, view, to);
        return Ok(());
    }
    cloned!(src.dtype(), W => {
        movement::paste_view(src.words::<W>()?, view, dst.words_mut::<W>()?);
    });
    Ok(())
}

/// Row by row the rows of all parts; a part is a tensor and the length of its rows.
pub(crate) fn concat(
    par: &dyn Par,
    dtype: DType,
    parts: &[(&Tensor, usize)],
    shape: Shape,
) -> Result<Tensor> {
    let mut out = Tensor::new(dtype, shape)?;
    let plain: Option<Vec<_>> = parts
        .iter()
        .map(|&(part, row_len)| part_bytes(dtype, part, row_len))
        .collect();
    if let (Some(parts), Some(to)) = (plain, out.bytes_mut()) {
        movement::concat_bytes(par, &parts, to);
        return Ok(out);
    }
    cloned!(dtype, W => {
        let parts = parts.iter().map(|(part, row_len)| Ok((part.words::<W>()?, *row_len)));
        let parts: Vec<(&[W], usize)> = parts.collect::<Result<_>>()?;
        movement::concat(par, &parts, out.words_mut::<W>()?);
    });
    Ok(out)
}

/// The bytes of a part of plain elements and of its rows; a part of another dtype has none, and is refused later.
fn part_bytes(dtype: DType, part: &Tensor, row_len: usize) -> Option<(&[u8], usize)> {
    let size = dtype.size().filter(|_| part.dtype() == dtype)?;
    Some((part.bytes()?, row_len * size))
}

/// A tensor of `shape` whose elements are all the one of `value`.
pub(crate) fn fill(par: &dyn Par, value: &Tensor, shape: Shape) -> Result<Tensor> {
    let mut out = Tensor::new(value.dtype(), shape)?;
    by_word!(value.dtype(), W => {
        fill_words(par, only(value.words::<W>()?)?, out.words_mut::<W>()?);
    });
    Ok(out)
}

fn fill_words<W: Word>(par: &dyn Par, value: &W, out: &mut [W]) {
    chunks_mut(par, out, GRAIN, |_, chunk| chunk.fill(value.clone()));
}

/// Rows of `params` by index along an axis.
pub(crate) fn gather<I: Index>(
    par: &dyn Par,
    shape: Gather,
    params: &Tensor,
    indices: &[I],
    out: &mut Tensor,
) -> std::result::Result<(), RowsError> {
    if let Some((size, from, to)) = plain(params, out) {
        return Ok(movement::gather_bytes(par, size, shape, from, indices, to)?);
    }
    cloned!(params.dtype(), W => {
        let src = params.words::<W>()?;
        movement::gather(par, shape, src, indices, out.words_mut::<W>()?)?;
    });
    Ok(())
}

/// Why rows could not be gathered or scattered.
pub(crate) enum RowsError {
    /// An index is out of range.
    Index(movement::BadIndex),
    /// Something else.
    Status(Status),
}

impl From<movement::BadIndex> for RowsError {
    fn from(bad: movement::BadIndex) -> RowsError {
        RowsError::Index(bad)
    }
}

impl From<Status> for RowsError {
    fn from(status: Status) -> RowsError {
        RowsError::Status(status)
    }
}

/// For rows that have been checked before.
impl From<RowsError> for Status {
    fn from(error: RowsError) -> Status {
        match error {
            RowsError::Index(bad) => internal!("row {} is out of range", bad.value),
            RowsError::Status(status) => status,
        }
    }
}

/// Overwrites rows of `dst`, or none if a row number is bad.
pub(crate) fn scatter_rows(
    par: &dyn Par,
    dst: &mut Tensor,
    row_len: usize,
    rows: &[i64],
    updates: &Tensor,
) -> std::result::Result<(), RowsError> {
    if let Some((size, from, to)) = plain(updates, dst) {
        movement::scatter_update_bytes(par, size, to, row_len, rows, from)?;
        return Ok(());
    }
    cloned!(updates.dtype(), W => {
        let updates = Updates::Rows(updates.words::<W>()?);
        movement::scatter(par, dst.words_mut::<W>()?, row_len, rows, updates, Clone::clone_from)?;
    });
    Ok(())
}

/// `src` surrounded by `value`.
pub(crate) fn pad(
    par: &dyn Par,
    src: &Tensor,
    paddings: &[(usize, usize)],
    value: &Tensor,
    shape: Shape,
) -> Result<Tensor> {
    let mut out = Tensor::new(src.dtype(), shape)?;
    let dims = extents(src.shape());
    if let (Some((size, from, to)), Some(value)) = (plain(src, &mut out), value.bytes()) {
        if value.len() != size {
            return Err(invalid_argument!(
                "a scalar was expected, got {} values",
                value.len() / size
            ));
        }
        movement::pad_bytes(par, size, from, &dims, paddings, value, to);
        return Ok(out);
    }
    cloned!(src.dtype(), W => {
        let value = only(value.words::<W>()?)?;
        movement::pad(par, src.words::<W>()?, &dims, paddings, value, out.words_mut::<W>()?);
    });
    Ok(out)
}

/// `out[i, j, …] = src[maps[0][i], maps[1][j], …]`.
pub(crate) fn remap(
    par: &dyn Par,
    src: &Tensor,
    maps: &[Vec<usize>],
    shape: Shape,
) -> Result<Tensor> {
    let mut out = Tensor::new(src.dtype(), shape)?;
    let dims = extents(src.shape());
    if let Some((size, from, to)) = plain(src, &mut out) {
        movement::remap_bytes(par, size, from, &dims, maps, to);
        return Ok(out);
    }
    cloned!(src.dtype(), W => {
        movement::remap(par, src.words::<W>()?, &dims, maps, out.words_mut::<W>()?);
    });
    Ok(out)
}

fn only<W>(words: &[W]) -> Result<&W> {
    match words {
        [word] => Ok(word),
        _ => Err(invalid_argument!(
            "a scalar was expected, got {} values",
            words.len()
        )),
    }
}
