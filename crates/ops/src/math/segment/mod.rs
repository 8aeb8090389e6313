//! Rows combined by segment: sorted, unsorted, and picked from a table by index.

mod gradient;
pub(crate) mod sorted;
pub(crate) mod sparse;
pub(crate) mod sparse_grad;
pub(crate) mod unsorted;

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

/// Integers as positions; a negative one becomes larger than any length.
fn positions(tensor: &Tensor) -> Result<Vec<usize>> {
    Ok(match tensor.dtype() {
        DType::I16 => tensor.slice::<i16>()?.iter().map(|v| *v as usize).collect(),
        DType::I32 => tensor.slice::<i32>()?.iter().map(|v| *v as usize).collect(),
        DType::I64 => tensor.slice::<i64>()?.iter().map(|v| *v as usize).collect(),
        other => return Err(invalid_argument!("indices must be integers, got {other}")),
    })
}

/// The number of segments that these ids make, if they ascend from zero or more and stay below `limit`.
fn count_sorted(ids: &[usize], limit: Option<usize>) -> Result<usize> {
    let Some(&last) = ids.last() else {
        return Ok(limit.unwrap_or(0));
    };
    if last > i64::MAX as usize {
        return Err(invalid_argument!("segment ids must be >= 0"));
    }
    if limit.is_some_and(|limit| last >= limit) {
        return Err(invalid_argument!("segment ids must be < num_segments"));
    }
    let count = limit.unwrap_or(last + 1);
    if ids.is_sorted() {
        return Ok(count);
    }
    // A negative id is a very large one here: ids that begin with one come this way as well. What TensorFlow meets first when it
    // goes from segment to segment it refuses.
    for pair in ids.windows(2) {
        let (id, next) = (pair[0] as i64, pair[1] as i64);
        if id > next {
            break;
        }
        if id != next && !(0..count as i64).contains(&id) {
            return Err(invalid_argument!(
                "Segment id {id} out of range [0, {count}), possibly because 'segment_ids' input is not sorted."
            ));
        }
    }
    Err(invalid_argument!("segment ids are not increasing"))
}
