//! [`TableWriter`]: sorted entries in, a table's bytes out.

use tensorfleet_status::{Result, invalid_argument};

use super::block::BlockBuilder;
use super::format::{Handle, encode_block, encode_footer};

/// A block is closed when it has grown to this size.
const BLOCK_SIZE: usize = 256 << 10;

/// Every how many keys of a data block one is stored whole.
const RESTART_INTERVAL: usize = 16;

/// Builds a table in memory; an index of a million tensors is some tens of megabytes.
pub struct TableWriter {
    out: Vec<u8>,
    data: BlockBuilder,
    index: BlockBuilder,
    last_key: Option<Vec<u8>>,
    /// Handle of the block just closed: its index key is chosen when the next key is known.
    closed: Option<Handle>,
    block_size: usize,
}

impl Default for TableWriter {
    fn default() -> TableWriter {
        TableWriter::new()
    }
}

impl TableWriter {
    /// An empty table.
    pub fn new() -> TableWriter {
        TableWriter::with_block_size(BLOCK_SIZE)
    }

    /// An empty table with blocks of about this size.
    pub fn with_block_size(block_size: usize) -> TableWriter {
        TableWriter {
            out: Vec::new(),
            data: BlockBuilder::new(RESTART_INTERVAL),
            index: BlockBuilder::new(1),
            last_key: None,
            closed: None,
            block_size,
        }
    }

    /// Adds an entry. Keys must strictly ascend.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some(last) = &self.last_key {
            if last.as_slice() >= key {
                return Err(invalid_argument!(
                    "table keys must ascend: \"{}\" after \"{}\"",
                    key.escape_ascii(),
                    last.escape_ascii()
                ));
            }
            if let Some(handle) = self.closed.take() {
                let separator = shortest_separator(last, key);
                add_handle(&mut self.index, &separator, handle);
            }
        }
        self.data.add(key, value);
        let last = self.last_key.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        if self.data.size() >= self.block_size {
            self.close_block();
        }
        Ok(())
    }

    /// The bytes of the finished table.
    pub fn finish(mut self) -> Vec<u8> {
        self.close_block();
        let metaindex = append_block(&mut self.out, &BlockBuilder::new(1).finish());
        if let (Some(handle), Some(last)) = (self.closed.take(), &self.last_key) {
            add_handle(&mut self.index, &short_successor(last), handle);
        }
        let index = append_block(&mut self.out, &self.index.finish());
        encode_footer(metaindex, index, &mut self.out);
        self.out
    }

    fn close_block(&mut self) {
        if !self.data.is_empty() {
            let contents = self.data.finish();
            self.closed = Some(append_block(&mut self.out, &contents));
        }
    }
}

fn append_block(out: &mut Vec<u8>, contents: &[u8]) -> Handle {
    let handle = Handle {
        offset: out.len() as u64,
        size: contents.len() as u64,
    };
    encode_block(contents, out);
    handle
}

fn add_handle(index: &mut BlockBuilder, key: &[u8], handle: Handle) {
    let mut value = Vec::new();
    handle.encode(&mut value);
    index.add(key, &value);
}

/// A short key `k` with `start <= k < limit`.
fn shortest_separator(start: &[u8], limit: &[u8]) -> Vec<u8> {
    let common = start.iter().zip(limit).take_while(|(a, b)| a == b).count();
    if let (Some(&low), Some(&high)) = (start.get(common), limit.get(common))
        && low < u8::MAX
        && low + 1 < high
    {
        let mut key = start.get(..common).unwrap_or_default().to_vec();
        key.push(low + 1);
        return key;
    }
    start.to_vec()
}

/// A short key that is at least `key`.
fn short_successor(key: &[u8]) -> Vec<u8> {
    match key.iter().position(|&byte| byte != u8::MAX) {
        Some(at) => {
            let mut short = key.get(..=at).unwrap_or_default().to_vec();
            if let Some(last) = short.last_mut() {
                *last += 1;
            }
            short
        }
        None => key.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_lie_between_their_keys() {
        let check = |start: &str, limit: &str, expected: &str| {
            assert_eq!(
                shortest_separator(start.as_bytes(), limit.as_bytes()),
                expected.as_bytes()
            );
        };
        check("abcd", "abzz", "abd");
        check("abc", "abd", "abc");
        check("ab", "abc", "ab");
        check("w/Adam", "y", "x");
        assert_eq!(short_successor(b"w/Adam_1"), b"x");
        assert_eq!(short_successor(&[255, 255, 3, 4]), [255, 255, 4]);
        assert_eq!(short_successor(&[255]), [255]);
        assert_eq!(short_successor(b""), b"");
    }

    #[test]
    fn keys_out_of_order_are_refused() {
        let mut table = TableWriter::new();
        table.add(b"", b"1").unwrap();
        table.add(b"b", b"2").unwrap();
        assert!(table.add(b"b", b"3").is_err());
        assert!(table.add(b"a", b"3").is_err());
    }
}
