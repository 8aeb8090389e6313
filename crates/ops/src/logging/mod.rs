//! Ops that check, say or time something.

mod assert_op;
mod print;
mod timestamp;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "logging",
    ops: &[&assert_op::OP, &timestamp::OP],
    tables: &[&print::OPS],
};
