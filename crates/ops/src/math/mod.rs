//! Arithmetic, comparisons, reductions, matrix products, segments.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "math",
    ops: &[],
    tables: &[],
};
