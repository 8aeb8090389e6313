//! Round trips, and damaged tables.

use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tensorfleet_status::Code;

use super::block::{Block, BlockBuilder};
use super::format::{Handle, decode_footer, encode_block, encode_footer, read_block};
use super::{Table, TableWriter};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn write(entries: &Entries, block_size: usize) -> Vec<u8> {
    let mut table = TableWriter::with_block_size(block_size);
    for (key, value) in entries {
        table.add(key, value).unwrap();
    }
    table.finish()
}

/// Everything a walk gives; stops at the second error so that hostile tables end.
fn walk(table: &Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut iter = table.iter();
    let mut errors = 0;
    loop {
        match iter.next_entry() {
            Ok(Some((key, value))) => found.push((key.to_vec(), value.to_vec())),
            Ok(None) => return found,
            Err(_) if errors == 0 => errors += 1,
            Err(_) => return found,
        }
    }
}

fn entries() -> impl Strategy<Value = Entries> {
    // Two bits a byte: keys with long common prefixes and with the edge bytes 0 and 255.
    let key = proptest::collection::vec(any::<u8>(), 0..6).prop_map(|bits| {
        bits.iter()
            .map(|b| [0, 255, b'a', *b][usize::from(b % 4)])
            .collect()
    });
    let value = proptest::collection::vec(any::<u8>(), 0..40);
    proptest::collection::btree_map(key, value, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn sorted_entries_round_trip(entries in entries(), block_size in 1usize..1000) {
        let table = Table::open(Bytes::from(write(&entries, block_size))).unwrap();
        prop_assert_eq!(walk(&table), entries.clone().into_iter().collect::<Vec<_>>());
        for (key, value) in &entries {
            prop_assert_eq!(table.get(key).unwrap(), Some(value.as_slice()));
            let mut absent = key.clone();
            absent.push(1);
            if !entries.contains_key(&absent) {
                prop_assert_eq!(table.get(&absent).unwrap(), None);
            }
        }
    }

    #[test]
    fn mutated_bytes_never_panic(
        entries in entries(),
        block_size in 1usize..1000,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        mend in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = write(&entries, block_size);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if mend {
            // Right checksums let the damage reach the block decoder.
            mend_checksums(&mut bytes);
        }
        for bytes in [bytes[..cut.index(bytes.len())].to_vec(), bytes] {
            if let Ok(table) = Table::open(Bytes::from(bytes)) {
                walk(&table);
                for key in entries.keys() {
                    let _ = table.get(key);
                }
            }
        }
    }
}

/// Recomputes the checksums of all blocks that the footer and the index block lead to.
fn mend_checksums(bytes: &mut [u8]) {
    fn mend(bytes: &mut [u8], handle: Handle) -> Option<()> {
        let start = usize::try_from(handle.offset).ok()?;
        let end = start
            .checked_add(usize::try_from(handle.size).ok()?)?
            .checked_add(1)?;
        let sum = crate::crc::masked(bytes.get(start..end)?);
        bytes
            .get_mut(end..end.checked_add(4)?)?
            .copy_from_slice(&sum.to_le_bytes());
        Some(())
    }
    let Ok(index) = decode_footer(bytes) else {
        return;
    };
    mend(bytes, index);
    let Ok(contents) = read_block(bytes, index).map(std::borrow::Cow::into_owned) else {
        return;
    };
    let Ok(block) = Block::parse(&contents) else {
        return;
    };
    let mut iter = block.iter();
    while let Ok(Some(mut value)) = iter.next_entry() {
        if let Ok(handle) = Handle::decode(&mut value) {
            mend(bytes, handle);
        }
    }
}

#[test]
fn empty_table_opens() {
    let table = Table::open(Bytes::from(TableWriter::new().finish())).unwrap();
    assert!(walk(&table).is_empty());
    assert_eq!(table.get(b"x").unwrap(), None);
}

#[test]
fn damaged_block_hides_only_its_own_keys() {
    let entries: Entries = (0..100u8).map(|i| (vec![i], vec![i; 50])).collect();
    let mut bytes = write(&entries, 500);
    bytes[10] ^= 1;
    let table = Table::open(Bytes::from(bytes)).unwrap();
    let error = table.get(&[1]).unwrap_err();
    assert_eq!(error.code(), Code::DataLoss);
    assert_eq!(error.message(), "block checksum mismatch");
    assert_eq!(table.get(&[99]).unwrap(), Some(&[99u8; 50][..]));
    assert!(walk(&table).len() > 80);
}

#[test]
fn files_that_are_no_tables_are_refused() {
    let message = |bytes: Vec<u8>| {
        Table::open(Bytes::from(bytes))
            .err()
            .unwrap()
            .message()
            .to_owned()
    };
    assert_eq!(message(vec![]), "file is too short to be an sstable");
    assert_eq!(
        message(vec![b'x'; 100]),
        "not an sstable (bad magic number)"
    );
    let far = Handle {
        offset: u64::MAX - 3,
        size: u64::MAX / 2,
    };
    let mut bytes = Vec::new();
    encode_footer(far, far, &mut bytes);
    assert_eq!(message(bytes), "truncated block read");
}

/// A table with this one data block, already encoded with its trailer.
fn table_of(mut file: Vec<u8>, last: &[u8]) -> Table {
    let data = Handle {
        offset: 0,
        size: file.len() as u64 - 5,
    };
    let mut index = BlockBuilder::new(1);
    let mut value = Vec::new();
    data.encode(&mut value);
    index.add(last, &value);
    let contents = index.finish();
    let handle = Handle {
        offset: file.len() as u64,
        size: contents.len() as u64,
    };
    encode_block(&contents, &mut file);
    encode_footer(handle, handle, &mut file);
    Table::open(Bytes::from(file)).unwrap()
}

#[test]
fn snappy_blocks_are_read() {
    let mut plain = BlockBuilder::new(16);
    for i in 0..50u8 {
        plain.add(&[b'k', i], &[7; 30]);
    }
    let mut file = snap::raw::Encoder::new()
        .compress_vec(&plain.finish())
        .unwrap();
    file.push(1);
    let sum = crate::crc::masked(&file);
    file.extend_from_slice(&sum.to_le_bytes());
    let table = table_of(file, b"l");
    assert_eq!(walk(&table).len(), 50);
    assert_eq!(table.get(&[b'k', 33]).unwrap(), Some(&[7u8; 30][..]));
}

#[test]
fn absurd_key_expansion_is_refused() {
    // A block of some 14 KB whose 1,000 keys are 4 MB in all.
    let mut block = BlockBuilder::new(usize::MAX);
    for i in 0..1000u32 {
        let mut key = vec![b'a'; 4000];
        key.extend_from_slice(&i.to_be_bytes());
        block.add(&key, b"");
    }
    let mut file = Vec::new();
    encode_block(&block.finish(), &mut file);
    let table = table_of(file, b"b");
    let mut iter = table.iter();
    let mut seen = 0;
    let error = loop {
        match iter.next_entry() {
            Ok(Some(_)) => seen += 1,
            Ok(None) => panic!("the walk must fail"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Code::DataLoss);
    assert!(seen < 700, "{seen} keys");
    assert!(iter.next_entry().unwrap().is_none(), "the walk is over");
}
