//! The `.index` file: header and entries of a bundle.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use tensorfleet_proto::bundle_header_proto::Endianness;
use tensorfleet_proto::{BundleHeaderProto, VersionDef};
use tensorfleet_status::{Result, Status, data_loss, invalid_argument, unimplemented};

use super::entry::Entry;
use super::names::index_file_name;
use crate::fs::FileSystem;
use crate::table::{Table, TableIter, TableWriter};

/// Key of the header.
const HEADER_KEY: &[u8] = b"";

/// Version of the format that we write and read.
const VERSION: i32 = 1;

/// Largest index file that is opened. A million tensors take some 60 MB.
const MAX_INDEX_BYTES: u64 = 4 << 30;

/// An opened index.
pub(super) struct Index {
    table: Table,
    pub(super) num_shards: u32,
    /// Path, for errors.
    path: String,
}

impl Index {
    /// Reads and checks the header of `<prefix>.index`.
    pub(super) fn open(fs: &dyn FileSystem, prefix: &str) -> Result<Index> {
        let path = index_file_name(prefix);
        let bytes = fs.read(&path, MAX_INDEX_BYTES)?;
        let table = Table::open(Bytes::from(bytes)).map_err(|status| status.context(&path))?;
        let header = table.get(HEADER_KEY).and_then(|value| match value {
            Some(value) => BundleHeaderProto::decode(value).map_err(|error| data_loss!("{error}")),
            None => Err(data_loss!("no header")),
        });
        let header = header.map_err(|status| corrupt_header(&path, &status))?;
        let num_shards = check_header(&header).map_err(|status| status.context(&path))?;
        Ok(Index {
            table,
            num_shards,
            path,
        })
    }

    /// The entry of a tensor or of an encoded slice key.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Entry>> {
        if key == HEADER_KEY {
            return Ok(None);
        }
        let value = self
            .table
            .get(key)
            .map_err(|status| status.context(&self.path))?;
        value
            .map(|value| {
                Entry::decode(key, value, self.num_shards).map_err(|s| s.context(&self.path))
            })
            .transpose()
    }

    /// Walks over all entries, those of slices included, in order of keys.
    pub(super) fn iter(&self) -> IndexIter<'_> {
        IndexIter {
            index: self,
            iter: self.table.iter(),
        }
    }
}

/// Walk over an [`Index`].
pub(super) struct IndexIter<'a> {
    index: &'a Index,
    iter: TableIter<'a>,
}

impl Iterator for IndexIter<'_> {
    type Item = Result<(Vec<u8>, Entry)>;

    /// The next entry. After an error the walk goes on behind the damaged part.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let step = match self.iter.next_entry() {
                Ok(Some((HEADER_KEY, _))) => continue,
                Ok(Some((key, value))) => Entry::decode(key, value, self.index.num_shards)
                    .map(|entry| (key.to_vec(), entry)),
                Ok(None) => return None,
                Err(status) => Err(status),
            };
            return Some(step.map_err(|status| status.context(&self.index.path)));
        }
    }
}

/// The bytes of an index file.
pub(super) fn encode_index(num_shards: u32, entries: &BTreeMap<Vec<u8>, Entry>) -> Result<Vec<u8>> {
    let header = BundleHeaderProto {
        num_shards: num_shards as i32,
        endianness: Endianness::Little as i32,
        version: Some(VersionDef {
            producer: VERSION,
            ..VersionDef::default()
        }),
    };
    let mut table = TableWriter::new();
    table.add(HEADER_KEY, &header.encode_to_vec())?;
    for (key, entry) in entries {
        table.add(key, &entry.encode())?;
    }
    Ok(table.finish())
}

/// Checks version and byte order; gives the number of data files.
fn check_header(header: &BundleHeaderProto) -> Result<u32> {
    let version = header.version.clone().unwrap_or_default();
    if version.min_consumer > VERSION {
        return Err(invalid_argument!(
            "Checkpoint min consumer version {} above current version {VERSION}",
            version.min_consumer
        ));
    }
    if version.bad_consumers.contains(&VERSION) {
        return Err(invalid_argument!(
            "Checkpoint disallows consumer version {VERSION}"
        ));
    }
    if header.endianness != Endianness::Little as i32 {
        return Err(unimplemented!(
            "checkpoints of big-endian machines are not supported"
        ));
    }
    match u32::try_from(header.num_shards) {
        Ok(shards) if shards > 0 => Ok(shards),
        _ => Err(data_loss!("header counts {} data files", header.num_shards)),
    }
}

fn corrupt_header(path: &str, status: &Status) -> Status {
    data_loss!(
        "Unable to read file ({path}). Perhaps the file is corrupt or was produced by a newer \
         version of TensorFlow with format changes (failed to seek to header entry): {}",
        status.message()
    )
}
