//! Pipelines: datasets, iterators over them, and the functions that they call.
//!
//! | module | is |
//! |---|---|
//! | `value` | a dataset as a variant: a description that never changes, and makes iterators |
//! | `home` | where the functions of an iterator run, which outlives the step that made it |
//! | `call` | functions and calls of them that are under way |
//! | `task` | work that goes on when it is woken, and holds no thread until then |
//! | [`source`], [`transform`], [`iterator`] | the ops, from the beginning of a pipeline to its end |
//!
//! All that moves is polled: an iterator that waits for a function, or for another that makes elements ahead, is woken and
//! asked again. Nothing here blocks a thread but the reading of files.

mod call;
mod handles;
mod home;
mod iterator;
mod kernel;
mod once;
mod source;
mod task;
mod transform;
mod value;

use tensorfleet_graph::OpDef;

use crate::Family;

/// Ops that graphs may hold but no step may run.
pub(crate) static REFUSED: &[OpDef] = &iterator::refused::OPS;

pub(crate) static FAMILY: Family = Family {
    name: "dataset",
    ops: &[
        &iterator::one_shot::OP,
        &source::generator::OP,
        &source::range::OP,
        &source::sparse::OP,
        &transform::ahead::OP,
        &transform::directed::OP,
        &transform::flat_map::OP,
        &transform::group::OP,
        &transform::ignore_errors::OP,
        &transform::repeat::OP,
        &transform::scan::OP,
        &transform::unbatch::OP,
        &transform::unique::OP,
    ],
    tables: &[
        &iterator::get_next::OPS,
        &iterator::make::OPS,
        &iterator::string_handle::OPS,
        &iterator::whole::OPS,
        &source::files::OPS,
        &source::tensors::OPS,
        &transform::batch::OPS,
        &transform::cache::OPS,
        &transform::combine::OPS,
        &transform::count::OPS,
        &transform::filter::OPS,
        &transform::interleave::OPS,
        &transform::map::OPS,
        &transform::padded::OPS,
        &transform::pass::OPS,
        &transform::rebatch::OPS,
        &transform::seeds::OPS,
        &transform::shuffle::OPS,
        &transform::window::OPS,
    ],
};
