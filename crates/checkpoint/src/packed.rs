//! Files as streams of bytes, unpacked on the way, and the TFRecords in such streams.

use std::io::{self, BufReader, Read};

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use tensorfleet_status::{Result, Status, data_loss, ensure, resource_exhausted};

use crate::fs::{self, ReadFile};
use crate::record::{self, FOOTER_LEN, HEADER_LEN};

/// How much of a file is read at a time.
const BLOCK: usize = 256 << 10;

/// No message is longer than 2 GiB, so no record has a reason to be. Behind compression a file's length vouches
/// for nothing.
const MOST_UNPACKED: u64 = 1 << 31;

/// What packs the bytes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Packing {
    /// Nothing.
    #[default]
    None,
    /// TensorFlow's `GZIP`.
    Gzip,
    /// TensorFlow's `ZLIB`.
    Zlib,
}

impl Packing {
    /// What TensorFlow's attributes call it; nothing for names that it does not know.
    pub fn named(name: &str) -> Packing {
        match name {
            "GZIP" => Packing::Gzip,
            "ZLIB" => Packing::Zlib,
            _ => Packing::None,
        }
    }

    /// The bytes of a stream, unpacked.
    pub fn unpacked<'a>(self, packed: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
        match self {
            Packing::None => Box::new(packed),
            Packing::Gzip => Box::new(MultiGzDecoder::new(packed)),
            Packing::Zlib => Box::new(ZlibDecoder::new(packed)),
        }
    }
}

/// A file to be read front to back, in large blocks.
pub fn stream(file: Box<dyn ReadFile>, packing: Packing) -> Box<dyn Read + Send> {
    let bytes = BufReader::with_capacity(BLOCK, FileBytes { file, offset: 0 });
    packing.unpacked(bytes)
}

/// The status of a read that failed: the filesystem's own, else the file cannot be unpacked.
pub fn as_status(path: &str, error: &io::Error) -> Status {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(status) => Status::clone(status),
        None => {
            data_loss!("{path} cannot be unpacked: {error}; is it complete, and packed as said?")
        }
    }
}

/// The next `len` bytes of a stream, fewer only at its end. Memory grows with what is there, not with what is asked for.
pub fn read_up_to(stream: &mut dyn Read, len: u64, path: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = stream.take(len).read_to_end(&mut bytes);
    read.map_err(|error| as_status(path, &error))?;
    Ok(bytes)
}

/// Bytes that may come behind the length that a file tells: some that are made while they are read tell none.
const SURPLUS: u64 = 64 << 20;

/// All of a file. One that goes on and on behind its length, as devices do, is RESOURCE_EXHAUSTED.
pub fn read_file(path: &str) -> Result<Vec<u8>> {
    let file = fs::for_path(path)?.open(path)?;
    let len = file.len()?;
    let most = len.saturating_add(SURPLUS);
    let bytes = read_up_to(&mut stream(file, Packing::None), most, path)?;
    ensure!(
        (bytes.len() as u64) < most,
        resource_exhausted,
        "{path} goes on after {most} bytes, though its length is {len}"
    );
    Ok(bytes)
}

/// Skips `len` bytes of a stream; whether there were as many.
pub fn skip(stream: &mut dyn Read, len: u64, path: &str) -> Result<bool> {
    let skipped = io::copy(&mut stream.take(len), &mut io::sink());
    Ok(skipped.map_err(|error| as_status(path, &error))? == len)
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

/// TFRecords that come out of a stream.
pub struct RecordStream {
    stream: Box<dyn Read + Send>,
    /// In the unpacked bytes.
    offset: u64,
    ends_within_header: bool,
}

impl RecordStream {
    /// The records of these bytes.
    pub fn new(stream: Box<dyn Read + Send>) -> RecordStream {
        RecordStream {
            stream,
            offset: 0,
            ends_within_header: false,
        }
    }

    /// Where the next record begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether there was less than a header behind the last record. TensorFlow takes that for the end.
    pub fn ends_within_header(&self) -> bool {
        self.ends_within_header
    }

    /// The next record; `None` at the end. Errors name the path where the record does not.
    pub fn next_record(&mut self, path: &str) -> Result<Option<Bytes>> {
        let at = self.offset;
        let header = read_up_to(&mut self.stream, HEADER_LEN as u64, path)?;
        let Some(header) = header.first_chunk::<HEADER_LEN>() else {
            self.ends_within_header = !header.is_empty();
            return Ok(None);
        };
        let len = record::data_len(header, at)?;
        if len > MOST_UNPACKED {
            return Err(resource_exhausted!(
                "it says it has {len} bytes, more than the limit of {MOST_UNPACKED}"
            ));
        }
        let mut body = read_up_to(&mut self.stream, len + FOOTER_LEN as u64, path)?;
        self.offset = at + (HEADER_LEN + body.len()) as u64;
        let data = record::checked_data(&body, len, at)?.len();
        body.truncate(data);
        Ok(Some(body.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn an_incomplete_header_is_the_end_and_can_be_told() {
        let mut bytes = Vec::new();
        record::put_record(&mut bytes, b"hello");
        bytes.extend_from_slice(b"abc");
        let mut records = RecordStream::new(Box::new(io::Cursor::new(bytes)));
        assert_eq!(records.next_record("x").unwrap().unwrap(), "hello");
        assert_eq!(records.offset(), 21);
        assert!(records.next_record("x").unwrap().is_none());
        assert!(records.ends_within_header());
    }

    #[test]
    fn skipping_says_whether_there_was_enough() {
        let mut bytes: &[u8] = b"abcdef";
        assert!(skip(&mut bytes, 4, "x").unwrap());
        assert_eq!(read_up_to(&mut bytes, 9, "x").unwrap(), b"ef");
        assert!(!skip(&mut bytes, 1, "x").unwrap());
    }
}
