//! Block handles, block trailers and the footer.

use std::borrow::Cow;

use tensorfleet_status::{Result, data_loss};

use crate::coding::{put_varint, take_u32, take_u64, take_varint64};
use crate::crc;

/// Last eight bytes of every table.
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Length of the footer: two padded handles and the magic number.
pub(super) const FOOTER_LEN: usize = 48;

/// Type byte and checksum behind every block.
pub(super) const TRAILER_LEN: usize = 5;

/// Snappy blocks larger than this are refused: our own and TensorFlow's blocks are 256 KiB.
const MAX_UNCOMPRESSED: usize = 64 << 20;

/// Where a block lies; the size excludes its trailer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Handle {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Handle {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, self.size);
    }

    pub(super) fn decode(input: &mut &[u8]) -> Result<Handle> {
        match (take_varint64(input), take_varint64(input)) {
            (Some(offset), Some(size)) => Ok(Handle { offset, size }),
            _ => Err(data_loss!("bad block handle")),
        }
    }
}

/// Appends the footer.
pub(super) fn encode_footer(metaindex: Handle, index: Handle, out: &mut Vec<u8>) {
    let start = out.len();
    metaindex.encode(out);
    index.encode(out);
    out.resize(start + FOOTER_LEN - 8, 0);
    out.extend_from_slice(&MAGIC.to_le_bytes());
}

/// Reads the index handle from the footer at the end of a file.
pub(super) fn decode_footer(file: &[u8]) -> Result<Handle> {
    let Some(start) = file.len().checked_sub(FOOTER_LEN) else {
        return Err(data_loss!("file is too short to be an sstable"));
    };
    let mut footer = file.get(start..).unwrap_or_default();
    let mut magic = footer.get(FOOTER_LEN - 8..).unwrap_or_default();
    if take_u64(&mut magic) != Some(MAGIC) {
        return Err(data_loss!("not an sstable (bad magic number)"));
    }
    Handle::decode(&mut footer)?;
    Handle::decode(&mut footer)
}

/// Appends a block's contents and its trailer (type 0: no compression).
pub(super) fn encode_block(contents: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(contents);
    out.push(0);
    let sum = crc::masked(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
}

/// The contents of the block at `handle`, checked and decompressed.
pub(super) fn read_block(file: &[u8], handle: Handle) -> Result<Cow<'_, [u8]>> {
    let (block, mut sum) =
        block_at(file, handle).ok_or_else(|| data_loss!("truncated block read"))?;
    if take_u32(&mut sum) != Some(crc::masked(block)) {
        return Err(data_loss!("block checksum mismatch"));
    }
    match block.split_last() {
        Some((0, contents)) => Ok(Cow::Borrowed(contents)),
        Some((1, packed)) => unpack(packed).map(Cow::Owned),
        _ => Err(data_loss!("bad block type")),
    }
}

/// Block with its type byte, and the four checksum bytes behind it.
fn block_at(file: &[u8], handle: Handle) -> Option<(&[u8], &[u8])> {
    let start = usize::try_from(handle.offset).ok()?;
    let size = usize::try_from(handle.size).ok()?;
    let end = start.checked_add(size)?.checked_add(TRAILER_LEN)?;
    file.get(start..end)?.split_at_checked(size + 1)
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>> {
    let corrupt = || data_loss!("corrupted compressed block contents");
    let len = snap::raw::decompress_len(packed).map_err(|_| corrupt())?;
    // Snappy emits at most 64 bytes for 3 of input, so longer claims are lies.
    if len > MAX_UNCOMPRESSED || len / 22 > packed.len() {
        return Err(corrupt());
    }
    snap::raw::Decoder::new()
        .decompress_vec(packed)
        .map_err(|_| corrupt())
}
