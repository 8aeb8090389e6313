//! Object stores: `s3://`, `gs://`, `http://`, `https://`, and any store that is registered.
//!
//! | file | has |
//! |---|---|
//! | `stores` | which store an address belongs to |
//! | `find` | the objects of an address or a pattern |
//! | `file` | an object as a file: blocks, fetched ahead |
//! | `net` | the thread that speaks to stores |
//! | `error` | what went wrong, and what helps |
//!
//! Datasets are read by plain threads; requests run on a runtime of their own, and a read waits for its answer.

mod error;
mod file;
mod find;
mod net;
mod stores;

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use tensorfleet_checkpoint::fs::{self, ReadFile};
use tensorfleet_status::{Result, invalid_argument};

pub use stores::register_object_store;

/// An object, or a pattern of objects, in a store.
pub(super) struct Location {
    /// As the user wrote it.
    url: String,
    /// The address of the store: `s3://bucket`.
    base: String,
    /// The object's name in it, or the pattern.
    key: String,
    store: Arc<dyn ObjectStore>,
}

impl Location {
    /// What a path names in an object store; `None` for paths of other places.
    pub(super) fn of(url: &str) -> Result<Option<Location>> {
        let (scheme, rest) = fs::split_scheme(url);
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        let base = format!("{scheme}://{host}");
        let Some(store) = stores::store_of(scheme, &base)? else {
            return Ok(None);
        };
        Ok(Some(Location {
            url: url.to_owned(),
            base,
            key: key.to_owned(),
            store,
        }))
    }

    pub(super) fn open(&self) -> Result<Box<dyn ReadFile>> {
        file::open(self)
    }

    pub(super) fn find(&self) -> Result<Vec<String>> {
        find::find(self)
    }

    fn path(&self) -> Result<Path> {
        self.path_of(&self.key)
    }

    /// A name as the store wants it. In addresses of the web, characters may be written as `%20`.
    fn path_of(&self, key: &str) -> Result<Path> {
        let path = if self.base.starts_with("http") {
            Path::from_url_path(key)
        } else {
            Path::parse(key)
        };
        path.map_err(|error| {
            invalid_argument!("{}: not a name that objects may have: {error}", self.url)
        })
    }
}
