//! File names of a checkpoint.

use std::borrow::Cow;

use crate::ordered_code::slice_key_name;

/// `<prefix>.index`
pub fn index_file_name(prefix: &str) -> String {
    format!("{prefix}.index")
}

/// `<prefix>.data-<shard>-of-<count>`
pub fn data_file_name(prefix: &str, shard: u32, count: u32) -> String {
    format!("{prefix}.data-{shard:05}-of-{count:05}")
}

/// What the op ShardedFilename gives: `<base>-<shard>-of-<count>`.
pub fn sharded_file_name(base: &str, shard: i32, count: i32) -> String {
    format!("{base}-{shard:05}-of-{count:05}")
}

/// A key as people may read it; keys of slices become `slice of <name>`.
pub(super) fn printable(key: &[u8]) -> Cow<'_, str> {
    match slice_key_name(key) {
        Some(name) => format!("slice of {}", String::from_utf8_lossy(&name)).into(),
        None => String::from_utf8_lossy(key),
    }
}
