//! What a master leaves on other tasks: nothing, whatever goes wrong.

use std::time::{Duration, Instant};

use tensorfleet_proto as pb;
use tensorfleet_proto::services::worker as path;
use tensorfleet_rpc::grpc::CallOptions;
use tensorfleet_rpc::{ConnectOptions, Session};
use tensorfleet_session::CallableOptions;
use tensorfleet_status::{Code, invalid_argument};
use tensorfleet_tensor::Tensor;

use crate::cluster::{Script, Scripted, free_address, task};
use crate::common::{PATIENCE, Raw, assert_status, float, session, wait_until};

fn slow(path: &'static str, millis: u64) -> Script {
    Script {
        path,
        delay: Duration::from_millis(millis),
        error: None,
    }
}

fn addresses<const N: usize>() -> [String; N] {
    std::array::from_fn(|_| free_address())
}

/// A node on a task.
fn on(index: usize) -> String {
    format!("c{index} = NoOp() @/job:worker/task:{index}/device:CPU:0\n")
}

#[test]
fn a_session_whose_client_is_gone_before_it_is_open_is_closed_everywhere() {
    let addresses = addresses::<3>();
    let (master, worker) = (task(&addresses, 0), task(&addresses, 1));
    let script = vec![slow(path::CREATE_WORKER_SESSION, 1500)];
    let scripted = Scripted::new(&addresses[2], 2, script);
    let begin = Instant::now();
    let options = ConnectOptions {
        timeout: Some(Duration::from_millis(700)),
        ..ConnectOptions::default()
    };
    let gone = Session::connect_with(master.target(), options);
    assert_status(gone.map(drop), Code::DeadlineExceeded, "");
    assert!(begin.elapsed() < PATIENCE);
    let (master, worker) = (Raw::new(master.target()), Raw::new(worker.target()));
    assert_eq!(master.status().sessions, 0);
    let handle = scripted.first(path::CREATE_WORKER_SESSION);
    scripted.wait_for(path::DELETE_WORKER_SESSION, &handle);
    wait_until("the end of all sessions", || {
        master.status().worker_sessions == 0 && worker.status().worker_sessions == 0
    });
}

#[test]
fn a_session_that_one_task_refuses_is_closed_on_the_others() {
    let addresses = addresses::<3>();
    let master = task(&addresses, 0);
    let taken = Scripted::new(&addresses[1], 1, Vec::new());
    let refused = Script {
        path: path::CREATE_WORKER_SESSION,
        error: Some(invalid_argument!("not here")),
        ..Script::default()
    };
    let _refuses = Scripted::new(&addresses[2], 2, vec![refused]);
    let refused = Session::connect(master.target());
    assert_status(refused.map(drop), Code::InvalidArgument, "not here");
    let handle = taken.first(path::CREATE_WORKER_SESSION);
    taken.wait_for(path::DELETE_WORKER_SESSION, &handle);
}

#[test]
fn parts_of_a_graph_that_one_task_refuses_are_forgotten_by_the_others() {
    let addresses = addresses::<3>();
    let master = task(&addresses, 0);
    let taken = Scripted::new(&addresses[1], 1, Vec::new());
    let refused = Script {
        path: path::REGISTER_GRAPH,
        delay: Duration::from_millis(100),
        error: Some(invalid_argument!("not this")),
    };
    let _refuses = Scripted::new(&addresses[2], 2, vec![refused]);
    let session = session(master.target(), &(on(1) + &on(2)));
    let run = session.run(&[], &[], &["c1", "c2"]);
    assert_status(run, Code::InvalidArgument, "not this");
    let handle = taken.first(path::REGISTER_GRAPH);
    taken.wait_for(path::DEREGISTER_GRAPH, &handle);
}

#[test]
fn parts_that_are_registered_after_their_client_is_gone_are_forgotten() {
    let addresses = addresses::<2>();
    let master = task(&addresses, 0);
    let script = vec![slow(path::REGISTER_GRAPH, 1000)];
    let scripted = Scripted::new(&addresses[1], 1, script);
    let raw = Raw::new(master.target());
    let request = pb::RunStepRequest {
        session_handle: raw.open(crate::common::graph(&on(1))),
        target: vec!["c1".to_owned()],
        ..pb::RunStepRequest::default()
    };
    let gone = raw.runtime.block_on(async {
        let options = CallOptions {
            deadline: Some(tokio::time::Instant::now() + Duration::from_millis(300)),
            wait_for_ready: true,
        };
        raw.master.run_step(&request, &options).await
    });
    assert_status(gone, Code::DeadlineExceeded, "");
    scripted.wait_for(path::DEREGISTER_GRAPH, &request.session_handle);
}

