//! Queues, accumulators, stacks, arrays, lists, tables: state that tensors flow through.

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "data_flow",
    ops: &[],
    tables: &[],
};
