//! Datasets that a training loop can iterate.
//!
//! A [`Dataset`] is a recipe: a source and the transformations behind it. Nothing is read before it is iterated, and
//! an iteration holds no more than its buffers: the shuffle buffer, the elements of one batch, what prefetching is
//! ahead. It yields `Result<Element>`; an [`Element`] is a few tensors, with names or without. The first error ends
//! the iteration.
//!
//! ```
//! use tensorfleet_input::{Dataset, Element};
//! use tensorfleet_tensor::{Shape, Tensor};
//!
//! let images = Tensor::from_vec(Shape::new(&[100, 8])?, (0..800).map(|i| i as f32).collect())?;
//! let labels = Tensor::from_vec(Shape::new(&[100])?, (0..100i64).map(|i| i % 10).collect())?;
//! let train = Dataset::from_tensor_slices(Element::named([("image", images), ("label", labels)]))?
//!     .shard(2, 0) // this is worker 0 of 2
//!     .shuffle(50, 7)
//!     .repeat(2)
//!     .batch(10, true)
//!     .prefetch(2);
//! let mut steps = 0;
//! for batch in &train {
//!     let batch = batch?;
//!     assert_eq!(batch.get("image")?.shape().dims(), [10, 8]);
//!     steps += 1;
//! }
//! assert_eq!(steps, 10);
//! # Ok::<(), tensorfleet_tensor::Status>(())
//! ```
//!
//! | from | with |
//! |---|---|
//! | arrays | [`Dataset::from_tensor_slices`] |
//! | any iterator | [`Dataset::from_elements`], [`Dataset::from_generator`] |
//! | CSV files | [`Dataset::from_csv`], described by [`Csv`] |
//! | TFRecord files | [`Dataset::from_records`], [`Dataset::from_examples`] described by [`ExampleSpec`] |
//! | files in turns | [`Dataset::from_files`], [`Dataset::interleave`] |
//!
//! Files are named by a path, several paths, or patterns such as `data/train-*.tfrecord` ([`Paths`]). With the feature
//! `object-store` they may lie in Amazon S3 and what speaks its language, in Google Cloud Storage, on web servers:
//! `s3://bucket/train-*.tfrecord`.

mod csv;
mod dataset;
mod element;
mod example;
mod files;
mod source;
mod transform;

pub use csv::Csv;
pub use dataset::{Dataset, Elements};
pub use element::Element;
pub use example::{ExampleSpec, encode_example, write_examples};
#[cfg(feature = "object-store")]
pub use files::register_object_store;
pub use files::{Compression, Paths};
/// The crate behind object stores, for stores of one's own.
#[cfg(feature = "object-store")]
pub use object_store;