#[test]
fn released_callables_are_forgotten_by_other_tasks() {
    let addresses = addresses::<2>();
    let master = task(&addresses, 0);
    let scripted = Scripted::new(&addresses[1], 1, Vec::new());
    let session = session(master.target(), &on(1));
    let callable = session
        .make_callable(CallableOptions {
            targets: vec!["c1".to_owned()],
            ..CallableOptions::default()
        })
        .unwrap();
    session.call_callable(&callable, &[]).unwrap();
    assert!(scripted.called(path::DEREGISTER_GRAPH).is_empty());
    session.release_callable(&callable).unwrap();
    let handle = scripted.first(path::REGISTER_GRAPH);
    scripted.wait_for(path::DEREGISTER_GRAPH, &handle);
    // What is left goes with the session, which needs no further orders.
    session.run(&[], &[], &["c1"]).unwrap();
    session.close().unwrap();
    scripted.wait_for(path::DELETE_WORKER_SESSION, &handle);
    assert_eq!(scripted.called(path::DEREGISTER_GRAPH).len(), 1);
}

#[test]
fn many_sessions_close_at_once() {
    let addresses = addresses::<2>();
    let master = task(&addresses, 0);
    let script = vec![slow(path::DELETE_WORKER_SESSION, 1000)];
    let scripted = Scripted::new(&addresses[1], 1, script);
    let raw = Raw::new(master.target());
    let handles: Vec<String> = (0..20).map(|_| raw.open(pb::GraphDef::default())).collect();
    let begin = Instant::now();
    // One after the other it would take 20 s.
    master.stop();
    master.join();
    assert!(begin.elapsed() < Duration::from_secs(10));
    for handle in &handles {
        assert_eq!(scripted.count(path::DELETE_WORKER_SESSION, handle), 1);
    }
}

#[test]
fn a_client_that_does_not_wait_for_the_end_of_its_session_does_not_keep_it() {
    let addresses = addresses::<2>();
    let master = task(&addresses, 0);
    let script = vec![slow(path::DELETE_WORKER_SESSION, 500)];
    let scripted = Scripted::new(&addresses[1], 1, script);
    let raw = Raw::new(master.target());
    let request = pb::CloseSessionRequest {
        session_handle: raw.open(pb::GraphDef::default()),
    };
    let gone = raw.runtime.block_on(async {
        let options = CallOptions {
            deadline: Some(tokio::time::Instant::now() + Duration::from_millis(100)),
            wait_for_ready: true,
        };
        raw.master.close_session(&request, &options).await
    });
    assert_status(gone, Code::DeadlineExceeded, "");
    scripted.wait_for(path::DELETE_WORKER_SESSION, &request.session_handle);
}

#[test]
fn the_same_feeds_fetches_and_targets_in_another_order_are_prepared_once() {
    let addresses = addresses::<2>();
    let master = task(&addresses, 0);
    let scripted = Scripted::new(&addresses[1], 1, Vec::new());
    let text = "a = Placeholder() {dtype=DT_FLOAT}
         b = Placeholder() {dtype=DT_FLOAT}
         minus = Sub(a, b)
         twice = AddV2(a, a)
         c0 = NoOp() @/job:worker/task:0\n"
        .to_owned()
        + &on(1);
    let session = session(master.target(), &text);
    let (a, b) = (("a:0", float(5.0)), ("b:0", float(3.0)));
    let forth = session.run(
        &[a.clone(), b.clone()],
        &["minus:0", "twice:0"],
        &["c0", "c1"],
    );
    let back = session.run(&[b, a], &["twice:0", "minus:0"], &["c1", "c0"]);
    let values = |fetched: tensorfleet_status::Result<Vec<Tensor>>| -> Vec<f32> {
        let fetched = fetched.unwrap();
        fetched.iter().map(|x| x.to_scalar().unwrap()).collect()
    };
    assert_eq!(values(forth), [2.0, 10.0]);
    assert_eq!(values(back), [10.0, 2.0]);
    assert_eq!(scripted.called(path::REGISTER_GRAPH).len(), 1);
}

#[test]
fn the_end_of_a_step_is_told_though_no_other_step_follows() {
    let addresses = addresses::<2>();
    let (master, other) = (task(&addresses, 0), task(&addresses, 1));
    let text = "s = int32[1]{2}
                r = RandomStandardNormal(s) {dtype=float} @/job:worker/task:1/device:CPU:0
                n = Neg(r) @/job:worker/task:0/device:CPU:0";
    let session = session(master.target(), text);
    let other = Raw::new(other.target());
    for _ in 0..3 {
        session.run(&[], &["n:0"], &[]).unwrap();
        wait_until("the end of the step", || other.status().steps == 0);
    }
}
