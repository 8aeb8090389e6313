//! TensorFlow's files: checkpoints (tensor bundles), TFRecord, event files, the `checkpoint` state file.
//!
//! Everything here is a byte-for-byte partner of what TensorFlow writes and reads. Files are hostile
//! until checked: damage is DATA_LOSS, never a panic, and no size is believed before the file's own
//! length vouches for it.

pub mod coding;
pub mod crc;
pub mod fs;
pub mod ordered_code;
pub mod slice;
pub mod table;
