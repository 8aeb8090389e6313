//! [`verify()`]: reads every byte of a checkpoint and reports all damage, not only the first.

use tensorfleet_status::{Result, Status, invalid_argument};

use super::assemble::plan;
use super::entry::Entry;
use super::list::is_slice_key;
use super::names::printable;
use super::pending::{check_sum, damaged, memory};
use super::reader::BundleReader;
use super::transfer::checksum;
use super::{strings, variants};
use crate::slice::TensorSlice;

/// Something wrong in a checkpoint.
#[derive(Clone, PartialEq, Debug)]
pub struct Damage {
    /// The tensor, or `None` if a part of the index cannot be read.
    pub key: Option<Vec<u8>>,
    /// What is wrong.
    pub status: Status,
}

/// The outcome of [`verify()`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VerifyReport {
    /// Tensors listed in the index.
    pub tensors: usize,
    /// Bytes of data whose checksums were right.
    pub bytes: u64,
    /// Everything that is wrong, in order of keys.
    pub damage: Vec<Damage>,
}

/// Checks every checksum of an open checkpoint, and that partitioned tensors are whole.
pub fn verify(reader: &BundleReader) -> VerifyReport {
    let mut report = VerifyReport::default();
    for item in reader.index.iter() {
        let (key, entry) = match item {
            Ok(item) => item,
            Err(status) => {
                report.damage.push(Damage { key: None, status });
                continue;
            }
        };
        if !is_slice_key(&key) {
            report.tensors += 1;
        }
        let checked = if entry.slices.is_empty() {
            verify_data(reader, &key, &entry)
        } else {
            verify_slices(reader, &key, &entry)
        };
        match checked {
            Ok(bytes) => report.bytes = report.bytes.saturating_add(bytes),
            Err(status) => report.damage.push(Damage {
                key: Some(key),
                status,
            }),
        }
    }
    report
}

/// Checks the bytes of one entry; gives their number.
fn verify_data(reader: &BundleReader, key: &[u8], entry: &Entry) -> Result<u64> {
    let (size, file) = reader.locate(key, entry)?;
    let read_error = |status: Status| damaged(key, &file, status.message());
    let sum = if entry.dtype.is_plain() {
        checksum(file.file.as_ref(), entry.offset, entry.size).map_err(read_error)?
    } else {
        let mut buffer = memory(size)?;
        if let Some(target) = buffer.bytes_mut() {
            file.file
                .read_at(entry.offset, target)
                .map_err(read_error)?;
        }
        let stored = buffer.to_shared();
        let decoded = match entry.dtype {
            tensorfleet_tensor::DType::String => strings::decode(&stored, entry.shape.clone()),
            _ => variants::decode(&stored, entry.shape.clone()),
        };
        decoded.map_err(read_error)?.1
    };
    check_sum(key, entry, &file, sum)?;
    Ok(entry.size)
}

/// Checks that the slices are there and make up the tensor. Their bytes are checked under their own keys.
fn verify_slices(reader: &BundleReader, key: &[u8], entry: &Entry) -> Result<u64> {
    for slice in &entry.slices {
        reader.slice_entry(key, entry, slice)?;
    }
    let all = TensorSlice::full(entry.shape.rank()).ranges(&entry.shape)?;
    match plan(&entry.slices, &entry.shape, &all)? {
        Some(_) => Ok(0),
        None => Err(invalid_argument!(
            "slices of {} do not cover shape {}",
            printable(key),
            entry.shape
        )),
    }
}
