//! TFRecord files: a sequence of checked byte strings.
//!
//! Each record is: length (`u64`) · masked crc32c of those 8 bytes · data · masked crc32c of the data.

use tensorfleet_status::{Result, Status, data_loss};

use crate::coding::{take_u32, take_u64};
use crate::crc;
use crate::fs::{FileSystem, ReadFile, WriteFile};

/// Length and its checksum.
pub const HEADER_LEN: usize = 12;

/// Checksum of the data.
pub const FOOTER_LEN: usize = 4;

/// Records are gathered, and files read, in blocks of about this size.
const BLOCK: usize = 256 << 10;

/// Appends a record in its framing.
pub fn put_record(out: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&crc::masked(&length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&crc::masked(data).to_le_bytes());
}

/// The length of the data behind a header; `at` is where the record begins.
pub fn data_len(header: &[u8; HEADER_LEN], at: u64) -> Result<u64> {
    let mut rest = &header[..];
    let sum = crc::masked(header.get(..8).unwrap_or_default());
    let (length, stored_sum) = (take_u64(&mut rest), take_u32(&mut rest));
    match length {
        Some(length) if stored_sum == Some(sum) => Ok(length),
        _ => Err(data_loss!(
            "corrupted record at {at} (Is this even a TFRecord file?)"
        )),
    }
}

/// The data of `len` bytes that what follows a header begins with, if it is there and as it was written.
pub fn checked_data(body: &[u8], len: u64, at: u64) -> Result<&[u8]> {
    let len = usize::try_from(len).map_err(|_| truncated(at))?;
    let Some((data, mut footer)) = body.split_at_checked(len) else {
        return Err(truncated(at));
    };
    match take_u32(&mut footer) {
        Some(stored_sum) if stored_sum == crc::masked(data) => Ok(data),
        Some(_) => Err(data_loss!(
            "corrupted record at {}",
            at.saturating_add(HEADER_LEN as u64)
        )),
        None => Err(truncated(at)),
    }
}

fn truncated(at: u64) -> Status {
    data_loss!("truncated record at {at}' failed with Read less bytes than requested")
}

/// Writes records to a file. What is not flushed may be lost.
pub struct RecordWriter {
    file: Box<dyn WriteFile>,
    gathered: Vec<u8>,
}

impl RecordWriter {
    /// Writes to this file from its present end on.
    pub fn new(file: Box<dyn WriteFile>) -> RecordWriter {
        RecordWriter {
            file,
            gathered: Vec::new(),
        }
    }

    /// Creates a file, or empties it.
    pub fn create(fs: &dyn FileSystem, path: &str) -> Result<RecordWriter> {
        Ok(RecordWriter::new(fs.create(path)?))
    }

    /// Adds a record.
    pub fn write(&mut self, data: &[u8]) -> Result<()> {
        put_record(&mut self.gathered, data);
        if self.gathered.len() >= BLOCK {
            self.drain()?;
        }
        Ok(())
    }

    /// Makes all records visible to readers.
    pub fn flush(&mut self) -> Result<()> {
        self.drain()?;
        self.file.flush()
    }

    /// Flushes and closes the file.
    pub fn close(mut self) -> Result<()> {
        self.drain()?;
        self.file.close()
    }

    fn drain(&mut self) -> Result<()> {
        self.file.append(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }
}

/// Reads the records of a file, which may still grow: after the end, [`next_record`](Self::next_record)
/// can be asked again.
pub struct RecordReader {
    file: Box<dyn ReadFile>,
    offset: u64,
    /// A stretch of the file and where it begins.
    buffer: Vec<u8>,
    buffer_at: u64,
}

impl RecordReader {
    /// Reads this file from its beginning.
    pub fn new(file: Box<dyn ReadFile>) -> RecordReader {
        RecordReader {
            file,
            offset: 0,
            buffer: Vec::new(),
            buffer_at: 0,
        }
    }

    /// Opens a file.
    pub fn open(fs: &dyn FileSystem, path: &str) -> Result<RecordReader> {
        Ok(RecordReader::new(fs.open(path)?))
    }

