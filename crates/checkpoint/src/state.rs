//! The `checkpoint` state file: which checkpoint of a directory is the latest, and which others exist.
//!
//! A text `CheckpointState`. Paths are kept absolute if they are so; relative ones are stored relative
//! to the directory, so that it can be moved, and the reader puts the directory before them.

use std::path::{Component, Path, PathBuf};

use tensorfleet_proto::{CheckpointState, text};
use tensorfleet_status::{Code, Result, invalid_argument, not_found};

use crate::bundle::index_file_name;
use crate::fs::{for_path, join, split_scheme};

/// Name of the state file unless told otherwise.
pub const STATE_FILE: &str = "checkpoint";

/// State files larger than this are not read.
const MAX_STATE_BYTES: u64 = 16 << 20;

/// The state of a directory whose latest checkpoint is `latest`. `all` are the checkpoints that exist,
/// oldest first; the latest is put last if it is not there.
pub fn state_of(dir: &str, latest: &str, all: &[&str]) -> CheckpointState {
    let stored = |path: &str| {
        if is_absolute(dir) || is_absolute(path) {
            path.to_owned()
        } else {
            relative_to(path, dir)
        }
    };
    let mut paths: Vec<&str> = all.to_vec();
    if paths.last() != Some(&latest) {
        paths.push(latest);
    }
    CheckpointState {
        model_checkpoint_path: stored(latest),
        all_model_checkpoint_paths: paths.into_iter().map(stored).collect(),
        ..CheckpointState::default()
    }
}

/// Writes the state file of a directory, whole or not at all.
pub fn write_state(dir: &str, file_name: &str, state: &CheckpointState) -> Result<()> {
    let path = join(dir, file_name);
    for_path(&path)?.write_atomic(&path, text::print(state).as_bytes())
}

/// Reads the state file of a directory; `None` if there is none. Relative paths get `dir` put before them.
pub fn read_state(dir: &str, file_name: &str) -> Result<Option<CheckpointState>> {
    let path = join(dir, file_name);
    let bytes = match for_path(&path)?.read(&path, MAX_STATE_BYTES) {
        Ok(bytes) => bytes,
        Err(status) if status.code() == Code::NotFound => return Ok(None),
        Err(status) => return Err(status),
    };
    let content = String::from_utf8_lossy(&bytes);
    let mut state: CheckpointState =
        text::parse(&content).map_err(|error| invalid_argument!("{path}: {error}"))?;
    if state.model_checkpoint_path.is_empty() {
        return Err(invalid_argument!(
            "Invalid checkpoint state loaded from {dir}"
        ));
    }
    let resolve = |stored: &mut String| {
        if !is_absolute(stored) {
            *stored = join(dir, stored);
        }
    };
    resolve(&mut state.model_checkpoint_path);
    state
        .all_model_checkpoint_paths
        .iter_mut()
        .for_each(resolve);
    Ok(Some(state))
}

/// The prefix of the latest checkpoint of a directory, if its state file names one whose index exists.
pub fn latest_checkpoint(dir: &str) -> Result<Option<String>> {
    let Some(state) = read_state(dir, STATE_FILE)? else {
        return Ok(None);
    };
    let prefix = state.model_checkpoint_path;
    let found = for_path(&prefix)?.exists(&index_file_name(&prefix));
    Ok(found.then_some(prefix))
}

/// Like [`latest_checkpoint`], for those who mean to read it: a checkpoint that is named but not there is NOT_FOUND.
///
/// ```
/// use tensorfleet_checkpoint::state::{STATE_FILE, latest_checkpoint, named_checkpoint, state_of, write_state};
///
/// let temp = tempfile::tempdir().unwrap();
/// let dir = temp.path().to_str().unwrap();
/// assert_eq!(named_checkpoint(dir)?, None);
/// write_state(dir, STATE_FILE, &state_of(dir, "model.ckpt-5", &[]))?;
/// assert_eq!(latest_checkpoint(dir)?, None);
/// assert!(named_checkpoint(dir).unwrap_err().message().contains("model.ckpt-5"));
/// # Ok::<(), tensorfleet_status::Status>(())
/// ```
pub fn named_checkpoint(dir: &str) -> Result<Option<String>> {
    let found = latest_checkpoint(dir)?;
    if let (None, Some(state)) = (&found, read_state(dir, STATE_FILE)?) {
        return Err(not_found!(
            "{dir}/{STATE_FILE} names {}, which is not there; if the directory was moved or copied, mend the paths in that file; to begin anew, remove it",
            state.model_checkpoint_path
        ));
    }
    Ok(found)
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || !split_scheme(path).0.is_empty()
}

/// `path` as seen from `dir`, both relative to the working directory.
fn relative_to(path: &str, dir: &str) -> String {
    // The working directory only matters where `..` leads out of both.
    let base = std::env::current_dir().unwrap_or_default();
    let (path, dir) = (normal(&base.join(path)), normal(&base.join(dir)));
    let common = path
        .components()
        .zip(dir.components())
        .take_while(|(a, b)| a == b)
        .count();
    let mut relative = PathBuf::new();
    for _ in dir.components().skip(common) {
        relative.push("..");
    }
    relative.extend(path.components().skip(common));
    if relative.as_os_str().is_empty() {
        return ".".to_owned();
    }
    relative.to_string_lossy().into_owned()
}

/// The path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_stored_relative_to_the_directory() {
        let check = |dir: &str, latest: &str, expected: &str| {
            assert_eq!(state_of(dir, latest, &[]).model_checkpoint_path, expected);
        };
        check("c", "c/model-5", "model-5");
        check("c/", "./c/model-5", "model-5");
        check("c", "model-5", "../model-5");
        check("c", "other/model-5", "../other/model-5");
        check("c", "/abs/model-5", "/abs/model-5");
        check("/c", "model-5", "model-5");
        check("gs://c", "gs://c/model-5", "gs://c/model-5");
    }

    #[test]
    fn state_file_round_trips_and_finds_the_latest() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().display().to_string();
        assert_eq!(latest_checkpoint(&dir).unwrap(), None);
        let mut state = state_of(&dir, "model-5", &["model-1"]);
        state.last_preserved_timestamp = 2.5;
        write_state(&dir, STATE_FILE, &state).unwrap();
        let read = read_state(&dir, STATE_FILE).unwrap().unwrap();
        assert_eq!(read.model_checkpoint_path, format!("{dir}/model-5"));
        assert_eq!(
            read.all_model_checkpoint_paths,
            [format!("{dir}/model-1"), format!("{dir}/model-5")]
        );
        assert_eq!(latest_checkpoint(&dir).unwrap(), None);
        std::fs::write(temp.path().join("model-5.index"), b"").unwrap();
        assert_eq!(
            latest_checkpoint(&dir).unwrap(),
            Some(format!("{dir}/model-5"))
        );
        std::fs::write(temp.path().join(STATE_FILE), "model_checkpoint_path: 5").unwrap();
        assert_eq!(
            latest_checkpoint(&dir).unwrap_err().code(),
            Code::InvalidArgument
        );
        std::fs::write(temp.path().join(STATE_FILE), "").unwrap();
        assert!(latest_checkpoint(&dir).is_err());
    }
}
