//! Optimizer updates, dense and sparse.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "training",
    ops: &[],
    tables: &[],
};
