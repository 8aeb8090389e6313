//! The lifecycle on our server, and what only ours promises.

use std::time::Duration;

use tensorfleet_proto as pb;
use tensorfleet_rpc::{ServerOptions, Session};
use tensorfleet_session::CallableOptions;
use tensorfleet_status::Code;

use crate::common::{
    Raw, assert_status, bound, float, graph, run, server, server_with, session, value, variable,
    wait_until,
};
use crate::lifecycle;

/// One test per check, each on a server of its own.
macro_rules! on_our_server {
    ($($check:ident,)+) => {
        $(
            #[test]
            fn $check() {
                lifecycle::$check(server().target());
            }
        )+

        #[test]
        fn every_check_is_a_test() {
            let tests = [$(stringify!($check)),+];
            let checks: Vec<_> = lifecycle::CHECKS.iter().map(|(name, _)| *name).collect();
            assert_eq!(checks, tests);
        }
    };
}

on_our_server! {
    extend_and_run,
    values,
    handles,
    partial_runs,
    callables,
    devices,
    graph_versions,
    unknown_handles,
    repeated_requests,
    wrong_feeds_and_fetches,
    errors_name_their_node,
    shared_state,
    isolated_state,
    deadlines,
    closing_cancels,
    lost_clients,
    traces,
    reset_closes_and_clears,
}

#[test]
fn servers_of_one_process_share_nothing() {
    let (first, second) = (server(), server());
    let (a, b) = (
        session(first.target(), &variable("same")),
        session(second.target(), &variable("same")),
    );
    run(&a, "init").unwrap();
    assert_eq!(value(&a, "value:0").unwrap(), 1.0);
    assert_status(value(&b, "value:0"), Code::FailedPrecondition, "value");
    run(&b, "init").unwrap();
    run(&b, "more").unwrap();
    assert_eq!(value(&a, "value:0").unwrap(), 1.0);
    Session::reset(second.target(), &[]).unwrap();
    assert_eq!(value(&a, "value:0").unwrap(), 1.0);
    assert_eq!((first.session_count(), second.session_count()), (1, 0));
}

#[test]
fn closed_and_dropped_sessions_are_gone() {
    let server = server();
    let (closed, dropped) = (
        session(server.target(), &variable("v")),
        session(server.target(), &variable("v")),
    );
    assert_eq!(server.session_count(), 2);
    closed.close().unwrap();
    assert_eq!(server.session_count(), 1);
    drop(dropped);
    assert_eq!(server.session_count(), 0);
    let status = Raw::new(server.target()).status();
    assert_eq!((status.sessions, status.worker_sessions), (0, 0));
}

#[test]
fn idle_sessions_are_collected_and_busy_ones_are_not() {
    let server = server_with(ServerOptions {
        session_idle: Some(Duration::from_millis(600)),
        ..ServerOptions::default()
    });
    let busy = session(server.target(), &variable("busy"));
    run(&busy, "init").unwrap();
    let abandoned = Raw::new(server.target());
    let handle = abandoned.open(graph("c = float[]{1}"));
    for _ in 0..20 {
        run(&busy, "more").unwrap();
        abandoned.open(graph("c = float[]{1}"));
    }
    drop(abandoned);
    wait_until("the collection", || {
        run(&busy, "more").unwrap();
        server.session_count() == 1
    });
    let step = pb::RunStepRequest {
        session_handle: handle,
        ..pb::RunStepRequest::default()
    };
    let raw = Raw::new(server.target());
    assert_status(raw.step(step), Code::Aborted, "is not found.");
    assert!(value(&busy, "value:0").unwrap() > 1.0);
}

#[test]
fn the_config_of_the_server_makes_its_devices() {
    let config = pb::ConfigProto {
        device_count: [("CPU".to_owned(), 3)].into(),
        ..pb::ConfigProto::default()
    };
    let server = bound(config, ServerOptions::default());
    server.start().unwrap();
    let session = session(
        server.target(),
        "a = float[]{2}
         b = Neg(a) @/device:CPU:2
         c = Neg(b) @/job:local/task:0/device:CPU:1",
    );
    assert_eq!(session.list_devices().unwrap().len(), 3);
    assert_eq!(value(&session, "c:0").unwrap(), 2.0);
    let nowhere = Session::connect(server.target()).unwrap();
    let result = nowhere.extend(&graph("a = float[]{2}\n c = Neg(a) @/device:CPU:3"));
    let result = result.and_then(|()| value(&nowhere, "c:0"));
    assert_status(result, Code::InvalidArgument, "CPU:3");
}

#[test]
fn callables_want_all_their_feeds() {
    let server = server();
    let session = session(
        server.target(),
        "a = Placeholder() {dtype=DT_FLOAT}
         n = Neg(a)",
    );
    let options = CallableOptions {
        feeds: vec!["a:0".into()],
        fetches: vec!["n:0".into()],
        ..CallableOptions::default()
    };
    let callable = session.make_callable(options).unwrap();
    for feeds in [vec![], vec![float(1.0), float(1.0)]] {
        let text = format!("Expected 1 feed tensors, but got {}", feeds.len());
        let called = session.call_callable(&callable, &feeds);
        assert_status(called, Code::InvalidArgument, &text);
    }
    assert!(session.call_callable(&callable, &[float(1.0)]).is_ok());
}
