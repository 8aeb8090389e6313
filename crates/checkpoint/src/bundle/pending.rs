//! [`Pending`]: a tensor whose place in memory is taken and whose bytes are still in files.

use std::ops::Range;
use std::sync::Arc;

use tensorfleet_status::{Result, data_loss, internal, resource_exhausted};
use tensorfleet_tensor::{Buffer, DType, Shape, Tensor};

use super::assemble::copy_part;
use super::entry::Entry;
use super::names::printable;
use super::transfer::ReadRequest;
use super::{strings, variants};
use crate::crc;
use crate::fs::ReadFile;
use crate::slice::Ranges;

/// A data file with its name for errors.
pub(super) struct DataFile {
    pub(super) file: Box<dyn ReadFile>,
    pub(super) path: String,
    pub(super) len: u64,
}

/// A tensor to be read.
pub(super) struct Pending {
    pub(super) key: Vec<u8>,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) target: Target,
    pub(super) pieces: Vec<Piece>,
}

/// Where the bytes go.
pub(super) enum Target {
    /// Straight into the tensor.
    Tensor(Tensor),
    /// Beside it, because they must be looked at first: bools, strings, variants.
    Buffer(Buffer),
}

/// A stored entry that gives (a part of) the tensor.
pub(super) struct Piece {
    pub(super) entry: Entry,
    pub(super) file: Arc<DataFile>,
    pub(super) place: Place,
}

/// Where the bytes of an entry belong.
pub(super) enum Place {
    /// A run of the target, in bytes. Direct pieces come in order of their runs.
    Direct(Range<usize>),
    /// A part of it is copied to a part of the target.
    Copy {
        buffer: Buffer,
        stored: Ranges,
        part: Ranges,
        wanted: Ranges,
    },
}

impl Target {
    /// Memory for `size` bytes of a tensor.
    pub(super) fn new(dtype: DType, shape: &Shape, size: usize) -> Result<Target> {
        if dtype.is_plain() && dtype != DType::Bool {
            return Ok(Target::Tensor(Tensor::new(dtype, shape.clone())?));
        }
        memory(size).map(Target::Buffer)
    }

    fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        match self {
            Target::Tensor(tensor) => tensor.bytes_mut(),
            Target::Buffer(buffer) => buffer.bytes_mut(),
        }
        .ok_or_else(|| internal!("memory of a restored tensor is shared (fresh target)"))
    }
}

/// Memory for what a file is said to hold.
pub(super) fn memory(size: usize) -> Result<Buffer> {
    Buffer::try_new(size)
        .ok_or_else(|| resource_exhausted!("there is no memory for {size} bytes of a checkpoint"))
}

impl Pending {
    /// What must be read, in order of the pieces.
    pub(super) fn requests<'a>(&'a mut self, out: &mut Vec<ReadRequest<'a>>) -> Result<()> {
        let mut rest = self.target.bytes_mut()?;
        let mut taken = 0;
        for piece in &mut self.pieces {
            let target = match &mut piece.place {
                Place::Direct(run) => {
                    let skip = run.start.checked_sub(taken);
                    let cut = skip.and_then(|skip| {
                        rest.split_at_mut_checked(skip)?
                            .1
                            .split_at_mut_checked(run.len())
                    });
                    let Some((target, tail)) = cut else {
                        return Err(internal!("runs of slices are out of order (direct pieces)"));
                    };
                    rest = tail;
                    taken = run.end;
                    target
                }
                Place::Copy { buffer, .. } => buffer.bytes_mut().ok_or_else(|| {
                    internal!("memory of a stored slice is shared (fresh buffer)")
                })?,
            };
            out.push(ReadRequest {
                file: piece.file.file.as_ref(),
                offset: piece.entry.offset,
                target,
            });
        }
        Ok(())
    }

    /// Checks the checksums of the pieces and makes the tensor.
    pub(super) fn finish(mut self, sums: Vec<Result<u32>>) -> Result<Tensor> {
        for (piece, sum) in self.pieces.iter().zip(sums) {
            let sum = sum.map_err(|status| piece.damaged(&self.key, status.message()))?;
            if self.dtype.is_plain() {
                piece.check(&self.key, sum)?;
            }
        }
        if let Some(element) = self.dtype.size() {
            for piece in &self.pieces {
                if let Place::Copy {
                    buffer,
                    stored,
                    part,
                    wanted,
                } = &piece.place
                {
                    copy_part(
                        part,
                        buffer.bytes(),
                        stored,
                        self.target.bytes_mut()?,
                        wanted,
                        element,
                    )?;
                }
            }
        }
        match (self.target, self.pieces.first()) {
            (Target::Tensor(tensor), _) => Ok(tensor),
            (Target::Buffer(buffer), Some(piece)) if !self.dtype.is_plain() => {
                let stored = buffer.to_shared();
                let decoded = match self.dtype {
                    DType::String => strings::decode(&stored, self.shape),
                    _ => variants::decode(&stored, self.shape),
                };
                let (tensor, sum) =
                    decoded.map_err(|status| piece.damaged(&self.key, status.message()))?;
                piece.check(&self.key, sum)?;
                Ok(tensor)
            }
            (Target::Buffer(buffer), _) => {
                Tensor::from_bytes(self.dtype, self.shape, buffer.to_shared())
            }
        }
    }
}

impl Piece {
    /// Compares the checksum of what was read with the stored one.
    pub(super) fn check(&self, key: &[u8], sum: u32) -> Result<()> {
        check_sum(key, &self.entry, &self.file, sum)
    }

    fn damaged(&self, key: &[u8], reason: &str) -> tensorfleet_status::Status {
        damaged(key, &self.file, reason)
    }
}

/// DATA_LOSS if the checksum of what was read is not the entry's.
pub(super) fn check_sum(key: &[u8], entry: &Entry, file: &DataFile, sum: u32) -> Result<()> {
    if crc::mask(sum) == entry.crc32c {
        return Ok(());
    }
    let reason = format!(
        "{} bytes at offset {}: Checksum does not match: stored {} vs. calculated on the restored bytes {sum}",
        entry.size,
        entry.offset,
        crc::unmask(entry.crc32c)
    );
    Err(damaged(key, file, &reason))
}

/// DATA_LOSS naming key and file.
pub(super) fn damaged(key: &[u8], file: &DataFile, reason: &str) -> tensorfleet_status::Status {
    data_loss!(
        "TensorBundle {} (key \"{}\"): {reason}",
        file.path,
        printable(key)
    )
}
