//! Files as sources: which ones, how they are packed, and the records in them.

mod paths;
mod place;
mod reader;
mod records;
#[cfg(feature = "object-store")]
mod remote;

use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

pub use paths::Paths;
pub use reader::Compression;
pub(crate) use reader::{as_status, open_stream};
pub(crate) use records::open_records;
#[cfg(feature = "object-store")]
pub use remote::register_object_store;

use crate::dataset::{Dataset, Stream};
use crate::element::Element;

impl Dataset {
    /// The paths of files as elements: one string each. With [`interleave`](Dataset::interleave) several files are read in
    /// turns, with [`shard`](Dataset::shard) each worker reads its own.
    ///
    /// ```no_run
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::TString;
    ///
    /// let (workers, worker) = (4, 0);
    /// let records = Dataset::from_files("data/train-*.tfrecord")?
    ///     .shard(workers, worker)
    ///     .shuffle(100, 1)
    ///     .interleave(8, 16, |file| {
    ///         let path = file.at(0)?.to_scalar::<TString>()?;
    ///         Dataset::from_records(String::from_utf8_lossy(&path).as_ref())
    ///     });
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    pub fn from_files(paths: impl Into<Paths>) -> Result<Dataset> {
        let paths = paths.into().resolve()?;
        Ok(Dataset::from_elements(
            paths
                .into_iter()
                .map(|path| Element::from(Tensor::string(path)))
                .collect::<Vec<_>>(),
        ))
    }

    /// One file after the other; `open` opens one.
    pub(crate) fn of_files<F>(paths: Vec<String>, open: F) -> Dataset
    where
        F: Fn(&str) -> Result<Stream> + Clone + Send + Sync + 'static,
    {
        Dataset::new(move |_| {
            let open = open.clone();
            let files = paths.clone().into_iter();
            Ok(Box::new(files.flat_map(move |path| {
                let (stream, failed) = match open(&path) {
                    Ok(stream) => (Some(stream), None),
                    Err(status) => (None, Some(Err(status))),
                };
                stream.into_iter().flatten().chain(failed)
            })))
        })
    }
}
