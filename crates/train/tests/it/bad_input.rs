//! What users do wrong, and what they are told.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tensorfleet_client::{Code, Graph, Result, Session, Status, Tensor, init};
use tensorfleet_rpc::LocalCluster;
use tensorfleet_train::{
    MonitoredSession, MonitoredTrainingSession, NanTensorHook, Saver, latest_checkpoint,
};

use crate::cluster::{Line, train};

fn refused(started: Result<MonitoredSession>, code: Code, words: &[&str]) {
    says(&started.err().expect("it is refused"), code, words);
}

/// Culprit and remedy are named.
fn says(status: &Status, code: Code, words: &[&str]) {
    assert_eq!(status.code(), code, "{status}");
    for word in words {
        assert!(
            status.message().contains(word),
            "{word} is not in: {status}"
        );
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_named_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("checkpoints");
    let below = below.to_str().unwrap();
    let line = Line::on("");
    let started = line.session("", below).start();
    let status = started.err().expect("it is refused");
    assert!(status.message().contains(below), "{status}");
    assert!(status.message().contains("permissions"), "{status}");
    // Where root may write anywhere this cannot fail.
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o500)).unwrap();
    if std::fs::write(closed.join("probe"), "").is_err() {
        let line = Line::on("");
        let started = line.session("", closed.to_str().unwrap()).start();
        refused(started, Code::PermissionDenied, &["closed", "permissions"]);
    }
}

#[test]
fn a_second_chief_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let (one, two) = (Line::on(""), Line::on(""));
    let first = one.session("", dir).start().unwrap();
    let second = two.session("", dir).start();
    refused(
        second,
        Code::FailedPrecondition,
        &["another chief", "--task_index", dir],
    );
    first.close().unwrap();
    let three = Line::on("");
    three.session("", dir).start().unwrap().close().unwrap();
}

/// It initialises the variables that the first one trains.
#[test]
fn a_second_chief_with_another_directory_is_noticed() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let lines = [0, 1].map(|_| Line::on("/job:ps/task:0"));
    let start = |index: usize| {
        let target = cluster.target("worker", index as u32).unwrap();
        let session = lines[index].session(target, dirs[index].path().to_str().unwrap());
        session.save_checkpoint_steps(5).start().unwrap()
    };
    let mut first = start(0);
    for _ in 0..6 {
        first.run_fed(&lines[0].feeds(), &lines[0].train).unwrap();
    }
    start(1).close().unwrap();
    let dir = dirs[0].path().to_str().unwrap();
    assert_went_back(&first.close().unwrap_err(), dir);
}

/// Nothing was saved after step 5.
fn assert_went_back(status: &Status, dir: &str) {
    let words = ["from 5 back to 0", "second chief", dir];
    says(status, Code::FailedPrecondition, &words);
    assert!(latest_checkpoint(dir).unwrap().unwrap().ends_with("-5"));
}

#[test]
fn a_damaged_checkpoint_is_refused_and_an_older_one_still_good() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let line = Line::on("");
    train(&line, line.session("", path).save_checkpoint_steps(10), 20);
    let latest = latest_checkpoint(path).unwrap().unwrap();
    let data = format!("{latest}.data-00000-of-00001");
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[0] ^= 0x40;
    std::fs::write(&data, bytes).unwrap();
    let again = Line::on("");
    refused(
        again.session("", path).start(),
        Code::DataLoss,
        &[latest.as_str(), "checkpoint verify", "an older one"],
    );
    let older = format!("{path}/model.ckpt-10");
    assert!(Path::new(&format!("{older}.index")).exists());
    let older_one = Line::on("");
    let session = older_one.session("", path).checkpoint_path(&older).start();
    session.unwrap().close().unwrap();
}

#[test]
fn a_copy_of_a_directory_stands_alone_and_a_checkpoint_that_is_gone_is_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    let line = Line::on("");
    train(&line, line.session("", first).save_checkpoint_steps(10), 20);
    let latest = latest_checkpoint(first).unwrap().unwrap();
    std::fs::rename(first, second).unwrap();
    let moved = latest_checkpoint(second).unwrap().unwrap();
    assert_eq!(moved, latest.replace("/first/", "/second/"));
    let again = Line::on("");
    train(&again, again.session("", second), 25);
    assert!(!Path::new(first).exists());

    let latest = latest_checkpoint(second).unwrap().unwrap();
    std::fs::remove_file(format!("{latest}.index")).unwrap();
    let gone = Line::on("");
    let parts = [latest.as_str(), "not there", "remove it"];
    refused(gone.session("", second).start(), Code::NotFound, &parts);
}

