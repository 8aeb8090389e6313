//! Ops that make, move and cut tensors without computing with them.

mod constant;
mod identity;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "array",
    ops: &[&constant::OP, &identity::OP],
    tables: &[],
};
