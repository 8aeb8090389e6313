//! Checkpoints and files.

mod checkpoint;
mod file_names;
mod files;
mod tensor_proto;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "io",
    ops: &[],
    tables: &[
        &checkpoint::OPS,
        &file_names::OPS,
        &files::OPS,
        &tensor_proto::OPS,
    ],
};

use tensorfleet_kernel::KernelCtx;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::Bytes;

/// The one text in input `index`.
fn text_input(ctx: &KernelCtx<'_>, index: usize) -> Result<String> {
    let tensor = ctx.input(index)?;
    if tensor.elements() != 1 {
        return Err(invalid_argument!(
            "input {index} should be a single string, got shape {}",
            tensor.shape()
        ));
    }
    text(&tensor.slice::<Bytes>()?[0])
}

/// A path or other text; TensorFlow takes any bytes, our file system wants UTF-8.
fn text(bytes: &Bytes) -> Result<String> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| invalid_argument!("'{}' is not UTF-8", String::from_utf8_lossy(bytes)))
}
