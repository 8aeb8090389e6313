//! String tensors on disk: varint lengths · masked crc32c of the lengths · all bytes.
//!
//! The checksum of the lengths runs over each as `u32` (as `u64` from 2^32 on), not over the varints;
//! the entry's checksum goes on from there over the four checksum bytes and the strings.

use bytes::Bytes;
use tensorfleet_status::{Result, data_loss};
use tensorfleet_tensor::{Shape, TString, Tensor};

use crate::coding::{put_varint, take_u32, take_varint64};
use crate::crc;

/// What precedes the strings, and the running checksum behind it.
pub(super) fn encode_lengths(values: &[TString]) -> (Vec<u8>, u32) {
    let mut head = Vec::with_capacity(2 * values.len() + 4);
    let mut sum = 0;
    for value in values {
        put_varint(&mut head, value.len() as u64);
        sum = extend_by_length(sum, value.len() as u64);
    }
    let lengths_sum = crc::mask(sum).to_le_bytes();
    head.extend_from_slice(&lengths_sum);
    (head, crc::extend(sum, &lengths_sum))
}

/// Decodes a stored string tensor; gives its unmasked checksum too. Large strings share `stored`.
pub(super) fn decode(stored: &Bytes, shape: Shape) -> Result<(Tensor, u32)> {
    let count = shape.elements();
    // Every string takes a length byte at least.
    if count > stored.len() {
        return Err(data_loss!(
            "{} bytes cannot hold {count} strings",
            stored.len()
        ));
    }
    let mut rest = &stored[..];
    let mut lengths = Vec::with_capacity(count);
    let mut sum = 0;
    for index in 0..count {
        let Some(length) = take_varint64(&mut rest) else {
            return Err(data_loss!("length of string {index} is damaged"));
        };
        sum = extend_by_length(sum, length);
        lengths.push(length);
    }
    let Some(lengths_sum) = take_u32(&mut rest) else {
        return Err(data_loss!("no checksum behind the lengths of strings"));
    };
    if crc::mask(sum) != lengths_sum {
        return Err(data_loss!(
            "The length checksum does not match: expected {} but actual is {sum}",
            crc::unmask(lengths_sum)
        ));
    }
    sum = crc::extend(crc::extend(sum, &lengths_sum.to_le_bytes()), rest);
    let mut values = Vec::with_capacity(count);
    let mut at = stored.len() - rest.len();
    for length in lengths {
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| at.checked_add(length));
        match end.filter(|end| *end <= stored.len()) {
            Some(end) => {
                values.push(TString::part_of(stored, &stored[at..end]));
                at = end;
            }
            None => return Err(data_loss!("strings are longer than the entry")),
        }
    }
    if at != stored.len() {
        return Err(data_loss!(
            "{} bytes behind the last string",
            stored.len() - at
        ));
    }
    Ok((Tensor::from_vec(shape, values)?, sum))
}

fn extend_by_length(sum: u32, length: u64) -> u32 {
    match u32::try_from(length) {
        Ok(length) => crc::extend(sum, &length.to_le_bytes()),
        Err(_) => crc::extend(sum, &length.to_le_bytes()),
    }
}
