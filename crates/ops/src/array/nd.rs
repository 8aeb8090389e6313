//! Rows of coordinates: what `GatherNd`, `ScatterNd` and the `TensorScatter…` ops share.
//!
//! The last dimension of `indices` holds coordinates into the leading dimensions of a tensor; what is
//! behind those is a row. `bad_indices_policy` says what a row of coordinates outside of them does:
//! an error (by default on a CPU), or nothing.

use tensorfleet_kernel::Attrs;
use tensorfleet_math::movement::{BadIndex, flatten_coordinates};
use tensorfleet_math::par::{Par, Serial};
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::gather::coordinates;
use super::moves;
use super::row_update::row_numbers;
use crate::room::filled;

/// The policies a kernel knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadIndices {
    Fail,
    Ignore,
}

impl BadIndices {
    /// Reads the attribute.
    pub(crate) fn of(attrs: &Attrs) -> Result<BadIndices> {
        match attrs.str("bad_indices_policy")? {
            "" | "DEFAULT" | "ERROR" => Ok(BadIndices::Fail),
            "IGNORE" => Ok(BadIndices::Ignore),
            other => Err(invalid_argument!(
                "bad_indices_policy '{other}' is none of '', 'DEFAULT', 'ERROR', 'IGNORE'"
            )),
        }
    }
}

/// Row numbers by coordinates; `None` where a row of coordinates is outside.
pub(crate) struct Rows {
    /// The row of each coordinate row.
    pub(crate) rows: Vec<i64>,
    /// Which coordinate rows they are for; `None` for all.
    pub(crate) kept: Option<Vec<i64>>,
}

/// The rows of a tensor with leading dimensions `dims` that `indices` name.
///
/// `what` ends the error text: `does not index into {what}`.
pub(crate) fn rows(
    par: &dyn Par,
    indices: &Tensor,
    dims: &[i64],
    policy: BadIndices,
    what: &dyn Fn() -> String,
) -> Result<Rows> {
    let extents = moves::extents(dims);
    if dims.is_empty() {
        let count = indices.shape().elements_in(0..indices.rank() - 1);
        return Ok(Rows {
            rows: filled(0, count)?,
            kept: None,
        });
    }
    let flat = match indices.dtype() {
        DType::I32 => flatten_coordinates(par, indices.slice::<i32>()?, &extents),
        _ => flatten_coordinates(par, &row_numbers(indices)?, &extents),
    };
    match flat {
        Ok(rows) => Ok(Rows { rows, kept: None }),
        Err(bad) if policy == BadIndices::Fail => {
            let wide = row_numbers(indices)?;
            Err(outside(indices.shape(), &wide, dims.len(), bad, &what()))
        }
        Err(_) => {
            let (mut rows, mut kept) = (Vec::new(), Vec::new());
            let wide = row_numbers(indices)?;
            for (position, row) in wide.chunks_exact(dims.len()).enumerate() {
                if let Ok(flat) = flatten_coordinates(&Serial, row, &extents) {
                    rows.extend(flat);
                    kept.push(position as i64);
                }
            }
            Ok(Rows {
                rows,
                kept: Some(kept),
            })
        }
    }
}

/// `indices[1,0] = [5, 2] does not index into …`.
#[cold]
fn outside(shape: &Shape, indices: &[i64], depth: usize, bad: BadIndex, what: &str) -> Status {
    let row = indices.get(bad.position * depth..(bad.position + 1) * depth);
    let row: Vec<String> = row.unwrap_or_default().iter().map(i64::to_string).collect();
    let outer = Shape::new(&shape[..shape.rank() - 1]).unwrap_or_default();
    let place = coordinates(&outer, bad.position);
    invalid_argument!(
        "indices{place} = [{}] does not index into {what}",
        row.join(", ")
    )
}
