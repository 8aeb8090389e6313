//! Text.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "string",
    ops: &[],
    tables: &[],
};
