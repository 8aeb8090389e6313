//! Which checkpoints exist, and which are deleted when there are too many.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use tensorfleet_checkpoint::fs;
use tensorfleet_checkpoint::state::{STATE_FILE, state_of, write_state};
use tensorfleet_status::Result;

/// The checkpoints one saver wrote, oldest first.
pub(super) struct Kept {
    max: usize,
    keep_every: Duration,
    /// After this moment the next checkpoint to be deleted is kept for good.
    keep_next_after: Instant,
    paths: VecDeque<(String, SystemTime)>,
}

impl Kept {
    pub(super) fn new(max: usize, keep_every: Duration) -> Kept {
        Kept {
            max,
            keep_every,
            keep_next_after: Instant::now() + keep_every,
            paths: VecDeque::new(),
        }
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.paths.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Takes over checkpoints of an earlier run that still exist.
    pub(super) fn recover(&mut self, paths: &[String]) {
        let now = SystemTime::now();
        for path in paths {
            let exists = fs::for_path(path).is_ok_and(|fs| fs.exists(&format!("{path}.index")));
            if exists && !self.paths.iter().any(|(known, _)| known == path) {
                self.paths.push_back((path.clone(), now));
            }
        }
    }

    /// Adds a new checkpoint, writes the state file, then deletes what is too old: at no moment does the
    /// state file name a checkpoint that is gone.
    pub(super) fn add(&mut self, dir: &str, path: &str) -> Result<()> {
        self.paths.retain(|(known, _)| known != path);
        self.paths.push_back((path.to_owned(), SystemTime::now()));
        let mut old = Vec::new();
        while self.max > 0 && self.paths.len() > self.max {
            if let Some((oldest, _)) = self.paths.pop_front() {
                old.push(oldest);
            }
        }
        let all: Vec<&str> = self
            .paths
            .iter()
            .map(|(path, _)| inside(dir, path))
            .collect();
        write_state(dir, STATE_FILE, &state_of(dir, inside(dir, path), &all))?;
        for oldest in old {
            if Instant::now() >= self.keep_next_after {
                self.keep_next_after += self.keep_every;
                continue;
            }
            delete(&oldest);
        }
        Ok(())
    }
}

/// A path as the state file of an absolute directory names it: from there on if it is inside, so that the directory can
/// be moved and copied. A state that named the old place would let the copy restore, and prune, the original.
fn inside<'a>(dir: &str, path: &'a str) -> &'a str {
    if !dir.starts_with('/') {
        return path;
    }
    let relative = Path::new(path).strip_prefix(dir).ok();
    relative.and_then(Path::to_str).unwrap_or(path)
}

/// Deletes the files of a checkpoint. One that cannot be deleted only takes room.
fn delete(prefix: &str) {
    let Ok(fs) = fs::for_path(prefix) else { return };
    let data = fs.glob(&format!("{prefix}.data-?????-of-?????"));
    let mut files = data.unwrap_or_default();
    files.push(format!("{prefix}.index"));
    files.push(format!("{prefix}.meta"));
    for file in files {
        if let Err(status) = fs.delete_file(&file) {
            tracing::warn!("old checkpoint file {file} stays: {}", status.message());
        }
    }
}
