//! LevelDB-style sorted tables, the format of a checkpoint's `.index` file.
//!
//! ```text
//! data block* · metaindex block (empty) · index block · footer (48 bytes)
//! block  = entry* · restart offsets (u32 each) · restart count (u32) · type byte · masked crc32c
//! entry  = varint shared · varint unshared · varint value length · key suffix · value
//! index  = one entry per data block: a key >= its last key -> varint offset, varint size
//! footer = metaindex handle · index handle · zeros up to 40 bytes · magic
//! ```
//! Keys are byte strings in ascending order. We write no compression, and read none or snappy.

mod block;
mod format;
mod reader;
mod writer;

pub use reader::{Table, TableIter};
pub use writer::TableWriter;

#[cfg(test)]
mod tests;