    /// Where the next record begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes on at this offset, where a record must begin.
    pub fn seek(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// The next record; `None` at the end. An incomplete header counts as the end, as in TensorFlow,
    /// because the writer may be about to complete it.
    pub fn next_record(&mut self) -> Result<Option<&[u8]>> {
        let at = self.offset;
        let header = self.view(at, HEADER_LEN)?;
        let Some(header) = header.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let data_len = data_len(header, at)?;
        let data_at = at.saturating_add(HEADER_LEN as u64);
        let end = data_at
            .checked_add(data_len)
            .and_then(|end| end.checked_add(FOOTER_LEN as u64));
        // No memory for more than the file has.
        let end = match end {
            Some(end) if end <= self.file.len()? => end,
            _ => return Err(truncated(at)),
        };
        let len = usize::try_from(end - data_at).map_err(|_| truncated(at))?;
        self.offset = end;
        let body = self.view(data_at, len)?;
        Ok(Some(checked_data(body, data_len, at)?))
    }

    /// Up to `len` bytes at `offset`; fewer only at the end of the file.
    fn view(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        let inside = offset
            .checked_sub(self.buffer_at)
            .and_then(|start| usize::try_from(start).ok())
            .filter(|start| {
                self.buffer
                    .len()
                    .checked_sub(*start)
                    .is_some_and(|rest| rest >= len)
            });
        let start = match inside {
            Some(start) => start,
            None => {
                self.buffer.clear();
                self.buffer.resize(len.max(BLOCK), 0);
                self.buffer_at = offset;
                let read = self.file.read_some_at(offset, &mut self.buffer);
                self.buffer.truncate(*read.as_ref().unwrap_or(&0));
                read?;
                0
            }
        };
        let end = (start + len).min(self.buffer.len());
        Ok(self.buffer.get(start..end).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::LocalFileSystem;
    use proptest::prelude::*;
    use tensorfleet_status::Code;

    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Result<()>) {
        let temp = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(temp.path(), bytes).unwrap();
        let path = temp.path().display().to_string();
        let mut reader = RecordReader::open(&LocalFileSystem, &path).unwrap();
        let mut records = Vec::new();
        loop {
            match reader.next_record() {
                Ok(Some(record)) => records.push(record.to_vec()),
                Ok(None) => return (records, Ok(())),
                Err(status) => return (records, Err(status)),
            }
        }
    }

    fn sample() -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in [&b"hello"[..], b"", &[b'x'; 100]] {
            put_record(&mut bytes, record);
        }
        bytes
    }

    #[test]
    fn framing_has_its_known_bytes() {
        let head = [5, 0, 0, 0, 0, 0, 0, 0, 0xea, 0xb2, 0x04, 0x3e, b'h'];
        assert_eq!(sample()[..13], head);
    }

    #[test]
    fn damage_gives_tensorflows_errors() {
        let flip = |at: usize| {
            let mut bytes = sample();
            bytes[at] ^= 1;
            bytes
        };
        let check = |bytes: &[u8], records: usize, message: &str| {
            let (found, end) = read(bytes);
            assert_eq!(found.len(), records, "{message}");
            match end {
                Ok(()) => assert_eq!(message, ""),
                Err(status) => {
                    assert_eq!((status.code(), status.message()), (Code::DataLoss, message));
                }
            }
        };
        let bytes = sample();
        check(&bytes, 3, "");
        check(&[], 0, "");
        check(&bytes[..22], 1, "");
        check(
            &bytes[..bytes.len() - 1],
            2,
            "truncated record at 37' failed with Read less bytes than requested",
        );
        check(
            &bytes[..33],
            1,
            "truncated record at 21' failed with Read less bytes than requested",
        );
        check(
            &flip(0),
            0,
            "corrupted record at 0 (Is this even a TFRecord file?)",
        );
        check(
            &flip(8),
            0,
            "corrupted record at 0 (Is this even a TFRecord file?)",
        );
        check(&flip(13), 0, "corrupted record at 12");
        check(&flip(17), 0, "corrupted record at 12");
        let mut huge = u64::MAX.to_le_bytes().to_vec();
        huge.extend_from_slice(&crc::masked(&huge).to_le_bytes());
        huge.push(1);
        check(
            &huge,
            0,
            "truncated record at 0' failed with Read less bytes than requested",
        );
    }

    #[test]
    fn growing_file_is_followed() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("r").display().to_string();
        let mut writer = RecordWriter::create(&LocalFileSystem, &path).unwrap();
        let mut reader = RecordReader::open(&LocalFileSystem, &path).unwrap();
        assert!(reader.next_record().unwrap().is_none());
        writer.write(b"one").unwrap();
        assert!(reader.next_record().unwrap().is_none());
        writer.flush().unwrap();
        assert_eq!(reader.next_record().unwrap(), Some(&b"one"[..]));
        assert!(reader.next_record().unwrap().is_none());
        writer.write(&[7; 1 << 20]).unwrap();
        writer.write(b"two").unwrap();
        writer.close().unwrap();
        assert_eq!(
            reader.next_record().unwrap().map(<[u8]>::len),
            Some(1 << 20)
        );
        assert_eq!(reader.next_record().unwrap(), Some(&b"two"[..]));
        reader.seek(0);
        assert_eq!(reader.next_record().unwrap(), Some(&b"one"[..]));
    }

    proptest! {
        #[test]
        fn mutated_bytes_never_panic(at in 0usize..200, value in any::<u8>(), cut in 0usize..200) {
            let mut bytes = sample();
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(cut.max(1));
            let _ = read(&bytes);
        }
    }
}
