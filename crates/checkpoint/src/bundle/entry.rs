//! [`Entry`]: a checked `BundleEntryProto`.

use prost::Message;
use tensorfleet_proto::BundleEntryProto;
use tensorfleet_proto::TensorSliceProto;
use tensorfleet_proto::tensor_slice_proto::Extent as ExtentProto;
use tensorfleet_proto::tensor_slice_proto::extent::HasLengthHack;
use tensorfleet_status::{Result, data_loss};
use tensorfleet_tensor::{DType, Shape};

use super::names::printable;
use crate::slice::{Extent, TensorSlice};

/// Where a tensor, or a slice of one, is stored.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entry {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) shard: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Masked, as on disk.
    pub(super) crc32c: u32,
    /// The slices of a partitioned tensor; empty for what is stored whole.
    pub(super) slices: Vec<TensorSlice>,
}

impl Entry {
    /// Decodes and checks the entry of `key` in a bundle of `num_shards` data files.
    pub(super) fn decode(key: &[u8], value: &[u8], num_shards: u32) -> Result<Entry> {
        let bad = |what: &dyn std::fmt::Display| {
            data_loss!("checkpoint entry \"{}\": {what}", printable(key))
        };
        let proto = BundleEntryProto::decode(value).map_err(|error| bad(&error))?;
        let Some(dtype) = DType::from_number(proto.dtype) else {
            return Err(bad(&format_args!(
                "{} is not a known data type",
                proto.dtype
            )));
        };
        let shape = Shape::from_proto(&proto.shape.unwrap_or_default())
            .map_err(|status| bad(&status.message()))?;
        let shard = u32::try_from(proto.shard_id)
            .ok()
            .filter(|shard| *shard < num_shards);
        let Some(shard) = shard else {
            return Err(bad(&format_args!(
                "shard {} of {num_shards}",
                proto.shard_id
            )));
        };
        let (Ok(offset), Ok(size)) = (u64::try_from(proto.offset), u64::try_from(proto.size))
        else {
            return Err(bad(&format_args!(
                "offset {}, size {}",
                proto.offset, proto.size
            )));
        };
        let mut slices = Vec::with_capacity(proto.slices.len());
        for slice in &proto.slices {
            let slice = slice_from_proto(slice)
                .and_then(|slice| slice.ranges(&shape).map(|_| slice))
                .map_err(|status| bad(&status.message()))?;
            slices.push(slice);
        }
        Ok(Entry {
            dtype,
            shape,
            shard,
            offset,
            size,
            crc32c: proto.crc32c,
            slices,
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        BundleEntryProto {
            dtype: self.dtype.number(),
            shape: Some(self.shape.to_proto()),
            shard_id: self.shard as i32,
            offset: self.offset as i64,
            size: self.size as i64,
            crc32c: self.crc32c,
            slices: self.slices.iter().map(slice_to_proto).collect(),
        }
        .encode_to_vec()
    }

    /// Bytes that a tensor of a plain dtype takes; `None` for other dtypes and for overflow.
    pub(super) fn plain_size(&self) -> Option<u64> {
        (self.shape.elements() as u64).checked_mul(self.dtype.size()? as u64)
    }
}

pub(crate) fn slice_from_proto(proto: &TensorSliceProto) -> Result<TensorSlice> {
    let extents = proto
        .extent
        .iter()
        .map(|extent| Extent {
            start: extent.start,
            length: extent
                .has_length_hack
                .map(|HasLengthHack::Length(length)| length),
        })
        .collect();
    TensorSlice::new(extents)
}

pub(crate) fn slice_to_proto(slice: &TensorSlice) -> TensorSliceProto {
    TensorSliceProto {
        extent: slice
            .extents()
            .iter()
            .map(|extent| ExtentProto {
                start: extent.start,
                has_length_hack: extent.length.map(HasLengthHack::Length),
            })
            .collect(),
    }
}
