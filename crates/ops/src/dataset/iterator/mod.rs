//! The end of a pipeline: iterators, and ops that take all of a dataset at once.

pub(super) mod get_next;
pub(super) mod make;
pub(super) mod one_shot;
pub(super) mod refused;
pub(super) mod resource;
pub(super) mod string_handle;
pub(super) mod whole;

use tensorfleet_graph::{Exactness, Gradient, OpDef};

/// What ops on iterators have in common.
const ITERATOR: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::None("what comes out of an iterator is cut off from where it came"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};
