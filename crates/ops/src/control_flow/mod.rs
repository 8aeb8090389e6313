//! Switch, Merge and the frames of loops.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "control_flow",
    ops: &[],
    tables: &[],
};
