//! TensorFlow's files: checkpoints (tensor bundles), TFRecord, event files, the `checkpoint` state file.
//!
//! Everything here is a byte-for-byte partner of what TensorFlow writes and reads. Files are hostile
//! until checked: damage is DATA_LOSS, never a panic, and no size is believed before the file's own
//! length vouches for it.
//!
//! | module | is |
//! |---|---|
//! | [`bundle`] | checkpoints: save, restore, merge, list, verify |
//! | [`v1`] | checkpoints in the format before |
//! | [`state`] | the `checkpoint` file that names the latest one |
//! | [`record`], [`events`] | TFRecord and event files |
//! | [`example`] | the Examples in such records, read where they lie |
//! | [`packed`] | files that are unpacked while they are read |
//! | [`table`], [`ordered_code`], [`slice`](mod@slice), [`crc`], [`coding`] | the formats below them |
//! | [`fs`] | the filesystem they live in |

pub mod bundle;
pub mod coding;
pub mod crc;
pub mod events;
pub mod example;
pub mod fs;
pub mod ordered_code;
pub mod packed;
pub mod record;
pub mod slice;
pub mod state;
pub mod table;
pub mod v1;
