//! Summaries and event files.

mod encode;
mod histogram;
mod image;
mod merge;
mod scalar;
mod tensor_summary;
mod writer;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "summary",
    ops: &[&histogram::OP, &image::OP, &merge::OP, &scalar::OP],
    tables: &[&tensor_summary::OPS, &writer::OPS],
};
