//! Summaries and event files.

mod audio;
mod encode;
mod histogram;
mod image;
mod merge;
mod scalar;
mod tensor_summary;
mod write_media;
mod writer;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "summary",
    ops: &[&histogram::OP, &image::OP, &merge::OP, &scalar::OP],
    tables: &[
        &audio::OPS,
        &tensor_summary::OPS,
        &write_media::OPS,
        &writer::OPS,
    ],
};
