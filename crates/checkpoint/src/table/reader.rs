//! [`Table`]: look-ups and walks over a table's bytes.

use std::sync::OnceLock;

use bytes::Bytes;
use tensorfleet_status::{Result, data_loss};

use super::block::{Block, BlockIter};
use super::format::{Handle, decode_footer, read_block};

/// Keys of a walk may be this many times as long in all as the file: prefix sharing lets a hostile
/// file of megabytes spell out terabytes of keys.
const MAX_KEY_EXPANSION: usize = 64;

/// A table held in memory. Blocks are checked and decompressed once, when first needed, so that a
/// damaged block hides only its own keys.
pub struct Table {
    file: Bytes,
    blocks: Vec<Slot>,
}

/// One data block as the index block lists it.
struct Slot {
    /// At least the block's last key, below the next block's first.
    last: Vec<u8>,
    handle: Handle,
    contents: OnceLock<Result<Bytes>>,
}

impl Table {
    /// Opens the table in these bytes; reads footer and index block.
    pub fn open(file: Bytes) -> Result<Table> {
        let handle = decode_footer(&file)?;
        let contents = read_block(&file, handle)?;
        let mut iter = Block::parse(&contents)?.iter();
        let mut blocks = Vec::new();
        let mut budget = Budget::of(file.len());
        while let Some(mut value) = iter.next_entry()? {
            budget.spend(iter.key().len())?;
            blocks.push(Slot {
                last: iter.key().to_vec(),
                handle: Handle::decode(&mut value)?,
                contents: OnceLock::new(),
            });
        }
        drop(contents);
        Ok(Table { file, blocks })
    }

    /// The value of exactly this key.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let first = self
            .blocks
            .partition_point(|slot| slot.last.as_slice() < key);
        let Some(slot) = self.blocks.get(first) else {
            return Ok(None);
        };
        Ok(match self.block(slot)?.seek(key)? {
            Some((iter, value)) if iter.key() == key => Some(value),
            _ => None,
        })
    }

    /// Walks over all entries in file order.
    pub fn iter(&self) -> TableIter<'_> {
        TableIter {
            table: self,
            next_block: 0,
            block: None,
            budget: Budget::of(self.file.len()),
        }
    }

    fn block<'a>(&'a self, slot: &'a Slot) -> Result<Block<'a>> {
        let contents = slot.contents.get_or_init(|| {
            read_block(&self.file, slot.handle).map(|contents| match contents {
                std::borrow::Cow::Borrowed(slice) => self.file.slice_ref(slice),
                std::borrow::Cow::Owned(vec) => Bytes::from(vec),
            })
        });
        match contents {
            Ok(contents) => Block::parse(contents),
            Err(status) => Err(status.clone()),
        }
    }
}

/// Walks over a table; see [`Table::iter`].
pub struct TableIter<'a> {
    table: &'a Table,
    next_block: usize,
    block: Option<BlockIter<'a>>,
    budget: Budget,
}

impl<'a> TableIter<'a> {
    /// The next key and value; `None` at the end. A damaged block is an error once, the walk can go on
    /// with the block behind it.
    pub fn next_entry(&mut self) -> Result<Option<(&[u8], &'a [u8])>> {
        loop {
            if let Some(iter) = &mut self.block {
                match iter.next_entry() {
                    Ok(Some(value)) => {
                        if let Err(status) = self.budget.spend(iter.key().len()) {
                            self.block = None;
                            self.next_block = usize::MAX;
                            return Err(status);
                        }
                        // Borrowed anew because the borrow above may not outlive this loop's turn.
                        let key = self.block.as_ref().map_or(&[][..], BlockIter::key);
                        return Ok(Some((key, value)));
                    }
                    Ok(None) => self.block = None,
                    Err(status) => {
                        self.block = None;
                        return Err(status);
                    }
                }
            }
            let Some(slot) = self.table.blocks.get(self.next_block) else {
                return Ok(None);
            };
            self.next_block += 1;
            self.block = Some(self.table.block(slot)?.iter());
        }
    }
}

/// How many more key bytes a walk may spell out.
struct Budget(usize);

impl Budget {
    fn of(file_len: usize) -> Budget {
        Budget(
            file_len
                .saturating_mul(MAX_KEY_EXPANSION)
                .saturating_add(1 << 20),
        )
    }

    fn spend(&mut self, bytes: usize) -> Result<()> {
        match self.0.checked_sub(bytes) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err(data_loss!("keys of the table are absurdly long")),
        }
    }
}
