//! [`BundleReader`]: looks tensors up in a checkpoint and reads them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tensorfleet_status::{Result, data_loss, invalid_argument, not_found};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::assemble::{contiguous, plan};
use super::entry::Entry;
use super::index::Index;
use super::names::{data_file_name, printable};
use super::pending::{DataFile, Pending, Piece, Place, Target, damaged, memory};
use super::transfer::read_all;
use crate::fs::{FileSystem, for_path};
use crate::ordered_code::slice_key;
use crate::slice::{Ranges, TensorSlice};

/// An open checkpoint. Data files are opened when first needed.
pub struct BundleReader {
    fs: Arc<dyn FileSystem>,
    prefix: String,
    pub(super) index: Index,
    files: Mutex<HashMap<u32, Arc<DataFile>>>,
}

impl BundleReader {
    /// Opens the checkpoint with this prefix; reads its index.
    pub fn open(prefix: &str) -> Result<BundleReader> {
        BundleReader::open_in(for_path(prefix)?, prefix)
    }

    /// Like [`open`](Self::open), in this filesystem.
    pub fn open_in(fs: Arc<dyn FileSystem>, prefix: &str) -> Result<BundleReader> {
        let index = Index::open(fs.as_ref(), prefix)?;
        Ok(BundleReader {
            fs,
            prefix: prefix.to_owned(),
            index,
            files: Mutex::default(),
        })
    }

    /// The prefix it was opened with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How many data files the checkpoint has.
    pub fn num_shards(&self) -> u32 {
        self.index.num_shards
    }

