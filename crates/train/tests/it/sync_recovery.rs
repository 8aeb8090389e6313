//! Tasks are lost while workers step together.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tensorfleet_client::{Graph, Operation, Output, Result, Session};
use tensorfleet_rpc::LocalCluster;
use tensorfleet_tensor::Element;
use tensorfleet_train::{
    Coordinator, MonitoredSession, MonitoredTrainingSession, SessionRunHook,
    get_or_create_global_step,
};

use crate::cluster::PATIENCE;
use crate::sync_replicas::{LAST_STEP, Replica};

/// Steps between checkpoints; the last step is none of them.
const EVERY: i64 = 25;

/// The second worker, which trains to the end without tokens in advance.
fn other_worker(cluster: &LocalCluster, ps: usize) -> thread::JoinHandle<f32> {
    let target = cluster.target("worker", 1).unwrap().to_owned();
    thread::spawn(move || {
        let replica = Replica::new(1, ps, 2);
        replica.train(replica.session(&target, false, Some(0)))
    })
}

fn ops_named(replica: &Replica, part: &str) -> Vec<Operation> {
    let all = replica.graph.operations().into_iter();
    all.filter(|op| op.name().contains(part)).collect()
}

/// The worst moment to lose a chief: the gradients are taken, and nobody has got a token.
#[test]
fn a_chief_that_comes_back_pays_the_tokens_that_a_lost_one_owed() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let target = cluster.target("worker", 0).unwrap();
    let lost = Replica::new(0, 1, 2);
    let mut hook = lost.hook(true, Some(0));
    let init = lost.graph.global_variables_initializer();
    let session = Session::connect(&lost.graph, target).unwrap();
    session.run(&init).unwrap();
    let coordinator = Coordinator::new();
    hook.after_create_session(&session, &coordinator).unwrap();
    coordinator.request_stop();
    session.close().unwrap();
    coordinator.join(PATIENCE).unwrap();

    let other = other_worker(&cluster, 1);
    let session = Session::connect(&lost.graph, target).unwrap();
    let applied = ops_named(&lost, "AccumulatorApplyGradient");
    session.run_fed(&lost.feeds(), &applied).unwrap();
    let wanted = ops_named(&lost, "sync_replicas/ResourceAccumulatorTakeGradient");
    // Waits for the other worker's gradients.
    session.run(&wanted).unwrap();
    session.close().unwrap();

    let chief = Replica::new(0, 1, 2);
    let loss = chief.train(chief.session(target, true, Some(0)));
    assert!(loss < 0.05, "{loss}");
    other.join().unwrap();
}

/// A worker that has seen the last step is needed again if the chief is lost before it has saved that step.
#[test]
fn a_worker_does_not_leave_before_its_chief() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let target = cluster.target("worker", 0).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let saving = |session: MonitoredTrainingSession| {
        session
            .checkpoint_dir(dir)
            .save_checkpoint_steps(EVERY)
            .max_wait(PATIENCE)
    };
    let other = other_worker(&cluster, 1);
    let lost = Replica::new(0, 1, 2);
    // It knows no end.
    let session = MonitoredTrainingSession::new(&lost.graph).target(target);
    let mut session = saving(session.hook(lost.hook(true, Some(0))))
        .start()
        .unwrap();
    for _ in 0..LAST_STEP {
        session.run_fed(&lost.feeds(), &lost.train).unwrap();
    }
    drop(session);
    let chief = Replica::new(0, 1, 2);
    let loss = chief.train(saving(chief.session(target, true, Some(0))));
    assert!(loss < 0.05, "{loss}");
    other.join().unwrap();
    // One that begins at the last step has nobody to step with, and nothing to do.
    let late = Replica::new(0, 1, 2);
    assert_eq!(
        late.train(saving(late.session(target, true, Some(0)))),
        f32::MAX
    );
}

fn run_scalar<T: Element>(session: &MonitoredSession, output: &Output) -> T {
    let value = session.raw_session().unwrap().run(output).unwrap();
    value.to_scalar::<T>().unwrap()
}

