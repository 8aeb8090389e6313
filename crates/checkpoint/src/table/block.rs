//! One block: building it with shared key prefixes, and looking into it.

use std::cmp::Ordering;

use tensorfleet_status::{Result, Status, data_loss};

use crate::coding::{put_varint, take_bytes, take_u32, take_varint32};

/// Collects entries of one block.
pub(super) struct BlockBuilder {
    contents: Vec<u8>,
    restarts: Vec<u32>,
    interval: usize,
    /// Entries since the last restart point.
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// A builder that starts every `interval`-th key without sharing a prefix.
    pub(super) fn new(interval: usize) -> BlockBuilder {
        BlockBuilder {
            contents: Vec::new(),
            restarts: vec![0],
            interval,
            since_restart: 0,
            last_key: Vec::new(),
        }
    }

    /// Adds an entry; keys must ascend.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since_restart < self.interval {
            shared = key
                .iter()
                .zip(&self.last_key)
                .take_while(|(a, b)| a == b)
                .count();
        } else {
            self.restarts.push(self.contents.len() as u32);
            self.since_restart = 0;
        }
        let suffix = key.get(shared..).unwrap_or_default();
        put_varint(&mut self.contents, shared as u64);
        put_varint(&mut self.contents, suffix.len() as u64);
        put_varint(&mut self.contents, value.len() as u64);
        self.contents.extend_from_slice(suffix);
        self.contents.extend_from_slice(value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.since_restart += 1;
    }

    /// The size that [`finish`](Self::finish) would give now.
    pub(super) fn size(&self) -> usize {
        self.contents.len() + 4 * self.restarts.len() + 4
    }

    pub(super) fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// The finished contents; the builder starts anew.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let done = std::mem::replace(self, BlockBuilder::new(self.interval));
        let mut contents = done.contents;
        for restart in &done.restarts {
            contents.extend_from_slice(&restart.to_le_bytes());
        }
        contents.extend_from_slice(&(done.restarts.len() as u32).to_le_bytes());
        contents
    }
}

/// The parts of a finished block.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    entries: &'a [u8],
    restarts: &'a [u8],
}

/// Position in a block: the current key, and what follows it.
pub(super) struct BlockIter<'a> {
    rest: &'a [u8],
    key: Vec<u8>,
}

fn corrupt() -> Status {
    data_loss!("bad entry in block")
}

impl<'a> Block<'a> {
    /// Splits the contents into entries and restart points.
    pub(super) fn parse(contents: &'a [u8]) -> Result<Block<'a>> {
        let bad = || data_loss!("bad block contents");
        let (body, mut count) = contents
            .split_at_checked(contents.len().wrapping_sub(4))
            .ok_or_else(bad)?;
        let count = take_u32(&mut count).ok_or_else(bad)? as usize;
        let restarts_len = count.checked_mul(4).ok_or_else(bad)?;
        let split = body.len().checked_sub(restarts_len).ok_or_else(bad)?;
        let (entries, restarts) = body.split_at_checked(split).ok_or_else(bad)?;
        Ok(Block { entries, restarts })
    }

    /// An iterator standing before the first entry.
    pub(super) fn iter(&self) -> BlockIter<'a> {
        BlockIter {
            rest: self.entries,
            key: Vec::new(),
        }
    }

    /// The value of the first entry whose key is at least `target`, with its key in the iterator.
    pub(super) fn seek(&self, target: &[u8]) -> Result<Option<(BlockIter<'a>, &'a [u8])>> {
        // Last restart point with a key below the target.
        let (mut low, mut high) = (0, self.restarts.len() / 4);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let mut iter = self.at_restart(middle)?;
            iter.next_entry()?.ok_or_else(corrupt)?;
            match iter.key().cmp(target) {
                Ordering::Less => low = middle,
                _ => high = middle,
            }
        }
        let mut iter = if high == 0 {
            self.iter()
        } else {
            self.at_restart(low)?
        };
        while let Some(value) = iter.next_entry()? {
            if iter.key() >= target {
                return Ok(Some((iter, value)));
            }
        }
        Ok(None)
    }

    fn at_restart(&self, index: usize) -> Result<BlockIter<'a>> {
        let mut bytes = self.restarts.get(4 * index..).unwrap_or_default();
        let offset = take_u32(&mut bytes).ok_or_else(corrupt)? as usize;
        let rest = self.entries.get(offset..).ok_or_else(corrupt)?;
        Ok(BlockIter {
            rest,
            key: Vec::new(),
        })
    }
}

impl<'a> BlockIter<'a> {
    /// The key of the entry that [`next_entry`](Self::next_entry) gave last.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Steps to the next entry and gives its value; `None` at the end.
    pub(super) fn next_entry(&mut self) -> Result<Option<&'a [u8]>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let rest = &mut self.rest;
        let shared = take_varint32(rest).ok_or_else(corrupt)? as usize;
        let unshared = take_varint32(rest).ok_or_else(corrupt)? as usize;
        let value_len = take_varint32(rest).ok_or_else(corrupt)? as usize;
        let suffix = take_bytes(rest, unshared).ok_or_else(corrupt)?;
        let value = take_bytes(rest, value_len).ok_or_else(corrupt)?;
        if shared > self.key.len() {
            return Err(corrupt());
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        Ok(Some(value))
    }
}
