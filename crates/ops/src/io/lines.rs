//! [`Lines`]: the lines of a text file.

use std::io::{BufRead, BufReader, Read};

use tensorfleet_checkpoint::fs;
use tensorfleet_checkpoint::packed::{self, Packing, as_status};
use tensorfleet_status::{Result, ensure};

/// No line may be longer: a device or a file of another kind could go on for ever.
const LONGEST_LINE: u64 = 1 << 28;

/// Lines, one after the other; a carriage return before the end of a line is part of the end.
pub(crate) struct Lines {
    path: String,
    reader: BufReader<Box<dyn Read + Send>>,
    position: u64,
}

impl Lines {
    /// Opens a file.
    pub(crate) fn open(path: &str) -> Result<Lines> {
        Lines::unpacked(path, Packing::None)
    }

    /// Opens a file that is packed.
    pub(crate) fn unpacked(path: &str, packing: Packing) -> Result<Lines> {
        let file = fs::for_path(path)?.open(path)?;
        Ok(Lines {
            path: path.to_owned(),
            reader: BufReader::with_capacity(1 << 16, packed::stream(file, packing)),
            position: 0,
        })
    }

    /// Where the next line begins.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next line, `None` at the end.
    pub(crate) fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        Ok(self.read_line(&mut line)?.then_some(line))
    }

    /// Reads the next line over another; `false` at the end.
    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let mut part = self.reader.by_ref().take(LONGEST_LINE);
        let read = part.read_until(b'\n', line);
        let read = read.map_err(|error| as_status(&self.path, &error))?;
        self.position += read as u64;
        let ended = line.pop_if(|last| *last == b'\n').is_some();
        ensure!(
            ended || (read as u64) < LONGEST_LINE,
            resource_exhausted,
            "a line of {} is longer than {LONGEST_LINE} bytes",
            self.path
        );
        line.pop_if(|last| *last == b'\r');
        Ok(ended || !line.is_empty())
    }
}
