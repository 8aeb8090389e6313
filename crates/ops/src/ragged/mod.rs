//! Ragged tensors: rows of different lengths, as values and the splits between their rows, one list of splits per dimension.

mod cross;
mod from_variant;
mod gather;
mod partition;
mod range;
mod to_sparse;
mod to_tensor;
mod to_variant;
pub(crate) mod variant;

use tensorfleet_kernel::KernelCtx;
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, Shape, Tensor};

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "ragged",
    ops: &[
        &cross::OP,
        &from_variant::OP,
        &gather::OP,
        &range::OP,
        &to_sparse::OP,
        &to_tensor::OP,
    ],
    tables: &[&to_variant::OPS],
};

/// Splits, from the outermost dimension inwards.
type Splits = Vec<Vec<i64>>;

/// The splits in the first `count` inputs, as they are.
fn splits(ctx: &KernelCtx<'_>, count: usize) -> Result<Splits> {
    (0..count)
        .map(|index| Ok(ctx.ints(index)?.to_vec()))
        .collect()
}

/// How many parts these splits make.
fn rows(splits: &[i64]) -> usize {
    splits.len().saturating_sub(1)
}

/// The splits of rows of one length.
fn even_splits(count: i64, length: i64) -> Result<Vec<i64>> {
    // Empty rows may be as many as one likes, their splits may not.
    Tensor::new(DType::I64, Shape::new(&[count.saturating_add(1)])?)?;
    Ok((0..=count).map(|row| row * length).collect())
}

/// Splits as every ragged tensor has them: from zero to the number of values (if that is known), never falling.
fn check_splits(splits: &[i64], rank: usize, values: Option<usize>) -> Result<()> {
    ensure!(
        rank == 1,
        invalid_argument,
        "Invalid ragged splits: ragged splits must be rank 1 but is rank {rank}"
    );
    ensure!(
        !splits.is_empty(),
        invalid_argument,
        "Invalid ragged splits: ragged splits must have at least one splits, but is empty"
    );
    ensure!(
        splits[0] == 0,
        invalid_argument,
        "Invalid ragged splits: first element of ragged splits  must be 0 but is {}",
        splits[0]
    );
    for (at, pair) in splits.windows(2).enumerate() {
        ensure!(
            pair[0] <= pair[1],
            invalid_argument,
            "Invalid ragged splits: ragged splits must be monotonically increasing, but ragged_splits[{}]={} is smaller than row_splits[{at}]={}",
            at + 1,
            pair[1],
            pair[0]
        );
    }
    let last = splits[splits.len() - 1];
    if let Some(values) = values {
        ensure!(
            last == values as i64,
            invalid_argument,
            "Invalid ragged splits: last element of ragged splits must be the number of ragged values({values}) but is {last}"
        );
    }
    Ok(())
}
