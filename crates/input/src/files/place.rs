//! Where files are: on a local path, or in an object store if those are built in.

use tensorfleet_checkpoint::fs::{self, ReadFile};
use tensorfleet_status::{Result, failed_precondition, not_found};

/// Opens a file for reading.
pub(super) fn open(path: &str) -> Result<Box<dyn ReadFile>> {
    #[cfg(feature = "object-store")]
    if let Some(location) = super::remote::Location::of(path)? {
        return location.open();
    }
    system(path)?.open(path)
}

/// The files of a path or a pattern, sorted; none is an error.
pub(super) fn find(path: &str) -> Result<Vec<String>> {
    #[cfg(feature = "object-store")]
    if let Some(location) = super::remote::Location::of(path)? {
        return location.find();
    }
    let system = system(path)?;
    match system.stat(path) {
        Ok(stat) if stat.is_dir => Err(is_directory(path)),
        Ok(_) => Ok(vec![path.to_owned()]),
        Err(status) if !fs::is_pattern(path) => Err(status),
        Err(_) => {
            let mut found = system.glob(path)?;
            found.retain(|file| system.stat(file).is_ok_and(|stat| !stat.is_dir));
            if found.is_empty() {
                return Err(not_found!(
                    "no file matches \"{path}\"; relative paths start at {}",
                    std::env::current_dir().unwrap_or_default().display()
                ));
            }
            Ok(found)
        }
    }
}

pub(super) fn is_directory(path: &str) -> tensorfleet_status::Status {
    failed_precondition!(
        "{path} is a directory: write {} for the files in it",
        fs::join(path, "*")
    )
}

fn system(path: &str) -> Result<std::sync::Arc<dyn fs::FileSystem>> {
    #[cfg(not(feature = "object-store"))]
    if let (scheme @ ("s3" | "gs" | "http" | "https" | "memory"), _) = fs::split_scheme(path) {
        return Err(tensorfleet_status::unimplemented!(
            "{path}: object stores are not built in, so {scheme}:// is not known; build with the feature `object-store` of the crate tensorfleet, or copy the file to a local path"
        ));
    }
    fs::for_path(path)
}
