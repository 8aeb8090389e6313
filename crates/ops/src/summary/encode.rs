//! What the summary ops share: tags and protos as tensors.
//!
//! A tag is whatever bytes a string tensor holds. TensorFlow writes them as they are, also where a message wants UTF-8.

use prost::Message;
use tensorfleet_checkpoint::coding::put_varint;
use tensorfleet_kernel::KernelCtx;
use tensorfleet_proto::summary::{Value, value};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{TString, Tensor};

/// A value of a summary and its tag.
pub(super) struct Entry {
    tag: Vec<u8>,
    /// Without the tag.
    value: Value,
}

impl Entry {
    pub(super) fn new(tag: impl Into<Vec<u8>>, value: value::Value) -> Entry {
        let value = Value {
            value: Some(value),
            ..Value::default()
        };
        Entry::of(tag, value)
    }

    /// Of a value whose own tag is not looked at.
    pub(super) fn of(tag: impl Into<Vec<u8>>, mut value: Value) -> Entry {
        value.tag.clear();
        let tag = tag.into();
        Entry { tag, value }
    }
}

/// Appends a field of bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The one tag in input `index`.
pub(super) fn tag(ctx: &KernelCtx<'_>, index: usize) -> Result<TString> {
    let tensor = ctx.input(index)?;
    if tensor.elements() != 1 {
        return Err(invalid_argument!(
            "tags must be scalar, got shape {}",
            tensor.shape()
        ));
    }
    tensor.to_scalar::<TString>()
}

/// A serialised summary of these values.
pub(super) fn serialized(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        let mut value = Vec::new();
        if !entry.tag.is_empty() {
            put_bytes(&mut value, 1, &entry.tag);
        }
        value.extend(entry.value.encode_to_vec());
        put_bytes(&mut out, 1, &value);
    }
    out
}

/// [`serialized`] as a scalar string.
pub(super) fn summary(entries: &[Entry]) -> Tensor {
    Tensor::string(serialized(entries))
}