/// A worker that has seen the last step must not take the token that a slower chief needs to see it too.
#[test]
fn a_worker_that_is_done_leaves_the_tokens_to_others() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let target = cluster.target("worker", 0).unwrap();
    // One gradient makes a step, which pays two tokens: the other worker makes all of them alone.
    let chief = Replica::new(0, 1, 1);
    let step = get_or_create_global_step(&chief.graph).unwrap().read();
    let tokens = chief.graph.operation("sync_token_q").unwrap();
    let left = chief.graph.op("QueueSizeV2").input(tokens.output(0));
    let left = left.colocate_with(&tokens).output();
    let session = chief.session(target, true, Some(0)).max_wait(PATIENCE);
    let mut session = session.start().unwrap();
    let other_target = cluster.target("worker", 1).unwrap().to_owned();
    let other = thread::spawn(move || {
        let replica = Replica::new(1, 1, 1);
        replica.train(replica.session(&other_target, false, Some(0)))
    });
    let began = Instant::now();
    while run_scalar::<i64>(&session, &step) < LAST_STEP {
        assert!(began.elapsed() < PATIENCE, "the other worker does not step");
        thread::sleep(Duration::from_millis(10));
    }
    // Time enough to take what it should not.
    thread::sleep(Duration::from_millis(300));
    assert!(run_scalar::<i32>(&session, &left) > 0, "no token is left");
    session.run_fed(&chief.feeds(), &chief.train).unwrap();
    assert!(session.should_stop());
    session.close().unwrap();
    other.join().unwrap();
}

/// Holds a session up before it is opened.
struct Delay {
    here: mpsc::Sender<()>,
    go: mpsc::Receiver<()>,
}

impl SessionRunHook for Delay {
    fn begin(&mut self, _: &Graph) -> Result<()> {
        self.here.send(()).unwrap();
        self.go.recv_timeout(PATIENCE).unwrap();
        Ok(())
    }
}

/// A training may be over before the slowest worker has come: it must not wait for the next one.
#[test]
fn a_worker_that_comes_after_the_end_leaves() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let ((here, is_here), (goes, go)) = (mpsc::channel(), mpsc::channel());
    let target = cluster.target("worker", 1).unwrap().to_owned();
    let late = thread::spawn(move || {
        let replica = Replica::new(1, 1, 1);
        let session = replica.session(&target, false, None);
        replica.train(session.hook(Delay { here, go }))
    });
    is_here.recv_timeout(PATIENCE).unwrap();
    let chief = Replica::new(0, 1, 1);
    let target = cluster.target("worker", 0).unwrap();
    chief.train(chief.session(target, true, None));
    let ended = Instant::now();
    goes.send(()).unwrap();
    assert_eq!(late.join().unwrap(), f32::MAX, "it made a step");
    // It would look for the chief of another training for a minute.
    assert!(ended.elapsed() < PATIENCE / 2, "{:?}", ended.elapsed());
}

/// The chief waits for a token on one parameter server, its thread for gradients on both; the other server is lost.
#[test]
fn a_chief_that_waits_for_a_token_hears_of_a_lost_ps() {
    let mut cluster = LocalCluster::start(&[("ps", 2), ("worker", 2)]).unwrap();
    let target = cluster.target("worker", 0).unwrap().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let chief = thread::spawn(move || {
        let chief = Replica::new(0, 2, 2);
        let session = chief.session(&target, true, Some(0));
        chief.train(session.checkpoint_dir(&path).save_checkpoint_steps(EVERY))
    });
    wait_for_first_gradients(&cluster);
    cluster.kill_task("ps", 1).unwrap();
    cluster.start_task("ps", 1).unwrap();
    let other = other_worker(&cluster, 2);
    let loss = chief.join().unwrap();
    assert!(loss < 0.05, "{loss}");
    other.join().unwrap();
}

/// Until each variable has one.
fn wait_for_first_gradients(cluster: &LocalCluster) {
    let replica = Replica::new(1, 2, 2);
    let session = Session::connect(&replica.graph, cluster.target("worker", 1).unwrap()).unwrap();
    let began = Instant::now();
    for count in ops_named(&replica, "NumAccumulated") {
        let count = count.output(0);
        while session.run(&count).unwrap().to_scalar::<i32>().unwrap() == 0 {
            assert!(began.elapsed() < PATIENCE, "the chief gives no gradients");
            thread::sleep(Duration::from_millis(10));
        }
    }
    session.close().unwrap();
}
