//! TFRecord files as datasets of byte strings.
//!
//! Unlike a reader of event files, which grow, a dataset takes a file for complete: bytes that are no record are
//! DATA_LOSS also at the end.

use bytes::Bytes;
use tensorfleet_checkpoint::packed::{Packing, RecordStream};
use tensorfleet_checkpoint::record::RecordReader;
use tensorfleet_status::{Result, data_loss};
use tensorfleet_tensor::Tensor;

use super::place;
use super::reader::{Compression, open_stream};
use crate::dataset::Dataset;
use crate::element::Element;
use crate::files::Paths;

impl Dataset {
    /// The records of TFRecord files, one file after the other: one string each. Names that end in `.gz` or `.zz` are
    /// unpacked; [`from_packed_records`](Dataset::from_packed_records) says it otherwise.
    ///
    /// ```
    /// use tensorfleet_checkpoint::fs::LocalFileSystem;
    /// use tensorfleet_checkpoint::record::RecordWriter;
    /// use tensorfleet_input::Dataset;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("some.tfrecord").display().to_string();
    ///
    /// let mut writer = RecordWriter::create(&LocalFileSystem, &path)?;
    /// writer.write(b"one")?;
    /// writer.write(b"two")?;
    /// writer.close()?;
    /// assert_eq!(Dataset::from_records(&path)?.iter().count(), 2);
    /// # Ok::<(), tensorfleet_tensor::Status>(())
    /// ```
    pub fn from_records(paths: impl Into<Paths>) -> Result<Dataset> {
        Dataset::from_packed_records(paths, Compression::ByName)
    }

    /// Like [`from_records`](Dataset::from_records), for files packed as said, whatever their names.
    pub fn from_packed_records(
        paths: impl Into<Paths>,
        compression: Compression,
    ) -> Result<Dataset> {
        let paths = paths.into().resolve()?;
        Ok(Dataset::of_files(paths, move |path| {
            let records = open_records(path, compression)?;
            Ok(Box::new(records.map(|record| {
                record.map(|record| Element::from(Tensor::string(record)))
            })))
        }))
    }
}

/// The records of a file. Errors name the file and the record, counted from 0.
pub(crate) fn open_records(
    path: &str,
    compression: Compression,
) -> Result<impl Iterator<Item = Result<Bytes>> + Send + 'static> {
    let mut source = match compression.of(path) {
        Packing::None => Source::plain(path)?,
        _ => Source::Packed(RecordStream::new(open_stream(path, compression)?)),
    };
    let path = path.to_owned();
    let mut number = 0u64;
    Ok(std::iter::from_fn(move || {
        let next = source.next_record(&path).transpose()?;
        let next = next.map_err(|status| status.context(format!("{path}: record {number}")));
        number += 1;
        Some(next)
    }))
}

enum Source {
    Plain { reader: RecordReader, len: u64 },
    Packed(RecordStream),
}

impl Source {
    fn plain(path: &str) -> Result<Source> {
        let file = place::open(path)?;
        let len = file.len()?;
        let reader = RecordReader::new(file);
        Ok(Source::Plain { reader, len })
    }

    fn next_record(&mut self, path: &str) -> Result<Option<Bytes>> {
        match self {
            Source::Plain { reader, len } => {
                if let Some(record) = reader.next_record()? {
                    return Ok(Some(Bytes::copy_from_slice(record)));
                }
                if reader.offset() < *len {
                    return Err(truncated(reader.offset()));
                }
                Ok(None)
            }
            Source::Packed(records) => {
                let record = records.next_record(path)?;
                if records.ends_within_header() {
                    return Err(truncated(records.offset()));
                }
                Ok(record)
            }
        }
    }
}

