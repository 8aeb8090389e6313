//! What a checkpoint holds, without reading its data.

use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Shape};

use super::entry::Entry;
use super::reader::BundleReader;
use crate::ordered_code::slice_key_name;
use crate::slice::TensorSlice;

/// A tensor of a checkpoint.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedTensor {
    /// The name.
    pub key: Vec<u8>,
    /// The element type.
    pub dtype: DType,
    /// The full shape.
    pub shape: Shape,
    /// Number of the data file; that of the first slice for a partitioned tensor.
    pub shard: u32,
    /// Offset in the data file; 0 for a partitioned tensor.
    pub offset: u64,
    /// Bytes stored, of all slices together.
    pub size: u64,
    /// The masked checksum; 0 for a partitioned tensor.
    pub crc32c: u32,
    /// The slices of a partitioned tensor, else empty.
    pub slices: Vec<ListedSlice>,
}

/// A stored slice of a partitioned tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedSlice {
    /// Which part of the tensor.
    pub slice: TensorSlice,
    /// Number of the data file.
    pub shard: u32,
    /// Offset in the data file.
    pub offset: u64,
    /// Bytes stored.
    pub size: u64,
    /// The masked checksum.
    pub crc32c: u32,
}

impl ListedTensor {
    /// The name as text.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }
}

impl BundleReader {
    /// Every tensor in order of names.
    pub fn list(&self) -> Result<Vec<ListedTensor>> {
        let mut tensors = Vec::new();
        for item in self.index.iter() {
            let (key, entry) = item?;
            if !is_slice_key(&key) {
                tensors.push(self.listed(key, &entry)?);
            }
        }
        Ok(tensors)
    }

    fn listed(&self, key: Vec<u8>, entry: &Entry) -> Result<ListedTensor> {
        let mut slices = Vec::with_capacity(entry.slices.len());
        for slice in &entry.slices {
            let stored = self.slice_entry(&key, entry, slice)?;
            slices.push(ListedSlice {
                slice: slice.clone(),
                shard: stored.shard,
                offset: stored.offset,
                size: stored.size,
                crc32c: stored.crc32c,
            });
        }
        let in_slices = slices
            .iter()
            .fold(0u64, |sum, slice| sum.saturating_add(slice.size));
        Ok(ListedTensor {
            dtype: entry.dtype,
            shape: entry.shape.clone(),
            shard: slices.first().map_or(entry.shard, |slice| slice.shard),
            offset: entry.offset,
            size: entry.size.saturating_add(in_slices),
            crc32c: entry.crc32c,
            slices,
            key,
        })
    }
}

/// Whether a key was made by [`slice_key`](crate::ordered_code::slice_key): no tensor name begins with a zero byte.
pub(super) fn is_slice_key(key: &[u8]) -> bool {
    slice_key_name(key).is_some()
}
