//! Each example runs without arguments, and what it trains gets better.

use tensorfleet::LocalCluster;
use tensorfleet::train::latest_checkpoint;

use crate::program::{Patience, Running, assert_at_last, assert_fall, losses_of};

fn falls(name: &str, args: &[&str], part: f32) -> Vec<(i64, f32)> {
    let losses = losses_of(name, args);
    assert_fall(name, &losses, part);
    losses
}

#[test]
fn hello_says_hello() {
    let said = Running::start("hello", &[]).finish();
    assert!(said.contains("Hello, distributed TensorFlow!"), "{said}");
}

#[test]
fn any_server_and_pin_ops_run() {
    let said = Running::start("any_server", &[]).finish();
    assert_eq!(said.matches("counted to 2").count(), 2, "{said}");
    let said = Running::start("pin_ops", &[]).finish();
    assert!(said.contains("[5.0, 7.0]"), "{said}");
}

#[test]
fn one_worker_trains() {
    falls("drive_tensorflow", &["--log_steps", "1"], 0.1);
    falls("restore_tensorflow", &["--log_steps", "1"], 0.1);
}

#[test]
fn two_workers_train() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    falls("trainer", &["--dir", dir, "--log_steps", "1"], 0.01);
    let newest = latest_checkpoint(dir).unwrap().unwrap();
    assert_at_last(&newest, 300);
}

#[test]
fn a_chief_that_fails_ends_the_program() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let file = file.path().to_str().unwrap();
    for example in ["trainer", "sync_trainer"] {
        let mut running = Running::start(example, &["--dir", file]);
        let mut patience = Patience::new();
        while running.is_running() {
            patience.pause(&running.name, running.output().len());
        }
        let said = running.output();
        assert!(said.contains("Error: ") && said.contains(file), "{said}");
    }
}

#[test]
fn who_waits_for_a_chief_says_so() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let target = cluster.target("worker", 1).unwrap();
    let cluster = "--ps_hosts=localhost:1 --worker_hosts=localhost:2,localhost:3";
    let mut args: Vec<&str> = cluster.split(' ').collect();
    args.extend(["--job_name=worker", "--task_index=1", "--target", target]);
    let mut running = Running::start("trainer", &args);
    let mut patience = Patience::new();
    while !running.output().contains("waiting for the chief for") {
        assert!(running.is_running(), "{}", running.output());
        patience.pause(&running.name, running.output().len());
    }
}

#[test]
fn workers_in_step_train_with_and_without_a_backup() {
    for backups in ["0", "1"] {
        falls(
            "sync_trainer",
            &["--backups", backups, "--log_steps", "1"],
            0.01,
        );
    }
}

/// Four towers with a quarter of the batch each make the same steps as one with all of it.
#[test]
fn four_towers_train_as_one() {
    let four = falls("towers", &[], 0.5);
    let one = falls("towers", &["--towers", "1"], 0.5);
    for (four, one) in four.iter().zip(&one) {
        assert!((four.1 - one.1).abs() < 1e-4 * one.1, "{four:?} {one:?}");
    }
}

#[test]
fn models_train() {
    falls("embeddings", &[], 0.5);
    falls("wide_and_deep", &[], 0.5);
    falls("lstm", &[], 0.2);
}

#[test]
fn datasets_train() {
    let csv = falls("dataset", &["--format", "csv"], 0.05);
    let records = falls("dataset", &["--format", "tfrecord"], 0.05);
    assert_eq!(csv.len(), records.len());
}
