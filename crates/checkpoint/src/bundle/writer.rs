//! [`BundleWriter`]: writes the one data file and the index of an unmerged checkpoint.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::sync::Arc;

use tensorfleet_status::{Code, Result, Status, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use super::entry::Entry;
use super::index::encode_index;
use super::names::{data_file_name, index_file_name, printable};
use super::{strings, transfer, variants};
use crate::crc;
use crate::fs::{FileSystem, WriteFile, dir_name, for_path, temp_path};
use crate::ordered_code::slice_key;
use crate::slice::{DimList, TensorSlice};

/// Small tensors are gathered up to this size before they are written.
const GATHER: usize = 256 << 10;

/// From this size on a write of its own is cheaper than a copy into the gathering buffer.
const DIRECT: usize = 16 << 10;

/// Writes a checkpoint. Nothing can be seen under its prefix before [`finish`](Self::finish); a writer
/// dropped earlier removes what it wrote.
pub struct BundleWriter {
    fs: Arc<dyn FileSystem>,
    prefix: String,
    /// Where the data goes until it is whole.
    temp: String,
    data: Option<Box<dyn WriteFile>>,
    gathered: Vec<u8>,
    /// Length of the data, gathered bytes included.
    len: u64,
    entries: BTreeMap<Vec<u8>, Entry>,
    /// A failed write: offsets are no longer known.
    failed: Option<Status>,
    sync: bool,
}

impl BundleWriter {
    /// Starts a checkpoint, making its directory if needed; like in TensorFlow, what that is in must be there.
    pub fn create(prefix: &str) -> Result<BundleWriter> {
        BundleWriter::create_in(for_path(prefix)?, prefix)
    }

    /// Like [`create`](Self::create), in this filesystem.
    pub fn create_in(fs: Arc<dyn FileSystem>, prefix: &str) -> Result<BundleWriter> {
        match fs.create_dir(dir_name(prefix)) {
            // A file in the way is FAILED_PRECONDITION when the first file is written, as in TensorFlow.
            Err(status) if status.code() != Code::AlreadyExists => return Err(status),
            _ => {}
        }
        let path = data_file_name(prefix, 0, 1);
        let temp = if fs.has_atomic_rename() {
            temp_path(&path, "tempstate")
        } else {
            path
        };
        let data = Some(fs.create(&temp)?);
        Ok(BundleWriter {
            fs,
            prefix: prefix.to_owned(),
            temp,
            data,
            gathered: Vec::new(),
            len: 0,
            entries: BTreeMap::new(),
            failed: None,
            sync: false,
        })
    }

    /// Whether files are forced to the disk before they appear under their names. Off, as in
    /// TensorFlow: a checkpoint may then be lost if the machine (not just the process) dies.
    #[must_use]
    pub fn sync(mut self, sync: bool) -> BundleWriter {
        self.sync = sync;
        self
    }

    /// Adds a whole tensor.
    pub fn add(&mut self, key: &[u8], tensor: &Tensor) -> Result<()> {
        if key.is_empty() {
            return Err(invalid_argument!("a tensor in a checkpoint needs a name"));
        }
        if self.entries.contains_key(key) {
            return Err(invalid_argument!(
                "Adding duplicate key: {}",
                printable(key)
            ));
        }
        if let Some(status) = &self.failed {
            return Err(status.clone());
        }
        let offset = self.len;
        match self.write(tensor) {
            Ok(sum) => {
                let entry = Entry {
                    dtype: tensor.dtype(),
                    shape: tensor.shape().clone(),
                    shard: 0,
                    offset,
                    size: self.len - offset,
                    crc32c: crc::mask(sum),
                    slices: Vec::new(),
                };
                self.entries.insert(key.to_vec(), entry);
                Ok(())
            }
            Err(status) => {
                if self.len != offset {
                    self.failed = Some(status.clone());
                }
                Err(status)
            }
        }
    }

    /// Adds the part `slice` of a tensor of shape `full_dims`.
    pub fn add_slice(
        &mut self,
        key: &[u8],
        full_dims: &[i64],
        slice: &TensorSlice,
        tensor: &Tensor,
    ) -> Result<()> {
        let part: Vec<i64> = slice
            .ranges(full_dims)?
            .into_iter()
            .map(|(_, length)| length)
            .collect();
        if part != tensor.shape().dims() {
            return Err(invalid_argument!(
                "slice {slice} of shape {} does not match the shape of the tensor to save: {}",
                DimList(full_dims),
                tensor.shape()
            ));
        }
        if slice.covers(full_dims) {
            return self.add(key, tensor);
        }
        if key.is_empty() {
            return Err(invalid_argument!("a tensor in a checkpoint needs a name"));
        }
        if let Some(full) = self.entries.get(key) {
            check_same_tensor(key, full, tensor.dtype(), full_dims)?;
        }
        self.add(&slice_key(key, slice), tensor)
            .map_err(|status| status.append(format_args!(" ({slice})")))?;
        match self.entries.entry(key.to_vec()) {
            Slot::Occupied(mut full) => full.get_mut().slices.push(slice.clone()),
            Slot::Vacant(vacant) => {
                vacant.insert(Entry {
                    dtype: tensor.dtype(),
                    shape: Shape::new(full_dims)?,
                    shard: 0,
                    offset: 0,
                    size: 0,
                    crc32c: 0,
                    slices: vec![slice.clone()],
                });
            }
        }
        Ok(())
    }

    /// Writes the index and lets the checkpoint appear.
    pub fn finish(mut self) -> Result<()> {
        if let Some(status) = &self.failed {
            return Err(status.clone());
        }
        self.flush()?;
        if let Some(mut data) = self.data.take() {
            if self.sync {
                data.sync()?;
            }
            data.close()?;
        }
        let path = data_file_name(&self.prefix, 0, 1);
        if self.temp != path {
            self.fs.rename(&self.temp, &path)?;
        }
        // From here on there is nothing of ours to remove.
        self.temp.clear();
        let index = encode_index(1, &self.entries)?;
        self.fs.write_atomic(&index_file_name(&self.prefix), &index)
    }

    /// Writes the elements; gives their checksum.
    fn write(&mut self, tensor: &Tensor) -> Result<u32> {
        match tensor.dtype() {
            DType::String => {
                let values = tensor.slice::<TString>()?;
                let (head, mut sum) = strings::encode_lengths(values);
                self.append(0, &head)?;
                for value in values {
                    sum = self.append(sum, value)?;
                }
                Ok(sum)
            }
            DType::Variant => {
                let (stored, sum) = variants::encode(tensor)?;
                self.append(0, &stored)?;
                Ok(sum)
            }
            dtype => match tensor.bytes() {
                Some(bytes) => self.append(0, bytes),
                None => Err(unimplemented!("tensors of {dtype} cannot be saved")),
            },
        }
    }

    /// Appends bytes, small ones by way of the gathering buffer; extends the checksum by them.
    fn append(&mut self, sum: u32, bytes: &[u8]) -> Result<u32> {
        self.len += bytes.len() as u64;
        let direct = bytes.len() >= DIRECT;
        if direct || self.gathered.len() + bytes.len() > GATHER {
            self.flush()?;
        }
        match &mut self.data {
            Some(data) if direct => transfer::append(data.as_mut(), sum, bytes),
            _ => {
                self.gathered.extend_from_slice(bytes);
                Ok(crc::extend(sum, bytes))
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(data) = self.data.as_mut().filter(|_| !self.gathered.is_empty()) {
            data.append(&self.gathered)?;
            self.gathered.clear();
        }
        Ok(())
    }
}

impl Drop for BundleWriter {
    fn drop(&mut self) {
        self.data = None;
        if !self.temp.is_empty() {
            // Nobody is left to tell if this fails too.
            let _ = self.fs.delete_file(&self.temp);
        }
    }
}

/// Checks that a further slice belongs to the same tensor as the ones before.
fn check_same_tensor(key: &[u8], full: &Entry, dtype: DType, dims: &[i64]) -> Result<()> {
    if full.slices.is_empty() {
        return Err(invalid_argument!(
            "Adding duplicate key: {}",
            printable(key)
        ));
    }
    if full.dtype != dtype || full.shape.dims() != dims {
        return Err(invalid_argument!(
            "slices of {} disagree: {}{} and {dtype}{}",
            printable(key),
            full.dtype,
            full.shape,
            DimList(dims)
        ));
    }
    Ok(())
}
