//! [`Trace`]: what happened, message by message: all of it as a hash, the last of it as text.

use std::collections::VecDeque;
use std::hash::Hasher;
use std::time::Duration;

use rustc_hash::FxHasher;

/// How many lines are kept unless all are wanted.
const KEPT: usize = 60;

/// The messages of a run. Two runs of one seed have the same hash.
pub(super) struct Trace {
    hash: FxHasher,
    all: bool,
    lines: VecDeque<String>,
    count: usize,
}

impl Trace {
    pub(super) fn new(all: bool) -> Trace {
        Trace {
            hash: FxHasher::default(),
            all,
            lines: VecDeque::new(),
            count: 0,
        }
    }

    pub(super) fn note(&mut self, now: Duration, what: &str) {
        let line = format!("{:>10.3} {what}", now.as_secs_f64());
        self.hash.write(line.as_bytes());
        self.count += 1;
        if !self.all && self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.finish()
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }
}
