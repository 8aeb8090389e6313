//! Summaries and event files.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "summary",
    ops: &[],
    tables: &[],
};
