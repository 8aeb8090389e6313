//! [`Source`]: what a reader makes of a unit of work, which is the name of a file but for the identity reader.
//!
//! Where we differ: records of no bytes at all are none, TensorFlow gives them without end.

use std::io::Read;

use tensorfleet_checkpoint::fs::{self, ReadFile};
use tensorfleet_checkpoint::packed::{self, Packing, RecordStream};
use tensorfleet_status::{Result, internal, out_of_range};
use tensorfleet_tensor::TString;

use crate::io::lines::Lines;
use crate::io::text;

/// A key and a value.
pub(super) type Record = (TString, TString);

/// What came of a read: a record unless there is none left, and whether the work is done.
pub(super) struct Progress {
    pub(super) record: Option<Record>,
    pub(super) at_end: bool,
}

impl Progress {
    /// A record that others may follow.
    fn record(key: TString, value: impl Into<TString>) -> Result<Progress> {
        Ok(Progress {
            record: Some((key, value.into())),
            at_end: false,
        })
    }

    /// The only record there is.
    fn only(key: TString, value: impl Into<TString>) -> Result<Progress> {
        Ok(Progress {
            record: Some((key, value.into())),
            at_end: true,
        })
    }

    fn end() -> Result<Progress> {
        Ok(Progress {
            record: None,
            at_end: true,
        })
    }
}

/// Turns units of work into records, one unit after the other.
pub(super) trait Source: Send {
    /// Begins with a unit.
    fn start(&mut self, _work: &TString) -> Result<()> {
        Ok(())
    }

    /// The next record of the unit that was begun.
    fn read(&mut self, work: &TString) -> Result<Progress>;

    /// Leaves the unit.
    fn stop(&mut self) {}

    /// Whether the counts of the reader are all of its state between two units.
    fn can_be_saved(&self) -> bool {
        false
    }
}

fn open(work: &TString) -> Result<(String, Box<dyn ReadFile>)> {
    let path = text(work)?;
    let file = fs::for_path(&path)?.open(&path)?;
    Ok((path, file))
}

/// `<work>:<number>`.
fn key(work: &TString, number: u64) -> TString {
    let number = number.to_string();
    let mut key = Vec::with_capacity(work.len() + 1 + number.len());
    key.extend_from_slice(work);
    key.push(b':');
    key.extend_from_slice(number.as_bytes());
    key.into()
}

/// The work itself.
pub(super) struct Identity;

impl Source for Identity {
    fn read(&mut self, work: &TString) -> Result<Progress> {
        Progress::only(work.clone(), work.clone())
    }

    fn can_be_saved(&self) -> bool {
        true
    }
}

/// Whole files.
pub(super) struct WholeFile;

impl Source for WholeFile {
    fn read(&mut self, work: &TString) -> Result<Progress> {
        Progress::only(work.clone(), packed::read_file(&text(work)?)?)
    }

    fn can_be_saved(&self) -> bool {
        true
    }
}

/// Lines of text.
pub(super) struct TextLine {
    skip_header_lines: u64,
    lines: Option<Lines>,
    number: u64,
}

impl TextLine {
    pub(super) fn new(skip_header_lines: u64) -> TextLine {
        TextLine {
            skip_header_lines,
            lines: None,
            number: 0,
        }
    }
}

impl Source for TextLine {
    fn start(&mut self, work: &TString) -> Result<()> {
        let mut lines = Lines::open(&text(work)?)?;
        self.number = 0;
        while self.number < self.skip_header_lines && lines.next_line()?.is_some() {
            self.number += 1;
        }
        self.lines = Some(lines);
        Ok(())
    }

    fn read(&mut self, work: &TString) -> Result<Progress> {
        let Some(lines) = &mut self.lines else {
            return Err(internal!("no file is open"));
        };
        match lines.next_line()? {
            Some(line) => {
                self.number += 1;
                Progress::record(key(work, self.number), line)
            }
            None => Progress::end(),
        }
    }

    fn stop(&mut self) {
        self.lines = None;
    }
}

/// What records of a fixed length lie between.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) header_bytes: u64,
    pub(super) record_bytes: u64,
    pub(super) footer_bytes: u64,
    /// From the beginning of one record to that of the next.
    pub(super) hop_bytes: u64,
    pub(super) packing: Packing,
}

/// Records of a fixed length. They may overlap, and the end of a file is only known when it is reached.
pub(super) struct FixedLength {
    layout: Layout,
    stream: Option<(String, Box<dyn Read + Send>)>,
    /// What was read and not yet hopped over.
    ahead: Vec<u8>,
    number: u64,
}

impl FixedLength {
    pub(super) fn new(layout: Layout) -> FixedLength {
        FixedLength {
            layout,
            stream: None,
            ahead: Vec::new(),
            number: 0,
        }
    }
}

impl Source for FixedLength {
    fn start(&mut self, work: &TString) -> Result<()> {
        let (path, file) = open(work)?;
        let mut stream = packed::stream(file, self.layout.packing);
        self.number = 0;
        self.ahead.clear();
        if !packed::skip(&mut stream, self.layout.header_bytes, &path)? {
            return Err(out_of_range!("reached end of file"));
        }
        self.stream = Some((path, stream));
        Ok(())
    }

    fn read(&mut self, work: &TString) -> Result<Progress> {
        let Some((path, stream)) = &mut self.stream else {
            return Err(internal!("no file is open"));
        };
        let Layout {
            record_bytes,
            footer_bytes,
            hop_bytes,
            ..
        } = self.layout;
        if self.number > 0 {
            let had = self.ahead.len() as u64;
            self.ahead.drain(..had.min(hop_bytes) as usize);
            let hop = hop_bytes.saturating_sub(had);
            if hop > 0 && !packed::skip(stream, hop, path)? {
                return Progress::end();
            }
        }
        let wanted = record_bytes.saturating_add(footer_bytes);
        let missing = wanted.saturating_sub(self.ahead.len() as u64);
        let more = packed::read_up_to(stream, missing, path)?;
        if (more.len() as u64) < missing || wanted == 0 {
            return Progress::end();
        }
        self.ahead.extend_from_slice(&more);
        let record = self.ahead.get(..record_bytes as usize).unwrap_or_default();
        let key = key(work, self.number);
        self.number += 1;
        Progress::record(key, record.to_vec())
    }

    fn stop(&mut self) {
        self.stream = None;
        self.ahead.clear();
    }
}

/// TFRecords; their keys are where they begin.
pub(super) struct TfRecord {
    packing: Packing,
    records: Option<(String, RecordStream)>,
}

impl TfRecord {
    pub(super) fn new(packing: Packing) -> TfRecord {
        TfRecord {
            packing,
            records: None,
        }
    }
}

impl Source for TfRecord {
    fn start(&mut self, work: &TString) -> Result<()> {
        let (path, file) = open(work)?;
        let records = RecordStream::new(packed::stream(file, self.packing));
        self.records = Some((path, records));
        Ok(())
    }

    fn read(&mut self, work: &TString) -> Result<Progress> {
        let Some((path, records)) = &mut self.records else {
            return Err(internal!("no file is open"));
        };
        let key = key(work, records.offset());
        match records.next_record(path)? {
            Some(record) => Progress::record(key, record),
            None => Progress::end(),
        }
    }

    fn stop(&mut self) {
        self.records = None;
    }
}
