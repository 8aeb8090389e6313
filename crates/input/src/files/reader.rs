//! Which files are packed, and how.

use std::io::Read;

pub(crate) use tensorfleet_checkpoint::packed::as_status;
use tensorfleet_checkpoint::packed::{Packing, stream};
use tensorfleet_status::Result;

use super::place;

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
    /// What a file of this path is packed with.
    pub(super) fn of(self, path: &str) -> Packing {
        match (self, path.rsplit('.').next()) {
            (Compression::Gzip, _) | (Compression::ByName, Some("gz")) => Packing::Gzip,
            (Compression::Zlib, _) | (Compression::ByName, Some("zz" | "zlib")) => Packing::Zlib,
            _ => Packing::None,
        }
    }
}

/// Opens a file to be read front to back.
pub(crate) fn open_stream(path: &str, compression: Compression) -> Result<Box<dyn Read + Send>> {
    Ok(stream(place::open(path)?, compression.of(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_compression() {
        for (path, expected) in [
            ("a/b.tfrecord", Packing::None),
            ("a.gz/b", Packing::None),
            ("b.csv.gz", Packing::Gzip),
            ("b.zlib", Packing::Zlib),
        ] {
            assert_eq!(Compression::ByName.of(path), expected, "{path}");
        }
        assert_eq!(Compression::None.of("b.gz"), Packing::None);
    }
}