    /// Whether there is a tensor with this name.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.index.get(key)?.is_some())
    }

    /// The dtype and full shape of a tensor.
    pub fn dtype_and_shape(&self, key: &[u8]) -> Result<(DType, Shape)> {
        let entry = self.entry(key)?;
        Ok((entry.dtype, entry.shape))
    }

    /// Reads a whole tensor, put together if it is stored in slices.
    pub fn read(&self, key: &[u8]) -> Result<Tensor> {
        let pending = self.prepare(key, None)?;
        single(read_pending(vec![pending])?)
    }

    /// Reads a part of a tensor, however it was cut when it was saved.
    pub fn read_slice(&self, key: &[u8], slice: &TensorSlice) -> Result<Tensor> {
        let pending = self.prepare(key, Some(slice))?;
        single(read_pending(vec![pending])?)
    }

    pub(super) fn entry(&self, key: &[u8]) -> Result<Entry> {
        match self.index.get(key)? {
            Some(entry) => Ok(entry),
            None => Err(not_found!("Key {} not found in checkpoint", printable(key))),
        }
    }

    /// Checks everything that can be checked before memory is taken, then takes it.
    pub(super) fn prepare(&self, key: &[u8], slice: Option<&TensorSlice>) -> Result<Pending> {
        let entry = self.entry(key)?;
        let full = TensorSlice::full(entry.shape.rank());
        let slice = slice.unwrap_or(&full);
        if entry.slices.is_empty() && slice.covers(&entry.shape) {
            return self.prepare_whole(key, entry);
        }
        self.prepare_slice(key, &entry, slice)
    }

    fn prepare_whole(&self, key: &[u8], entry: Entry) -> Result<Pending> {
        let (size, file) = self.locate(key, &entry)?;
        Ok(Pending {
            key: key.to_vec(),
            dtype: entry.dtype,
            shape: entry.shape.clone(),
            target: Target::new(entry.dtype, &entry.shape, size)?,
            pieces: vec![Piece {
                entry,
                file,
                place: Place::Direct(0..size),
            }],
        })
    }

    fn prepare_slice(&self, key: &[u8], entry: &Entry, slice: &TensorSlice) -> Result<Pending> {
        let Some(element) = entry.dtype.size() else {
            return Err(invalid_argument!("Dtype {} not supported.", entry.dtype));
        };
        let wanted = slice.ranges(&entry.shape)?;
        let whole = [TensorSlice::full(entry.shape.rank())];
        let stored = if entry.slices.is_empty() {
            &whole[..]
        } else {
            &entry.slices[..]
        };
        let Some(shares) = plan(stored, &entry.shape, &wanted)? else {
            return Err(invalid_argument!(
                "Does not have sufficient slices for partitioned tensor {} to restore in slice_spec: {slice}",
                printable(key)
            ));
        };
        let mut pieces = Vec::with_capacity(shares.len());
        let mut bytes_of_shard: HashMap<u32, u64> = HashMap::new();
        for share in shares {
            let Some(slice) = stored.get(share.index) else {
                continue;
            };
            let part_entry = if entry.slices.is_empty() {
                entry.clone()
            } else {
                self.slice_entry(key, entry, slice)?
            };
            let (size, file) = self.locate(key, &part_entry)?;
            // Distinct slices have distinct bytes: this bounds the memory by the files' real lengths.
            let bytes = bytes_of_shard.entry(part_entry.shard).or_default();
            *bytes = bytes.saturating_add(part_entry.size);
            if *bytes > file.len {
                return Err(damaged(key, &file, "slices are stored in the same bytes"));
            }
            let ranges = slice.ranges(&entry.shape)?;
            let run = contiguous(&share.part, &wanted).filter(|_| share.part == ranges);
            let place = match run {
                Some(run) => Place::Direct(run.start * element..run.end * element),
                None => Place::Copy {
                    buffer: memory(size)?,
                    stored: ranges,
                    part: share.part,
                    wanted: wanted.clone(),
                },
            };
            pieces.push(Piece {
                entry: part_entry,
                file,
                place,
            });
        }
        pieces.sort_by_key(|piece| match &piece.place {
            Place::Direct(run) => run.start,
            Place::Copy { .. } => 0,
        });
        let shape = Shape::new(&lengths(&wanted))?;
        let size = shape.elements().saturating_mul(element);
        Ok(Pending {
            key: key.to_vec(),
            dtype: entry.dtype,
            target: Target::new(entry.dtype, &shape, size)?,
            shape,
            pieces,
        })
    }

    /// The entry of a slice that the full entry lists, checked against it.
    pub(super) fn slice_entry(
        &self,
        key: &[u8],
        full: &Entry,
        slice: &TensorSlice,
    ) -> Result<Entry> {
        let Some(entry) = self.index.get(&slice_key(key, slice))? else {
            return Err(data_loss!(
                "{}: slice {slice} of {} is listed but not stored",
                self.prefix,
                printable(key)
            ));
        };
        let dims = lengths(&slice.ranges(&full.shape)?);
        if entry.dtype != full.dtype || entry.shape.dims() != dims || !entry.slices.is_empty() {
            return Err(data_loss!(
                "{}: slice {slice} of {} is {}{}, the tensor is {}{}",
                self.prefix,
                printable(key),
                entry.dtype,
                entry.shape,
                full.dtype,
                full.shape
            ));
        }
        Ok(entry)
    }

    /// The data file of an entry and its size there, once both are known to agree.
    pub(super) fn locate(&self, key: &[u8], entry: &Entry) -> Result<(usize, Arc<DataFile>)> {
        let file = self.data_file(entry.shard)?;
        if let Some(expected) = entry
            .plain_size()
            .filter(|expected| *expected != entry.size)
        {
            let reason = format!(
                "Invalid size in bundle entry: stored size {}; expected size {expected}",
                entry.size
            );
            return Err(damaged(key, &file, &reason));
        }
        let end = entry.offset.checked_add(entry.size);
        let size = usize::try_from(entry.size);
        match (end.filter(|end| *end <= file.len), size) {
            (Some(_), Ok(size)) => Ok((size, file)),
            _ => {
                let reason = format!(
                    "Read less bytes than requested: {} bytes at offset {} of {}",
                    entry.size, entry.offset, file.len
                );
                Err(damaged(key, &file, &reason))
            }
        }
    }

    fn data_file(&self, shard: u32) -> Result<Arc<DataFile>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(&shard) {
            return Ok(Arc::clone(file));
        }
        let path = data_file_name(&self.prefix, shard, self.index.num_shards);
        let file = self.fs.open(&path)?;
        let len = file.len()?;
        let file = Arc::new(DataFile { file, path, len });
        files.insert(shard, Arc::clone(&file));
        Ok(file)
    }
}

/// Reads prepared tensors, all of their bytes at once.
pub(super) fn read_pending(mut pending: Vec<Pending>) -> Result<Vec<Tensor>> {
    let mut requests = Vec::new();
    for one in &mut pending {
        one.requests(&mut requests)?;
    }
    let mut sums = read_all(requests).into_iter();
    let mut tensors = Vec::with_capacity(pending.len());
    for one in pending {
        let own = sums.by_ref().take(one.pieces.len()).collect();
        tensors.push(one.finish(own)?);
    }
    Ok(tensors)
}

fn single(tensors: Vec<Tensor>) -> Result<Tensor> {
    tensors
        .into_iter()
        .next()
        .ok_or_else(|| tensorfleet_status::internal!("one tensor was read (read_pending)"))
}

fn lengths(ranges: &Ranges) -> Vec<i64> {
    ranges.iter().map(|(_, length)| *length).collect()
}
