//! `checkpoint`: a checkpoint by its prefix, or the latest of a directory.

use std::path::Path;

use crate::binary::{fails, json, stdout, tensorfleet};

/// One that TensorFlow wrote.
const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tensorfleet/examples/data/tensorflow/model.ckpt-5"
);

/// Copies a checkpoint under a new name.
fn copy(dir: &Path, name: &str) {
    for suffix in [".index", ".data-00000-of-00001"] {
        let to = dir.join(format!("{name}{suffix}"));
        std::fs::copy(format!("{EXAMPLE}{suffix}"), to).unwrap();
    }
}

/// Says which checkpoint of a directory is the latest.
fn state(dir: &Path, latest: &str) {
    let text = format!("model_checkpoint_path: \"{latest}\"\n");
    std::fs::write(dir.join("checkpoint"), text).unwrap();
}

#[test]
fn a_directory_is_its_latest_checkpoint() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().to_str().unwrap();
    copy(temp.path(), "model.ckpt-5");
    copy(temp.path(), "model.ckpt-10");
    state(temp.path(), "model.ckpt-5");
    let latest = format!("{dir}/model.ckpt-5");
    for command in ["list", "show", "verify"] {
        // People are told which one it is.
        let text = stdout(&["checkpoint", command, dir]);
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(first, format!("{latest}:"), "{command}");
        assert_eq!(rest, stdout(&["checkpoint", command, &latest]), "{command}");
        let by_dir = json(&["checkpoint", command, dir, "--json"]);
        let by_prefix = json(&["checkpoint", command, &latest, "--json"]);
        assert_eq!(by_dir, by_prefix, "{command}");
    }
    let listed = json(&["checkpoint", "list", dir, "--json"]);
    assert_eq!(listed["prefix"], latest.as_str());
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().to_str().unwrap();
    let check = |checkpoint: &str, words: &[&str]| {
        for command in ["list", "show", "verify"] {
            let command = &mut tensorfleet(&["checkpoint", command, checkpoint]);
            fails(command, 1, words);
        }
    };
    check(dir, &[dir, "\"checkpoint\"", "there are none"]);
    copy(temp.path(), "model.ckpt-5");
    check(dir, &["name one of model.ckpt-5"]);
    state(temp.path(), "model.ckpt-7");
    check(dir, &["model.ckpt-7", "not there"]);
    let wrong = format!("{dir}/model.ckpt-6");
    check(
        &wrong,
        &[&wrong, "model.ckpt-6.index is missing", "directory"],
    );
}
