//! How dense tensors are filled with rows: the meaning of partition tensors, the size of the result and the place of each value.

use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Bytes, PartialShape, Shape};

use super::rows;

/// What a partition tensor says.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Partition {
    /// How many rows there are.
    Size,
    /// The row of each value.
    Ids,
    /// Where each row begins.
    Splits,
}

impl Partition {
    pub(super) fn all(names: &[Bytes]) -> Result<Vec<Partition>> {
        let kind = |name: &Bytes| match &name[..] {
            b"FIRST_DIM_SIZE" => Ok(Partition::Size),
            b"VALUE_ROWIDS" => Ok(Partition::Ids),
            b"ROW_SPLITS" => Ok(Partition::Splits),
            other => Err(invalid_argument!(
                "Unknown string for partition info type: {}",
                String::from_utf8_lossy(other)
            )),
        };
        names.iter().map(kind).collect()
    }
}

/// How the values of one dimension are dealt out to rows.
pub(super) struct Level {
    pub(super) kind: Partition,
    pub(super) numbers: Vec<i64>,
}

/// The dimensions of the result.
pub(super) fn sizes(
    mut sizes: Vec<i64>,
    values: &Shape,
    first_dim: i64,
    levels: &[Level],
) -> Result<Vec<i64>> {
    let rank = levels.len() + values.rank();
    let shown = PartialShape::new(&sizes);
    ensure!(
        sizes.len() == rank,
        invalid_argument,
        "rt_input.shape and shape={shown} are incompatible: rt_input.rank = {rank} but shape.rank = {}",
        sizes.len()
    );
    for (axis, size) in sizes.iter_mut().enumerate().skip(levels.len() + 1) {
        let own = values[axis - levels.len()];
        ensure!(
            *size < 0 || *size == own,
            invalid_argument,
            "rt_input.shape and shape={shown} are incompatible: rt_input.shape[{axis}] = {own} but shape[{axis}] = {size}"
        );
        *size = own;
    }
    if sizes[0] < 0 {
        sizes[0] = first_dim;
    }
    for (size, level) in sizes.iter_mut().skip(1).zip(levels) {
        if *size < 0 {
            *size = match level.kind {
                Partition::Splits => {
                    let lengths = level
                        .numbers
                        .windows(2)
                        .map(|pair| pair[1].wrapping_sub(pair[0]));
                    lengths.max().unwrap_or(0).max(0)
                }
                _ => {
                    let runs = level.numbers.chunk_by(|a, b| a == b).map(<[i64]>::len);
                    runs.max().unwrap_or(0) as i64
                }
            };
        }
    }
    Ok(sizes)
}

pub(super) fn check_default(default: &Shape, values: &Shape) -> Result<()> {
    ensure!(
        default.rank() < values.rank(),
        invalid_argument,
        "default_value.shape={default} and rt_input.flat_values.shape={values} are incompatible: default_value.rank = {}  must be less than rt_input.flat_values.rank = {}",
        default.rank(),
        values.rank()
    );
    for axis in 0..default.rank() {
        let (own, value) = (default[axis], values[axis + 1]);
        let from_end = axis as i64 - default.rank() as i64;
        ensure!(
            own == 1 || own == value,
            invalid_argument,
            "default_value.shape={default} and rt_input.flat_values.shape={values} are incompatible: default_value.shape[{from_end}] = {own} but rt_input.flat_values.shape[{from_end}] = {value}"
        );
    }
    Ok(())
}

/// For each value its row in the result; none if that has no place for it.
pub(super) fn places(
    shape: &Shape,
    first_dim: i64,
    levels: &[Level],
    values: usize,
) -> Result<Vec<Option<usize>>> {
    // How far apart what lies in neighbours of a dimension is.
    let stride = |level: usize| shape.elements_in(level + 1..levels.len() + 1);
    let outer = |row: usize| (row < shape.dim(0)).then(|| row * stride(0));
    let count = usize::try_from(first_dim).unwrap_or(0);
    let Some((first, deeper)) = levels.split_first() else {
        check_count(count, values)?;
        return Ok((0..count).map(outer).collect());
    };
    let size = |level: usize| (shape.dim(level), stride(level));
    let mut found = nested(first, count, outer, size(1), values)?;
    for (at, level) in deeper.iter().enumerate() {
        let parent = |row: usize| found.get(row).copied().flatten();
        found = nested(level, found.len(), parent, size(at + 2), values)?;
    }
    Ok(found)
}

fn check_count(count: usize, values: usize) -> Result<()> {
    ensure!(
        count <= values,
        invalid_argument,
        "Row partition size ({count}) exceeds the number of values ({values})"
    );
    Ok(())
}

/// The places of what lies in rows, whose own places `parent` knows; `size` is how many of a row have a place, and how far apart
/// these are.
fn nested(
    level: &Level,
    parents: usize,
    parent: impl Fn(usize) -> Option<usize>,
    size: (usize, usize),
    values: usize,
) -> Result<Vec<Option<usize>>> {
    let (partition, (kept, stride)) = (&level.numbers, size);
    let place = |row: usize, column: usize| {
        let start = parent(row).filter(|_| column < kept)?;
        Some(start + column * stride)
    };
    let mut found = Vec::new();
    if level.kind == Partition::Splits {
        ensure!(
            rows(partition) <= parents,
            invalid_argument,
            "Row partition size is greater than output size: {} > {parents}",
            rows(partition)
        );
        for (row, pair) in partition.windows(2).enumerate() {
            // Before they are counted out: a split may be any number.
            let length = usize::try_from(pair[1].saturating_sub(pair[0])).unwrap_or(0);
            let end = found.len().saturating_add(length);
            check_count(end.min(usize::try_from(pair[1]).unwrap_or(0)), values)?;
            ensure!(
                end as i64 == pair[1],
                invalid_argument,
                "Invalid row split size."
            );
            found.extend((0..length).map(|column| place(row, column)));
        }
        return Ok(found);
    }
    let mut last: Option<(i64, usize)> = None;
    for id in partition {
        let column = match last {
            Some((previous, column)) if previous == *id => column + 1,
            Some((previous, _)) if *id < previous => {
                return Err(invalid_argument!(
                    "value_rowids must be monotonically increasing, but got {id} after {previous}"
                ));
            }
            _ => 0,
        };
        let row = usize::try_from(*id).ok().filter(|row| *row < parents);
        let row = row.ok_or_else(|| {
            let what = if last.is_none() { "current" } else { "next" };
            invalid_argument!("Got {what}_value_rowid={id} which is not less than {parents}")
        })?;
        found.push(place(row, column));
        last = Some((*id, column));
    }
    check_count(found.len(), values)?;
    Ok(found)
}
