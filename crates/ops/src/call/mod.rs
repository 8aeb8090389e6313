//! Calls: arguments, results, functions, functional control flow.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "call",
    ops: &[],
    tables: &[],
};
