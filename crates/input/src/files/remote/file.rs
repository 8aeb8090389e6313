//! An object as a file: read in blocks, of which it holds the present one and the next, already on its way.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use object_store::{GetOptions, ObjectStoreExt};
use tensorfleet_checkpoint::fs::ReadFile;
use tensorfleet_status::{Result, data_loss, out_of_range};

use super::Location;
use super::error::status;
use super::net::Pending;

/// How much is asked for at a time: large enough that the way to the store and back costs little.
#[cfg(not(test))]
const BLOCK: u64 = 4 << 20;
#[cfg(test)]
const BLOCK: u64 = 1 << 10;

type Answer = object_store::Result<Bytes>;

struct RemoteFile {
    url: String,
    path: object_store::path::Path,
    store: std::sync::Arc<dyn object_store::ObjectStore>,
    len: u64,
    /// What tells this version of the object from another.
    version: Option<String>,
    blocks: Mutex<Blocks>,
}

/// The memory of an open file: two blocks.
#[derive(Default)]
struct Blocks {
    present: Option<(u64, Bytes)>,
    next: Option<(u64, Pending<Answer>)>,
}

/// Opens an object. Its length and version are those of this moment.
pub(super) fn open(location: &Location) -> Result<Box<dyn ReadFile>> {
    let (store, path) = (location.store.clone(), location.path()?);
    let (asked, at) = (store.clone(), path.clone());
    let meta = Pending::start(async move { asked.head(&at).await })?.wait()?;
    let meta = meta.map_err(|error| status(&location.url, "open", &error))?;
    Ok(Box::new(RemoteFile {
        url: location.url.clone(),
        path,
        store,
        len: meta.size,
        // A weak tag matches nothing.
        version: meta.e_tag.filter(|tag| !tag.starts_with("W/")),
        blocks: Mutex::default(),
    }))
}

impl RemoteFile {
    fn range(&self, block: u64) -> Range<u64> {
        let begin = block.saturating_mul(BLOCK).min(self.len);
        begin..begin.saturating_add(BLOCK).min(self.len)
    }

    fn ask(&self, block: u64) -> Result<Pending<Answer>> {
        let options = GetOptions::new()
            .with_range(Some(self.range(block)))
            .with_if_match(self.version.clone());
        let (store, path) = (self.store.clone(), self.path.clone());
        Pending::start(async move { store.get_opts(&path, options).await?.bytes().await })
    }

    /// A block, and the one behind it on its way.
    fn block(&self, block: u64) -> Result<Bytes> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((present, bytes)) = &blocks.present
            && *present == block
        {
            return Ok(bytes.clone());
        }
        let asked = match blocks.next.take() {
            Some((next, asked)) if next == block => asked,
            _ => self.ask(block)?,
        };
        // Let go before more comes in.
        blocks.present = None;
        if !self.range(block + 1).is_empty() {
            blocks.next = Some((block + 1, self.ask(block + 1)?));
        }
        let bytes = asked.wait()?;
        let bytes = bytes.map_err(|error| status(&self.url, "read", &error))?;
        let Range { start, end } = self.range(block);
        if bytes.len() as u64 != end - start {
            return Err(data_loss!(
                "{}: asked for bytes {start} to {end}, got {} bytes; is the object being written?",
                self.url,
                bytes.len()
            ));
        }
        blocks.present = Some((block, bytes.clone()));
        Ok(bytes)
    }
}

impl ReadFile for RemoteFile {
    fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let read = self.read_some_at(offset, target)?;
        if read < target.len() {
            return Err(out_of_range!(
                "{}: {} bytes wanted at {offset}, {read} are left",
                self.url,
                target.len()
            ));
        }
        Ok(())
    }

    fn read_some_at(&self, offset: u64, target: &mut [u8]) -> Result<usize> {
        let mut read = 0;
        while let Some(rest) = target.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(read as u64);
            if at >= self.len {
                break;
            }
            let bytes = self.block(at / BLOCK)?;
            let bytes = bytes.get((at % BLOCK) as usize..).unwrap_or_default();
            let count = bytes.len().min(rest.len());
            rest[..count].copy_from_slice(&bytes[..count]);
            read += count;
        }
        Ok(read)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }
}

#[cfg(test)]
mod tests;
