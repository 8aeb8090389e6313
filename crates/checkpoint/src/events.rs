//! Event files, which TensorBoard reads: TFRecords of `Event` messages.
//!
//! The name is `<dir>/events.out.tfevents.<seconds>.<host><suffix>`, the first event names the version.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prost::Message;
use tensorfleet_proto::{Event, SourceMetadata, event};
use tensorfleet_status::{Result, data_loss};

use crate::fs::{FileSystem, for_path, join};
use crate::record::{RecordReader, RecordWriter};

/// Version that every event file begins with.
pub const FILE_VERSION: &str = "brain.Event:2";

/// Who wrote the file, in TensorFlow's words, which its readers may look for.
const SOURCE_WRITER: &str = "tensorflow.core.util.events_writer";

/// How an event file is named and when events reach it.
#[derive(Clone, PartialEq, Debug)]
pub struct EventsOptions {
    /// More events than this in the queue are written out.
    pub max_queue: usize,
    /// Events are written out when the last time is this long ago.
    pub flush_after: Duration,
    /// What ends the file's name.
    pub suffix: String,
    /// The time in the file's name and in the first event.
    pub started: SystemTime,
    /// The machine's name in the file's name.
    pub host: String,
}

impl Default for EventsOptions {
    /// Ten events, two minutes, as in TensorFlow's Python writers.
    fn default() -> EventsOptions {
        EventsOptions {
            max_queue: 10,
            flush_after: Duration::from_secs(120),
            suffix: String::new(),
            started: SystemTime::now(),
            host: host_name(),
        }
    }
}

/// `.<process>.<number>` before a suffix, as TensorFlow's summary writers have it: of those that begin in the same second
/// in the same directory each has a file of its own.
pub fn unique_suffix(suffix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".{}.{number}{suffix}", std::process::id())
}

/// Writes an event file. Dropping it writes what is queued.
pub struct EventsWriter {
    records: RecordWriter,
    path: String,
    queued: usize,
    max_queue: usize,
    flush_after: Duration,
    last_flush: Instant,
}

impl EventsWriter {
    /// Creates an event file in a directory, which is made if needed.
    pub fn create(dir: &str, options: &EventsOptions) -> Result<EventsWriter> {
        let fs = for_path(dir)?;
        fs.create_dir_all(dir)?;
        let started = options
            .started
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!(
            "events.out.tfevents.{:010}.{}{}",
            started.as_secs(),
            options.host,
            options.suffix
        );
        let path = join(dir, &name);
        let mut writer = EventsWriter {
            // Another writer of the same second must not be emptied.
            records: RecordWriter::new(fs.append(&path)?),
            path,
            queued: 0,
            max_queue: options.max_queue,
            flush_after: options.flush_after,
            last_flush: Instant::now(),
        };
        let version = Event {
            wall_time: started.as_secs() as f64,
            source_metadata: Some(SourceMetadata {
                writer: SOURCE_WRITER.to_owned(),
            }),
            what: Some(event::What::FileVersion(FILE_VERSION.to_owned())),
            ..Event::default()
        };
        writer.records.write(&version.encode_to_vec())?;
        writer.flush()?;
        Ok(writer)
    }

    /// The file's path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Queues an event.
    pub fn write(&mut self, event: &Event) -> Result<()> {
        self.write_encoded(&event.encode_to_vec())
    }

    /// Queues an event that is already serialised.
    pub fn write_encoded(&mut self, event: &[u8]) -> Result<()> {
        self.records.write(event)?;
        self.queued += 1;
        if self.queued > self.max_queue || self.last_flush.elapsed() >= self.flush_after {
            self.flush()?;
        }
        Ok(())
    }

    /// Makes all events visible to readers.
    pub fn flush(&mut self) -> Result<()> {
        self.records.flush()?;
        self.queued = 0;
        self.last_flush = Instant::now();
        Ok(())
    }
}

impl Drop for EventsWriter {
    fn drop(&mut self) {
        // Whoever needs to know calls flush.
        let _ = self.records.flush();
    }
}

/// Reads the events of a file, which may still grow.
pub struct EventsReader {
    records: RecordReader,
    path: String,
}

impl EventsReader {
    /// Opens an event file.
    pub fn open(fs: &dyn FileSystem, path: &str) -> Result<EventsReader> {
        Ok(EventsReader {
            records: RecordReader::open(fs, path)?,
            path: path.to_owned(),
        })
    }

    /// The next event; `None` at the present end.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        let at = self.records.offset();
        match self.records.next_record() {
            Ok(Some(record)) => match Event::decode(record) {
                Ok(event) => Ok(Some(event)),
                Err(error) => Err(data_loss!(
                    "{}; record at {at} is no event: {error}",
                    self.path
                )),
            },
            Ok(None) => Ok(None),
            Err(status) => Err(status.context(&self.path)),
        }
    }
}

/// The machine's name, `localhost` if it has none.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"))
        .map(|name| name.trim().to_owned())
        .ok()
        .filter(|name| !name.is_empty() && !name.contains('/'))
        .unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::LocalFileSystem;

    fn event(step: i64) -> Event {
        Event {
            wall_time: 1.5,
            step,
            ..Event::default()
        }
    }

    #[test]
    fn events_come_back_and_the_queue_holds_them() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("logs").display().to_string();
        let options = EventsOptions {
            max_queue: 2,
            suffix: ".x".into(),
            started: UNIX_EPOCH + Duration::from_millis(1_234_567),
            host: "box".into(),
            ..EventsOptions::default()
        };
        let mut writer = EventsWriter::create(&dir, &options).unwrap();
        assert_eq!(
            writer.path(),
            format!("{dir}/events.out.tfevents.0000001234.box.x")
        );
        let mut reader = EventsReader::open(&LocalFileSystem, writer.path()).unwrap();
        let first = reader.next_event().unwrap().unwrap();
        assert_eq!(first.wall_time, 1234.0);
        assert_eq!(
            first.what,
            Some(event::What::FileVersion("brain.Event:2".into()))
        );
        writer.write(&event(1)).unwrap();
        writer.write(&event(2)).unwrap();
        assert_eq!(reader.next_event().unwrap(), None);
        writer.write(&event(3)).unwrap();
        for step in 1..=3 {
            assert_eq!(reader.next_event().unwrap().unwrap().step, step);
        }
        writer.write(&event(4)).unwrap();
        drop(writer);
        assert_eq!(reader.next_event().unwrap().unwrap().step, 4);
        assert_eq!(reader.next_event().unwrap(), None);
    }

    #[test]
    fn old_events_leave_the_queue() {
        let temp = tempfile::tempdir().unwrap();
        let options = EventsOptions {
            flush_after: Duration::ZERO,
            ..EventsOptions::default()
        };
        let mut writer =
            EventsWriter::create(&temp.path().display().to_string(), &options).unwrap();
        writer.write(&event(1)).unwrap();
        let mut reader = EventsReader::open(&LocalFileSystem, writer.path()).unwrap();
        assert!(reader.next_event().unwrap().is_some());
        assert!(reader.next_event().unwrap().is_some());
    }
}
