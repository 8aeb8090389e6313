//! Checkpoints, files, and what records in files are made of.

mod checkpoint;
mod checkpoint_v1;
mod decode_compressed;
mod decode_csv;
mod example;
mod file_names;
mod files;
pub(crate) mod lines;
mod reader;
mod record_input;
mod remap;
pub(crate) mod tensor_proto;
pub(crate) mod wav;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "io",
    ops: &[
        &decode_compressed::OP,
        &decode_csv::OP,
        &example::json::OP,
        &example::parse_single_sequence::OP,
        &record_input::OP,
    ],
    tables: &[
        &checkpoint::OPS,
        &checkpoint_v1::OPS,
        &example::parse::OPS,
        &example::parse_sequence::OPS,
        &file_names::OPS,
        &files::OPS,
        &reader::create::OPS,
        &reader::verbs::OPS,
        &remap::OPS,
        &tensor_proto::OPS,
        &wav::OPS,
    ],
};

use tensorfleet_kernel::KernelCtx;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::TString;

/// The one text in input `index`.
fn text_input(ctx: &KernelCtx<'_>, index: usize) -> Result<String> {
    let tensor = ctx.input(index)?;
    if tensor.elements() != 1 {
        return Err(invalid_argument!(
            "input {index} should be a single string, got shape {}",
            tensor.shape()
        ));
    }
    text(&tensor.slice::<TString>()?[0])
}

/// A path or other text; TensorFlow takes any bytes, our file system wants UTF-8.
pub(crate) fn text(bytes: &TString) -> Result<String> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| invalid_argument!("'{}' is not UTF-8", String::from_utf8_lossy(bytes)))
}
