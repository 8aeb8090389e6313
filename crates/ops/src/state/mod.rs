//! Variables by reference and by resource, scatter updates.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "state",
    ops: &[],
    tables: &[],
};
