//! Tasks are lost while a model is trained.

use std::sync::mpsc;

use tensorfleet_rpc::LocalCluster;
use tensorfleet_train::{StopAtStepHook, latest_checkpoint};

use crate::cluster::{Line, train};

fn step_of(path: &str) -> i64 {
    path.rsplit_once('-').unwrap().1.parse().unwrap()
}

#[test]
fn training_goes_on_when_the_ps_was_killed_three_times() {
    const EVERY: i64 = 20;
    let mut cluster = LocalCluster::start(&[("ps", 1), ("worker", 1)]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap().to_owned();
    let target = cluster.target("worker", 0).unwrap().to_owned();
    let (tell, told) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let trainer = std::thread::spawn({
        let dir = dir.clone();
        move || {
            let line = Line::on("/job:ps/task:0");
            let session = line.session(&target, &dir).save_checkpoint_steps(EVERY);
            let mut session = session.hook(StopAtStepHook::at(300)).start().unwrap();
            let (mut runs, mut kills, mut loss) = (0, 0, f32::MAX);
            while !session.should_stop() {
                let (value, ()) = session
                    .run_fed(&line.feeds(), (&line.loss, &line.train))
                    .unwrap();
                loss = value.to_scalar::<f32>().unwrap();
                runs += 1;
                if kills < 3 && runs % 70 == 0 {
                    kills += 1;
                    tell.send(()).unwrap();
                    wait.recv().unwrap();
                }
            }
            let recoveries = session.recoveries();
            session.close().unwrap();
            (runs, recoveries, loss)
        }
    });
    for _ in 0..3 {
        told.recv().unwrap();
        cluster.kill_task("ps", 0).unwrap();
        cluster.start_task("ps", 0).unwrap();
        go_on.send(()).unwrap();
    }
    let (runs, recoveries, loss) = trainer.join().unwrap();
    assert!(loss < 1e-3, "{loss}");
    assert_eq!(recoveries, 3);
    assert_eq!(step_of(&latest_checkpoint(&dir).unwrap().unwrap()), 300);
    // What is lost is at most what was done since the last checkpoint, and the step that failed.
    let lost = runs - 300;
    assert!(lost <= 3 * (EVERY + 1), "{lost} steps were lost");
}

#[test]
fn a_worker_that_comes_back_goes_on() {
    let mut cluster = LocalCluster::start(&[("ps", 1), ("worker", 1)]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let first = Line::on("/job:ps/task:0");
    let target = cluster.target("worker", 0).unwrap().to_owned();
    train(&first, first.session(&target, dir), 30);
    cluster.kill_task("worker", 0).unwrap();
    cluster.start_task("worker", 0).unwrap();
    let second = Line::on("/job:ps/task:0");
    let mut session = second
        .session(&target, dir)
        .hook(StopAtStepHook::after(10))
        .start()
        .unwrap();
    let mut runs = 0;
    while !session.should_stop() {
        session.run_fed(&second.feeds(), &second.train).unwrap();
        runs += 1;
    }
    session.close().unwrap();
    assert_eq!(runs, 10);
    assert_eq!(step_of(&latest_checkpoint(dir).unwrap().unwrap()), 40);
}
