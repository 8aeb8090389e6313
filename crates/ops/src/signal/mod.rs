//! Discrete Fourier transforms of the innermost dimensions.

mod complex;
mod gradients;
mod plans;
mod real;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "signal",
    ops: &[],
    tables: &[&complex::OPS, &real::OPS],
};

use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::Shape;

/// The dimensions before the last `rank`, which are transformed; there must be so many.
fn leading(shape: &Shape, rank: usize) -> Result<usize> {
    ensure!(
        shape.rank() >= rank,
        invalid_argument,
        "Input must have rank of at least {rank} but got: {shape}"
    );
    Ok(shape.rank() - rank)
}
