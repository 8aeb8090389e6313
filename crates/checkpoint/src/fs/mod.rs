//! A small filesystem interface, so that object stores can stand where the local disk stands.
//!
//! Paths are text as TensorFlow passes them; a scheme (`file://`, `gs://`) picks the filesystem.
//! Files are read at offsets from any thread and written front to back by one.

mod error;
mod glob;
mod local;
mod path;

use std::sync::Arc;

use tensorfleet_status::{Result, unimplemented};

pub use error::io_status;
pub use glob::{is_pattern, matches as glob_matches};
pub use local::LocalFileSystem;
pub use path::{base_name, dir_name, join, split_scheme};

/// What is known of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStat {
    /// Length in bytes; 0 for directories.
    pub len: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Last change, nanoseconds since 1970.
    pub modified_nanos: i64,
}

/// A file open for reading.
pub trait ReadFile: Send + Sync {
    /// Fills `target` from `offset` on; OUT_OF_RANGE if the file ends before.
    fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()>;

    /// Reads up to `target.len()` bytes; fewer only at the end of the file.
    fn read_some_at(&self, offset: u64, target: &mut [u8]) -> Result<usize>;

    /// The length now.
    fn len(&self) -> Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A file open for writing at its end.
pub trait WriteFile: Send {
    /// Appends all of `bytes`.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes what was written visible to readers.
    fn flush(&mut self) -> Result<()>;

    /// Makes what was written survive a crash of the machine.
    fn sync(&mut self) -> Result<()>;

    /// Flushes and reports what a silent drop would hide.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A place that holds files. Paths come with their scheme or without.
pub trait FileSystem: Send + Sync {
    /// Opens a file for reading.
    fn open(&self, path: &str) -> Result<Box<dyn ReadFile>>;

    /// Creates a file, or empties it.
    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>>;

    /// Opens a file to write behind its end, creating it if needed.
    fn append(&self, path: &str) -> Result<Box<dyn WriteFile>>;

    /// Moves a file, replacing `to`.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Deletes a file.
    fn delete_file(&self, path: &str) -> Result<()>;

    /// Deletes an empty directory.
    fn delete_dir(&self, path: &str) -> Result<()>;

    /// Creates a directory in one that exists; one that exists is fine.
    fn create_dir(&self, path: &str) -> Result<()>;

    /// Creates a directory and its parents; one that exists is fine.
    fn create_dir_all(&self, path: &str) -> Result<()>;

    /// What is at the path.
    fn stat(&self, path: &str) -> Result<FileStat>;

    /// The names in a directory, sorted.
    fn list(&self, dir: &str) -> Result<Vec<String>>;

    /// The paths that match a pattern (`*`, `?`, `[a-z]`, none of them crossing `/`), sorted.
    fn glob(&self, pattern: &str) -> Result<Vec<String>>;

    /// Whether a rename appears at once and whole to other readers. Where it does not, as in object
    /// stores, files are written in place.
    fn has_atomic_rename(&self) -> bool {
        true
    }

    /// Whether something is at the path.
    fn exists(&self, path: &str) -> bool {
        self.stat(path).is_ok()
    }

    /// Reads a whole file of at most `limit` bytes.
    fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>> {
        let file = self.open(path)?;
        let len = file.len()?;
        if len > limit {
            return Err(tensorfleet_status::resource_exhausted!(
                "{path} has {len} bytes, more than the limit of {limit}"
            ));
        }
        let mut bytes = vec![0; len as usize];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file so that readers see the old or the new contents, never a part.
    fn write_atomic(&self, path: &str, contents: &[u8]) -> Result<()> {
        self.replace(path, contents, false)
    }

    /// Like [`write_atomic`](Self::write_atomic); `sync` forces the contents to the disk before they appear.
    fn replace(&self, path: &str, contents: &[u8], sync: bool) -> Result<()> {
        let target = if self.has_atomic_rename() {
            temp_path(path, "tmp")
        } else {
            path.to_owned()
        };
        let written = (|| {
            let mut file = self.create(&target)?;
            file.append(contents)?;
            if sync {
                file.sync()?;
            }
            file.close()?;
            if target == path {
                Ok(())
            } else {
                self.rename(&target, path)
            }
        })();
        if written.is_err() && target != path {
            // The first error is the one to report.
            let _ = self.delete_file(&target);
        }
        written
    }
}

/// The filesystem that a path's scheme names.
pub fn for_path(path: &str) -> Result<Arc<dyn FileSystem>> {
    match split_scheme(path).0 {
        "" | "file" => Ok(Arc::new(LocalFileSystem)),
        scheme => Err(unimplemented!(
            "File system scheme '{scheme}' not implemented (file: '{path}'): object stores are not built in, only local paths, plain or with file://; copy the files or mount the store"
        )),
    }
}

/// A name beside `path` that nobody else uses: `<path>.<mark><number>`.
pub(crate) fn temp_path(path: &str, mark: &str) -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // A RandomState is seeded by the system: good enough to keep two writers apart.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write(path.as_bytes());
    hasher.write_u32(std::process::id());
    format!("{path}.{mark}{}", hasher.finish())
}
