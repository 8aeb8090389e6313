//! Files as streams of bytes, unpacked on the way.

use std::io::{self, BufReader, Read};

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use tensorfleet_checkpoint::fs::ReadFile;
use tensorfleet_status::{Result, Status, data_loss};

use super::place;

/// How much of a file is read at a time.
const BLOCK: usize = 256 << 10;

/// How files are packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    /// As the name ends: `.gz` is [`Gzip`](Compression::Gzip), `.zz` or `.zlib` is [`Zlib`](Compression::Zlib), all
    /// else is plain.
    #[default]
    ByName,
    /// Not at all.
    None,
    /// TensorFlow's `GZIP`.
    Gzip,
    /// TensorFlow's `ZLIB`.
    Zlib,
}

impl Compression {
    /// What a file of this path is packed with: never [`ByName`](Compression::ByName).
    pub(super) fn of(self, path: &str) -> Compression {
        match (self, path.rsplit('.').next()) {
            (Compression::ByName, Some("gz")) => Compression::Gzip,
            (Compression::ByName, Some("zz" | "zlib")) => Compression::Zlib,
            (Compression::ByName, _) => Compression::None,
            (given, _) => given,
        }
    }
}

/// Opens a file to be read front to back.
pub(crate) fn open_stream(path: &str, compression: Compression) -> Result<Box<dyn Read + Send>> {
    let file = place::open(path)?;
    let bytes = BufReader::with_capacity(BLOCK, FileBytes { file, offset: 0 });
    Ok(match compression.of(path) {
        Compression::Gzip => Box::new(MultiGzDecoder::new(bytes)),
        Compression::Zlib => Box::new(ZlibDecoder::new(bytes)),
        Compression::None | Compression::ByName => Box::new(bytes),
    })
}

/// The status of a read that failed: the filesystem's own, else the file cannot be unpacked.
pub(crate) fn as_status(path: &str, error: &io::Error) -> Status {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(status) => Status::clone(status),
        None => {
            data_loss!("{path} cannot be unpacked: {error}; is it complete, and packed as said?")
        }
    }
}

/// A file of the filesystem interface as the standard library reads it.
struct FileBytes {
    file: Box<dyn ReadFile>,
    offset: u64,
}

impl Read for FileBytes {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_some_at(self.offset, target);
        let read = read.map_err(io::Error::other)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_compression() {
        for (path, expected) in [
            ("a/b.tfrecord", Compression::None),
            ("a.gz/b", Compression::None),
            ("b.csv.gz", Compression::Gzip),
            ("b.zlib", Compression::Zlib),
        ] {
            assert_eq!(Compression::ByName.of(path), expected, "{path}");
        }
        assert_eq!(Compression::None.of("b.gz"), Compression::None);
    }

    #[test]
    fn statuses_of_the_filesystem_pass_through() {
        let status = data_loss!("the disk is on fire");
        let error = io::Error::other(status.clone());
        assert_eq!(as_status("x", &error).message(), status.message());
        let error = io::Error::new(io::ErrorKind::InvalidData, "bad block");
        assert!(
            as_status("x", &error)
                .message()
                .contains("x cannot be unpacked")
        );
    }
}