#[test]
fn another_shape_or_a_missing_variable_is_named_before_anything_changes() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = format!("{}/m", dir.path().to_str().unwrap());
    let g = Graph::new();
    let w = g.variable("w", &[2]).initializer(init::ones()).build();
    let saver = Saver::new(&g).unwrap();
    let session = Session::new(&g).unwrap();
    session.run(w.initializer()).unwrap();
    saver.save(&session, &prefix, None).unwrap();

    let restore = |dims: &[i64], more: bool| {
        let g = Graph::new();
        g.variable("w", dims).build();
        if more {
            g.variable("extra", &[1]).build();
        }
        let saver = Saver::new(&g).unwrap();
        saver.restore(&Session::new(&g).unwrap(), &prefix)
    };
    let status = restore(&[3], false).unwrap_err();
    let words = [
        "variable w",
        "[2]",
        "[3]",
        &prefix,
        "leave the variable out",
    ];
    says(&status, Code::InvalidArgument, &words);
    let status = restore(&[2], true).unwrap_err();
    says(&status, Code::NotFound, &["extra", "1 of 2", "found_in"]);
    restore(&[2], false).unwrap();
}

#[test]
fn a_loss_that_is_no_number_ends_training_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let line = Line::on("");
    // Every step is saved, but for one with such a loss.
    let session = line.session("", dir).save_checkpoint_steps(1);
    let session = session.hook(NanTensorHook::new(&line.loss));
    let mut session = session.start().unwrap();
    let [(x, xs), (y, ys)] = line.feeds();
    session
        .run_fed(&[(x, xs.clone()), (y, ys)], &line.train)
        .unwrap();
    let nan = Tensor::from_slice(xs.shape().clone(), &[f32::NAN; 4]).unwrap();
    let status = session
        .run_fed(&[(x, xs), (y, nan)], &line.train)
        .unwrap_err();
    let words = ["NaN", &line.loss.name(), "learning rate"];
    says(&status, Code::InvalidArgument, &words);
    assert!(session.should_stop());
    session.close().unwrap();
    assert!(latest_checkpoint(dir).unwrap().unwrap().ends_with("-1"));
}

#[test]
fn a_step_that_goes_backwards_overwrites_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let line = Line::on("");
    let mut session = line
        .session("", dir)
        .save_checkpoint_steps(5)
        .start()
        .unwrap();
    for _ in 0..6 {
        session.run_fed(&line.feeds(), &line.train).unwrap();
    }
    let init = line.graph.operation("init").unwrap();
    session.raw_session().unwrap().run(&init).unwrap();
    assert_went_back(&session.close().unwrap_err(), dir);
}

#[test]
fn a_cluster_that_is_not_there_is_named_after_a_time() {
    let mut cluster = LocalCluster::start(&[("ps", 2), ("worker", 1)]).unwrap();
    let target = cluster.target("worker", 0).unwrap().to_owned();
    let start = |is_chief: bool| {
        let line = Line::on("/job:ps/task:1");
        let session = MonitoredTrainingSession::new(&line.graph).target(&target);
        let session = session.is_chief(is_chief);
        session.max_wait(Duration::from_secs(1)).start()
    };
    cluster.kill_task("ps", 1).unwrap();
    for is_chief in [true, false] {
        let started = start(is_chief);
        let words = ["/job:ps/replica:0/task:1", "refused"];
        refused(started, Code::DeadlineExceeded, &words);
    }
    // Not even the server of this task.
    cluster.kill_task("worker", 0).unwrap();
    let address = target.strip_prefix("grpc://").unwrap();
    refused(start(true), Code::DeadlineExceeded, &[address, "refused"]);
}

#[test]
fn a_worker_without_a_chief_is_told_after_its_time() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 1)]).unwrap();
    let line = Line::on("/job:ps/task:0");
    let started = MonitoredTrainingSession::new(&line.graph)
        .target(cluster.target("worker", 0).unwrap())
        .is_chief(false)
        .max_wait(Duration::from_millis(300))
        .start();
    refused(started, Code::DeadlineExceeded, &["global_step", "chief"]);
}