fn truncated(at: u64) -> tensorfleet_status::Status {
    data_loss!("truncated record at {at}: the file ends within it; was it written to its end?")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::write::{GzEncoder, ZlibEncoder};
    use tensorfleet_checkpoint::record::put_record;
    use tensorfleet_status::Code;

    use super::*;

    fn sample() -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in [&b"hello"[..], b"", &[b'x'; 100_000]] {
            put_record(&mut bytes, record);
        }
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut out = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn read(bytes: &[u8], compression: Compression) -> (Vec<usize>, Option<String>) {
        let temp = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(temp.path(), bytes).unwrap();
        let path = temp.path().display().to_string();
        let mut lengths = Vec::new();
        for record in open_records(&path, compression).unwrap() {
            match record {
                Ok(record) => lengths.push(record.len()),
                Err(status) => {
                    assert_eq!(status.code(), Code::DataLoss, "{status}");
                    assert!(status.message().contains(&path), "{status}");
                    return (lengths, Some(status.message().to_owned()));
                }
            }
        }
        (lengths, None)
    }

    #[test]
    fn every_packing_is_read() {
        let whole = (vec![5, 0, 100_000], None);
        assert_eq!(read(&sample(), Compression::None), whole);
        assert_eq!(read(&gzip(&sample()), Compression::Gzip), whole);
        assert_eq!(read(&zlib(&sample()), Compression::Zlib), whole);
        let members = [gzip(&sample()[..21]), gzip(&sample()[21..])].concat();
        assert_eq!(read(&members, Compression::Gzip), whole);
        assert_eq!(read(&[], Compression::None), (vec![], None));
        assert_eq!(read(&gzip(&[]), Compression::Gzip), (vec![], None));
    }

    #[test]
    fn damage_is_said_with_file_and_record() {
        let mut flipped = sample();
        flipped[50] ^= 1;
        let mut huge = (1u64 << 40).to_le_bytes().to_vec();
        let sum = tensorfleet_checkpoint::crc::masked(&huge).to_le_bytes();
        huge.extend(sum);
        let whole = sample();
        let cases: &[(&[u8], usize, &str)] = &[
            (
                &whole[..whole.len() - 1],
                2,
                "record 2: truncated record at 37",
            ),
            (&whole[..25], 1, "record 1: truncated record at 21"),
            (&flipped, 2, "record 2: corrupted record"),
            (&huge, 0, "record 0: truncated record at 0"),
            (b"no records at all", 0, "Is this even a TFRecord file?"),
        ];
        for (bytes, records, text) in cases {
            let (found, error) = read(bytes, Compression::None);
            assert_eq!(found.len(), *records, "{text}");
            assert!(error.as_ref().unwrap().contains(text), "{error:?}");
            if *bytes == huge {
                continue;
            }
            for (packed, kind) in [
                (gzip(bytes), Compression::Gzip),
                (zlib(bytes), Compression::Zlib),
            ] {
                let (found, error) = read(&packed, kind);
                assert_eq!(found.len(), *records, "{text}");
                assert!(error.as_ref().unwrap().contains(text), "{error:?}");
            }
        }
    }

    #[test]
    fn damaged_packing_is_said() {
        let packed = gzip(&sample());
        let cut = &packed[..packed.len() / 2];
        for (bytes, kind) in [
            (cut, Compression::Gzip),
            (&sample(), Compression::Gzip),
            (&packed, Compression::Zlib),
        ] {
            let (_, error) = read(bytes, kind);
            assert!(
                error.as_ref().unwrap().contains("cannot be unpacked"),
                "{error:?}"
            );
        }
        let mut huge = (1u64 << 40).to_le_bytes().to_vec();
        let sum = tensorfleet_checkpoint::crc::masked(&huge).to_le_bytes();
        huge.extend(sum);
        let temp = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(temp.path(), gzip(&huge)).unwrap();
        let path = temp.path().display().to_string();
        let error = open_records(&path, Compression::Gzip).unwrap().next();
        assert_eq!(error.unwrap().unwrap_err().code(), Code::ResourceExhausted);
    }
}
