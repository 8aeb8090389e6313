//! Sparse tensors.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "sparse",
    ops: &[],
    tables: &[],
};
