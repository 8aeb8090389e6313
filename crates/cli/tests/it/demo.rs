//! `demo`: a cluster that trains, dies in parts and comes back.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::binary::{Served, fails, json, stdout, tensorfleet};

/// The JSON lines of a demo that ended well.
#[track_caller]
fn events(dir: &Path, flags: &[&str]) -> Vec<Value> {
    let dir = dir.to_str().unwrap();
    let common = ["demo", "--json", "--batch_size=16", "--dir", dir];
    let text = stdout(&[&common, flags].concat());
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Whether a note says all this.
fn noted(events: &[Value], words: &[&str]) -> bool {
    events.iter().any(|event| {
        let text = event["text"].as_str().unwrap_or_default();
        words.iter().all(|word| text.contains(word))
    })
}

#[test]
fn training_outlives_its_tasks_and_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--steps=100", "--kill-a-ps", "--kill-a-worker"];
    let events = events(dir.path(), &flags);
    assert_eq!(events[0]["event"], "ready");
    assert_eq!(events[0]["tasks"].as_array().unwrap().len(), 4);
    for words in [
        ["ps 1 is dead", "SIGKILL"],
        ["ps 1", "serves again"],
        ["worker 0", "is back at step"],
        ["worker 1 is dead", "SIGKILL"],
        ["worker 1", "serves again"],
    ] {
        assert!(noted(&events, &words), "{words:?} is not in {events:#?}");
    }
    let done = events.last().unwrap();
    assert_eq!(done["event"], "done", "{events:#?}");
    assert!(done["step"].as_u64().unwrap() >= 100, "{done}");
    // A tenth would be chance.
    assert!(done["accuracy"].as_f64().unwrap() > 0.3, "{done}");
    let checkpoint = done["checkpoint"].as_str().unwrap();
    let tensors = json(&["checkpoint", "list", checkpoint, "--json"]).to_string();
    for name in ["network/conv1/kernel", "network/dense/bias", "global_step"] {
        assert!(tensors.contains(name), "'{name}' is not in {tensors}");
    }
    let files = std::fs::read_dir(dir.path()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().any(|name| name.starts_with("events.out")));

    // There is nothing left to train up to a step that is past.
    let path = dir.path().to_str().unwrap();
    let text = stdout(&["demo", "--steps=100", "--dir", path]);
    assert!(text.starts_with("nothing to train"), "{text}");
    for word in [path, "is at step 10", "--steps 100", "goes on"] {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
    let past = json(&["demo", "--json", "--steps=7", "--dir", path]);
    assert_eq!(past["event"], "done");
    assert_eq!(past["checkpoint"], done["checkpoint"]);

    // The next one begins where this one ended, and stays up.
    let flags = ["demo", "--json", "--steps=110", "--keep", "--dir", path];
    let mut kept = Served::spawn(tensorfleet(&flags).stderr(Stdio::piped()));
    let mut events: Vec<Value> = Vec::new();
    while events.last().is_none_or(|event| event["event"] != "done") {
        events.push(serde_json::from_str(&kept.line()).unwrap());
    }
    let again = ["worker 0 begins to train at step 10"];
    assert!(noted(&events, &again), "{events:#?}");
    let target = events.last().unwrap()["target"].as_str().unwrap();
    let devices = json(&["devices", target, "--json"]);
    assert_eq!(devices["devices"].as_array().unwrap().len(), 4);
    kept.signal("INT");
    assert_eq!(kept.end().code(), Some(0), "{}", kept.errors());
}

#[test]
fn people_get_lines_where_there_is_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let flags = ["--ps=1", "--workers=1", "--steps=3", "--batch_size=8"];
    let text = stdout(&[&["demo", "--dir", path], &flags[..]].concat());
    for word in [
        "ps 0 serves at localhost:",
        "worker 0 begins to train",
        " of 3  loss ",
        "test accuracy",
        "tensorboard --logdir",
        "checkpoint list",
        "demo --keep",
    ] {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn misuse_is_explained() {
    fails(&mut tensorfleet(&["demo", "--ps=0"]), 2, &["--ps"]);
    fails(&mut tensorfleet(&["demo", "--steps=0"]), 2, &["--steps"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let inside = file.path().join("dir");
    let inside = inside.to_str().unwrap();
    fails(
        &mut tensorfleet(&["demo", "--dir", inside]),
        1,
        &["--dir", inside],
    );
}

#[test]
fn a_signal_stops_all_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let flags = ["demo", "--json", "--steps=1000000", "--dir", path];
    let mut demo = Served::spawn(&mut tensorfleet(&flags));
    let ready: Value = serde_json::from_str(&demo.ready).unwrap();
    demo.signal("INT");
    assert_eq!(demo.end().code(), Some(130));
    for task in ready["tasks"].as_array().unwrap() {
        let pid = task["pid"].as_u64().unwrap();
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{task}");
    }
}
