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

/// Of the examples.
const NUMBERS: &[(f64, f64)] = &[
    (1.0, 0.5),
    (-2.0, 0.25),
    (0.5, 3.0),
    (4.0, -1.5),
    (0.0, 2.0),
    (-0.75, 0.0),
    (2.5, 1.0),
    (-1.0, -1.0),
    (3.0, 0.0),
    (0.25, -0.5),
    (1.5, 2.5),
    (-3.5, 0.75),
];

/// The dimensions before the last `rank`, which are transformed; there must be so many.
fn leading(shape: &Shape, rank: usize) -> Result<usize> {
    ensure!(
        shape.rank() >= rank,
        invalid_argument,
        "Input must have rank of at least {rank} but got: {shape}"
    );
    Ok(shape.rank() - rank)
}
