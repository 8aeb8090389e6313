//! Variant tensors on disk: per element a varint length · `VariantTensorDataProto` · masked crc32c.
//!
//! The checksum runs on through all elements: each length as `u64`, the bytes, the checksum before.

use bytes::{Bytes, BytesMut};
use prost::encoding::encode_varint;
use tensorfleet_proto::TensorProto;
use tensorfleet_status::{Result, data_loss, internal};
use tensorfleet_tensor::{DType, Shape, Tensor};

use crate::coding::{put_varint, take_bytes, take_u32, take_varint64};
use crate::crc;

/// The stored form and its unmasked checksum.
pub(super) fn encode(tensor: &Tensor) -> Result<(Vec<u8>, u32)> {
    // The content of a tensor proto has all lengths first, then all bodies.
    let content = tensor.to_proto()?.tensor_content;
    let mut bodies = &content[..];
    let broken = || internal!("content of a variant tensor is not as long as its lengths say");
    let mut lengths = Vec::with_capacity(tensor.elements());
    for _ in 0..tensor.elements() {
        lengths.push(take_varint64(&mut bodies).ok_or_else(broken)?);
    }
    let mut out = Vec::with_capacity(content.len() + 4 * lengths.len());
    let mut sum = 0;
    for length in lengths {
        let body = take_bytes(&mut bodies, length as usize).ok_or_else(broken)?;
        put_varint(&mut out, length);
        out.extend_from_slice(body);
        sum = crc::extend(crc::extend(sum, &length.to_le_bytes()), body);
        let stored_sum = crc::mask(sum).to_le_bytes();
        out.extend_from_slice(&stored_sum);
        sum = crc::extend(sum, &stored_sum);
    }
    Ok((out, sum))
}

/// Decodes a stored variant tensor; gives its unmasked checksum too.
pub(super) fn decode(stored: &Bytes, shape: Shape) -> Result<(Tensor, u32)> {
    let count = shape.elements();
    if count > stored.len() {
        return Err(data_loss!(
            "{} bytes cannot hold {count} variants",
            stored.len()
        ));
    }
    let mut rest = &stored[..];
    let mut lengths = BytesMut::new();
    let mut bodies = BytesMut::new();
    let mut sum = 0;
    for index in 0..count {
        let damaged = || data_loss!("variant {index} is damaged");
        let length = take_varint64(&mut rest).ok_or_else(damaged)?;
        let body = usize::try_from(length)
            .ok()
            .and_then(|length| take_bytes(&mut rest, length));
        let body = body.ok_or_else(damaged)?;
        let stored_sum = take_u32(&mut rest).ok_or_else(damaged)?;
        sum = crc::extend(crc::extend(sum, &length.to_le_bytes()), body);
        if crc::mask(sum) != stored_sum {
            return Err(data_loss!(
                "The checksum of variant {index} does not match: expected {} but actual is {sum}",
                crc::unmask(stored_sum)
            ));
        }
        sum = crc::extend(sum, &stored_sum.to_le_bytes());
        encode_varint(length, &mut lengths);
        bodies.extend_from_slice(body);
    }
    if !rest.is_empty() {
        return Err(data_loss!("{} bytes behind the last variant", rest.len()));
    }
    lengths.unsplit(bodies);
    let proto = TensorProto {
        dtype: DType::Variant.number(),
        tensor_shape: Some(shape.to_proto()),
        tensor_content: lengths.freeze(),
        ..TensorProto::default()
    };
    let tensor = Tensor::from_proto(&proto).map_err(|status| data_loss!("{}", status.message()))?;
    Ok((tensor, sum))
}
