//! [`Lines`]: the lines of a text file.

use std::io::{BufRead, BufReader, Read};

use tensorfleet_checkpoint::fs;
use tensorfleet_checkpoint::packed::{self, Packing, as_status};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::Bytes;

use super::text;

/// No line may be longer: a device or a file of another kind could go on for ever.
pub(crate) const LONGEST_LINE: u64 = 1 << 28;

/// Lines, one after the other; a carriage return before the end of a line is part of the end.
pub(super) struct Lines {
    path: String,
    reader: BufReader<Box<dyn Read + Send>>,
}

impl Lines {
    /// Opens a file.
    pub(super) fn open(path: &Bytes) -> Result<Lines> {
        let path = text(path)?;
        let file = fs::for_path(&path)?.open(&path)?;
        let reader = BufReader::new(packed::stream(file, Packing::None));
        Ok(Lines { path, reader })
    }

    /// The next line, `None` at the end.
    pub(super) fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut part = self.reader.by_ref().take(LONGEST_LINE);
        let read = part.read_until(b'\n', &mut line);
        let read = read.map_err(|error| as_status(&self.path, &error))?;
        let ended = line.pop_if(|last| *last == b'\n').is_some();
        ensure!(
            ended || (read as u64) < LONGEST_LINE,
            resource_exhausted,
            "a line of {} is longer than {LONGEST_LINE} bytes",
            self.path
        );
        line.pop_if(|last| *last == b'\r');
        Ok((ended || !line.is_empty()).then_some(line))
    }
}
