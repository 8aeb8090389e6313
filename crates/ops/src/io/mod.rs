//! Checkpoints and files.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "io",
    ops: &[],
    tables: &[],
};
