//! Starting, stopping, joining.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use tensorfleet_cluster::ClusterSpec;
use tensorfleet_proto as pb;
use tensorfleet_rpc::{ConnectOptions, Server, ServerOptions, Session};
use tensorfleet_status::Code;

use crate::common::{
    PATIENCE, Raw, assert_status, bound, float, put, queue, run, server, server_with, session,
    value, wait_until,
};

fn port(server: &Server) -> u16 {
    server.target().rsplit_once(':').unwrap().1.parse().unwrap()
}

/// Joins, but not for ever.
fn join(server: &Server) {
    thread::scope(|scope| {
        let joining = scope.spawn(|| server.join());
        wait_until("the end", || joining.is_finished());
    });
}

#[test]
fn a_stopped_server_is_joined_and_its_port_is_free() {
    let server = server();
    let session = session(server.target(), "c = float[]{1}");
    assert_eq!(value(&session, "c:0").unwrap(), 1.0);
    thread::scope(|scope| {
        let joining = scope.spawn(|| server.join());
        thread::sleep(Duration::from_millis(20));
        assert!(!joining.is_finished());
        server.stop();
        wait_until("join", || joining.is_finished());
    });
    // Stopping and joining what is stopped changes nothing.
    server.stop();
    join(&server);
    let again = server.start();
    assert_status(again, Code::FailedPrecondition, "was stopped");
    drop(TcpListener::bind(("127.0.0.1", port(&server))).unwrap());
    assert_eq!(server.session_count(), 0);
}

#[test]
fn stopping_before_starting_and_starting_twice() {
    let never = bound(pb::ConfigProto::default(), ServerOptions::default());
    never.stop();
    join(&never);
    assert_status(never.start(), Code::FailedPrecondition, "was stopped");
    drop(TcpListener::bind(("127.0.0.1", port(&never))).unwrap());

    let twice = server();
    twice.start().unwrap();
    assert!(value(&session(twice.target(), "c = float[]{1}"), "c:0").is_ok());
    twice.stop();
    join(&twice);
}

#[test]
fn clients_wait_for_a_server_that_is_bound_but_not_started() {
    let server = bound(pb::ConfigProto::default(), ServerOptions::default());
    thread::scope(|scope| {
        let connecting = scope.spawn(|| session(server.target(), "c = float[]{1}"));
        thread::sleep(Duration::from_millis(50));
        assert!(!connecting.is_finished());
        server.start().unwrap();
        assert!(value(&connecting.join().unwrap(), "c:0").is_ok());
    });
}

#[test]
fn a_running_step_ends_within_the_grace_period() {
    let server = server();
    let mut text = queue("grace");
    text.push_str("\n dims = int32[2]{800, 800}\n m0 = Fill(dims, x, ^started)");
    for step in 0..5 {
        text.push_str(&format!("\n m{} = MatMul(m{step}, m{step})", step + 1));
    }
    let (works, watcher) = (
        session(server.target(), &text),
        session(server.target(), &queue("grace")),
    );
    run(&watcher, "init").unwrap();
    thread::scope(|scope| {
        let step = scope.spawn(|| works.run(&[("x:0", float(0.0))], &["m5:0"], &[]));
        wait_until("the step", || value(&watcher, "count:0").unwrap() == 1.0);
        assert!(!step.is_finished(), "the step is too short for this test");
        server.stop();
        assert_eq!(step.join().unwrap().unwrap()[0].elements(), 800 * 800);
    });
    join(&server);
}

#[test]
fn steps_that_do_not_end_are_cancelled_after_the_grace_period() {
    let server = server_with(ServerOptions {
        grace: Duration::from_millis(300),
        ..ServerOptions::default()
    });
    let (waits, watcher) = (
        session(server.target(), &queue("no grace")),
        session(server.target(), &queue("no grace")),
    );
    run(&watcher, "init").unwrap();
    thread::scope(|scope| {
        let step = scope.spawn(|| waits.run(&[], &["got:0"], &["started"]));
        wait_until("the step", || value(&watcher, "count:0").unwrap() == 1.0);
        let begin = Instant::now();
        server.stop();
        assert_status(step.join().unwrap(), Code::Unavailable, "is stopping");
        join(&server);
        let took = begin.elapsed();
        assert!(
            took >= Duration::from_millis(300) && took < Duration::from_secs(5),
            "{took:?}"
        );
    });
}

#[test]
fn a_second_order_to_stop_shortens_the_grace_period() {
    let server = server_with(ServerOptions {
        grace: PATIENCE * 100,
        ..ServerOptions::default()
    });
    let (waits, watcher) = (
        session(server.target(), &queue("in a hurry")),
        session(server.target(), &queue("in a hurry")),
    );
    run(&watcher, "init").unwrap();
    thread::scope(|scope| {
        let step = scope.spawn(|| waits.run(&[], &["got:0"], &["started"]));
        wait_until("the step", || value(&watcher, "count:0").unwrap() == 1.0);
        server.stop();
        thread::sleep(Duration::from_millis(100));
        assert!(!step.is_finished());
        server.stop_within(Duration::from_millis(100));
        // A longer one changes nothing.
        server.stop();
        assert_status(step.join().unwrap(), Code::Unavailable, "is stopping");
        join(&server);
    });
}

#[test]
fn a_stopping_server_takes_no_new_calls() {
    let server = server_with(ServerOptions {
        grace: Duration::from_millis(500),
        ..ServerOptions::default()
    });
    let (waits, other) = (
        session(server.target(), &queue("stopping")),
        session(server.target(), &queue("stopping")),
    );
    run(&other, "init").unwrap();
    let raw = Raw::new(server.target());
    raw.status();
    thread::scope(|scope| {
        let step = scope.spawn(|| waits.run(&[], &["got:0"], &["started"]));
        wait_until("the step", || value(&other, "count:0").unwrap() == 1.0);
        server.stop();
        thread::sleep(Duration::from_millis(100));
        let options = ConnectOptions {
            timeout: Some(Duration::from_millis(200)),
            ..ConnectOptions::default()
        };
        assert!(Session::connect_with(server.target(), options).is_err());
        assert_status(step.join().unwrap(), Code::Unavailable, "is stopping");
    });
    join(&server);
    assert_eq!(server.session_count(), 0);
}

#[test]
fn a_taken_port_is_said() {
    let server = server();
    let address = format!("localhost:{}", port(&server));
    let cluster = ClusterSpec::from_jobs([("worker", [address.as_str()])]).unwrap();
    let second = Server::from_cluster(cluster.clone(), None, None, None);
    assert_status(second.map(drop), Code::Unavailable, &address);
    server.stop();
    join(&server);
    // The place is free now.
    let next = Server::from_cluster(cluster, None, None, None).unwrap();
    assert_eq!(next.target(), format!("grpc://{address}"));
    assert!(value(&session(next.target(), "c = float[]{1}"), "c:0").is_ok());
}

#[test]
fn a_dropped_server_leaves_nothing() {
    let server = server();
    let port = port(&server);
    let session = session(server.target(), &queue("dropped"));
    put(&session, 1.0).unwrap();
    drop(server);
    wait_until("the free port", || {
        TcpListener::bind(("127.0.0.1", port)).is_ok()
    });
    let begin = Instant::now();
    drop(session);
    assert!(begin.elapsed() < PATIENCE);
}
