//! What the ops SaveV2 and RestoreV2 do, with their errors.

use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use super::names::printable;
use super::reader::{BundleReader, read_pending};
use super::writer::BundleWriter;
use crate::slice::{DimList, ShapeAndSlice};
use crate::v1;

/// Tensors are read in groups of about this many bytes, which bounds the memory that differently cut
/// slices take beside their tensors.
const GROUP_BYTES: usize = 1 << 30;

/// A tensor to save.
#[derive(Clone, Copy, Debug)]
pub struct SaveItem<'a> {
    /// The name in the checkpoint.
    pub name: &'a [u8],
    /// Empty for a whole tensor, else full shape and slice such as `5 2 0,3:-`.
    pub shape_and_slice: &'a str,
    /// The tensor, or the slice of it.
    pub tensor: &'a Tensor,
}

/// A tensor to restore.
#[derive(Clone, Copy, Debug)]
pub struct RestoreItem<'a> {
    /// The name in the checkpoint.
    pub name: &'a [u8],
    /// Empty for a whole tensor, else full shape and slice such as `5 2 0,3:-`.
    pub shape_and_slice: &'a str,
    /// The dtype it must have.
    pub dtype: DType,
}

/// Writes tensors into a checkpoint of one data file (SaveV2).
pub fn save(prefix: &str, items: &[SaveItem<'_>]) -> Result<()> {
    let mut writer = BundleWriter::create(prefix)?;
    for item in items {
        let Some(spec) = ShapeAndSlice::parse(item.shape_and_slice)? else {
            writer.add(item.name, item.tensor)?;
            continue;
        };
        if spec.dims()? != item.tensor.shape().dims() {
            return Err(invalid_argument!(
                "Slice in shape_and_slice specification does not match the shape of the tensor to  save: {}, tensor: {}",
                item.shape_and_slice,
                item.tensor.shape()
            ));
        }
        writer.add_slice(item.name, &spec.full_dims, &spec.slice, item.tensor)?;
    }
    writer.finish()
}

/// Reads tensors, or slices of them, from a checkpoint (RestoreV2), in order of the items.
pub fn restore(prefix: &str, items: &[RestoreItem<'_>]) -> Result<Vec<Tensor>> {
    let reader = match BundleReader::open(prefix) {
        Ok(reader) => reader,
        // The prefix may be a file of the format before.
        Err(status) if status.code() == Code::NotFound => return v1::restore(prefix, items),
        Err(status) => return Err(status),
    };
    check_dtypes(&reader, items)?;
    let mut tensors = Vec::with_capacity(items.len());
    let mut group = Vec::new();
    let mut group_bytes = 0usize;
    for item in items {
        let spec = ShapeAndSlice::parse(item.shape_and_slice)?;
        if let Some(spec) = &spec {
            let stored = reader.entry(item.name)?.shape;
            if stored.dims() != spec.full_dims {
                return Err(invalid_argument!(
                    "tensor_name = {}; shape in shape_and_slice spec {} does not match the shape stored in checkpoint: {stored}",
                    printable(item.name),
                    DimList(&spec.full_dims)
                ));
            }
        }
        let pending = reader.prepare(item.name, spec.as_ref().map(|spec| &spec.slice))?;
        let bytes = pending.pieces.iter().map(|piece| piece.entry.size as usize);
        group_bytes = bytes.fold(group_bytes, usize::saturating_add);
        group.push(pending);
        if group_bytes >= GROUP_BYTES {
            tensors.extend(read_pending(std::mem::take(&mut group))?);
            group_bytes = 0;
        }
    }
    tensors.extend(read_pending(group)?);
    Ok(tensors)
}

/// Finds the first missing key in order of names, else reports all wrong dtypes together.
fn check_dtypes(reader: &BundleReader, items: &[RestoreItem<'_>]) -> Result<()> {
    let mut sorted: Vec<&RestoreItem<'_>> = items.iter().collect();
    sorted.sort_by_key(|item| item.name);
    let mut errors = Vec::new();
    for item in sorted {
        let stored = reader.entry(item.name)?.dtype;
        if stored != item.dtype {
            errors.push(format!(
                "tensor_name = {}; expected dtype {} does not equal original dtype {stored}",
                printable(item.name),
                item.dtype
            ));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(invalid_argument!("{}", errors.join("\n")))
}
