//! [`FileWriter`]: graphs, summaries and session logs into event files that TensorBoard reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message;
use tensorfleet_checkpoint::events::{EventsOptions, EventsWriter};
use tensorfleet_proto::session_log::SessionStatus;
use tensorfleet_proto::{Event, GraphDef, MetaGraphDef, SessionLog, Summary, event, summary};
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{Bytes, TString, Tensor};

/// Writes one event file. Clones are handles of the same file.
///
/// ```
/// use tensorfleet_train::FileWriter;
///
/// let dir = tempfile::tempdir().unwrap();
/// let writer = FileWriter::open(dir.path().to_str().unwrap())?;
/// writer.add_scalar("loss", 0.25, 10)?;
/// writer.flush()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone)]
pub struct FileWriter {
    events: Arc<Mutex<EventsWriter>>,
}

/// Open files by directory: hooks of one process that write into the same directory share one.
fn open_files() -> &'static Mutex<HashMap<String, Weak<Mutex<EventsWriter>>>> {
    static FILES: OnceLock<Mutex<HashMap<String, Weak<Mutex<EventsWriter>>>>> = OnceLock::new();
    FILES.get_or_init(Mutex::default)
}

impl FileWriter {
    /// The event file of this process in a directory, which is made if needed.
    pub fn open(dir: &str) -> Result<FileWriter> {
        let mut files = open_files().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(events) = files.get(dir).and_then(Weak::upgrade) {
            return Ok(FileWriter { events });
        }
        let events = EventsWriter::create(dir, &EventsOptions::default())
            .map_err(|status| not_writable(dir, status))?;
        let events = Arc::new(Mutex::new(events));
        files.insert(dir.to_owned(), Arc::downgrade(&events));
        Ok(FileWriter { events })
    }

    fn add(&self, step: i64, what: event::What) -> Result<()> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let event = Event {
            wall_time: now.as_secs_f64(),
            step,
            what: Some(what),
            ..Event::default()
        };
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.write(&event)
    }

    /// A number.
    pub fn add_scalar(&self, tag: &str, value: f32, step: i64) -> Result<()> {
        let value = summary::Value {
            tag: tag.to_owned(),
            value: Some(summary::value::Value::SimpleValue(value)),
            ..summary::Value::default()
        };
        let summary = Summary { value: vec![value] };
        self.add(step, event::What::Summary(summary))
    }

    /// What a summary op gave.
    pub fn add_summary(&self, serialized: &Tensor, step: i64) -> Result<()> {
        let bytes = serialized.slice::<TString>()?.first().cloned();
        let bytes = bytes.ok_or_else(|| invalid_argument!("a summary must be one string"))?;
        let summary = Summary::decode(Bytes::from(bytes))
            .map_err(|error| invalid_argument!("this is no summary: {error}"))?;
        self.add(step, event::What::Summary(summary))
    }

    /// The graph.
    pub fn add_graph(&self, def: &GraphDef) -> Result<()> {
        self.add(0, event::What::GraphDef(def.encode_to_vec().into()))
    }

    /// The graph with its collections and saver.
    pub fn add_meta_graph(&self, def: &MetaGraphDef, step: i64) -> Result<()> {
        self.add(step, event::What::MetaGraphDef(def.encode_to_vec().into()))
    }

    /// Start, stop or checkpoint of a session.
    pub fn add_session_log(
        &self,
        status: SessionStatus,
        checkpoint: &str,
        step: i64,
    ) -> Result<()> {
        let log = SessionLog {
            status: status as i32,
            checkpoint_path: checkpoint.to_owned(),
            ..SessionLog::default()
        };
        self.add(step, event::What::SessionLog(log))
    }

    /// Makes all events visible to readers.
    pub fn flush(&self) -> Result<()> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.flush()
    }
}

/// Says which directory, and what to do about it.
pub(crate) fn not_writable(dir: &str, status: Status) -> Status {
    status.context(format!(
        "the directory {dir} cannot be written; create it, change its permissions, or give another one"
    ))
}
