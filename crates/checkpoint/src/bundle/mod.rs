//! Tensor bundles: TensorFlow's V2 checkpoints.
//!
//! A checkpoint with prefix `P` is a table `P.index` (see [`table`](crate::table)) and data files
//! `P.data-00000-of-0000N`. The table maps the empty key to a header and every tensor name to a
//! `BundleEntryProto`: dtype, shape, shard, offset, size, checksum. A partitioned tensor has an entry
//! with its full shape and the list of its slices, and one entry per slice under an
//! [encoded key](crate::ordered_code). Data files hold the elements back to back.
//!
//! | layer | for |
//! |---|---|
//! | [`save`], [`restore`], [`merge`] | what the ops SaveV2, RestoreV2 and MergeV2Checkpoints do |
//! | [`BundleWriter`], [`BundleReader`] | one tensor at a time |
//! | [`BundleReader::list`], [`verify()`] | looking into a checkpoint |
//!
//! Two divergences from TensorFlow on purpose: a data file that is too short is DATA_LOSS (there
//! OUT_OF_RANGE, which training loops take for the end of input), and conflicting slices are
//! INVALID_ARGUMENT where TensorFlow ends the process.
//!
//! ```
//! use tensorfleet_checkpoint::bundle::{BundleReader, BundleWriter};
//! use tensorfleet_tensor::Tensor;
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let prefix = dir.path().join("model.ckpt-7").display().to_string();
//! let mut writer = BundleWriter::create(&prefix)?;
//! writer.add(b"w", &Tensor::vector(&[1.0f32, 2.0]))?;
//! writer.finish()?;
//!
//! let reader = BundleReader::open(&prefix)?;
//! assert_eq!(reader.read(b"w")?.slice::<f32>()?, [1.0, 2.0]);
//! # Ok::<(), tensorfleet_status::Status>(())
//! ```

pub(crate) mod assemble;
pub(crate) mod entry;
mod index;
mod list;
mod merge;
mod names;
mod ops;
mod pending;
mod reader;
mod strings;
mod transfer;
mod variants;
mod verify;
mod writer;

pub use list::{ListedSlice, ListedTensor};
pub use merge::{MergeOptions, merge};
pub use names::{data_file_name, index_file_name, sharded_file_name};
pub use ops::{RestoreItem, SaveItem, restore, save};
pub use reader::BundleReader;
pub use verify::{Damage, VerifyReport, verify};
pub use writer::BundleWriter;

#[cfg(test)]
mod tests;
