//! Signals: the first one drains, the second SIGINT is an order.

use std::thread;
use std::time::{Duration, Instant};

use tensorfleet_graph::{GraphBuilder, text};
use tensorfleet_rpc::Session;
use tensorfleet_status::Code;

use crate::binary::{Served, json};

/// A session with a step that waits until something is put into its queue.
pub(crate) fn waiting(target: &str) -> Session {
    let mut builder = GraphBuilder::new(tensorfleet_ops::registry().unwrap());
    text::parse_graph(
        &mut builder,
        "q = FIFOQueueV2() {component_types=[DT_FLOAT], shapes=[[]], shared_name='q'}
         got = QueueDequeueV2(q) {component_types=[DT_FLOAT]}
         waiting = QueueSizeV2(q)",
    )
    .unwrap();
    let session = Session::connect(target).unwrap();
    session.extend(&builder.finish().export().unwrap()).unwrap();
    // The step's signature is prepared; running it takes no time but to wait.
    session.run(&[], &["waiting:0"], &[]).unwrap();
    session
}

#[test]
fn sigterm_drains_and_exits_with_zero() {
    let mut server = Served::start(&["local"]);
    let idle = waiting(&server.target);
    let begin = Instant::now();
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    // Nothing runs, so nobody waits for the grace period of ten seconds, whatever clients are connected.
    assert!(begin.elapsed() < Duration::from_secs(5));
    drop(idle);
}

#[test]
fn steps_are_cancelled_after_the_grace_period() {
    let mut server = Served::start(&["local", "--grace", "0.3"]);
    let session = waiting(&server.target);
    thread::scope(|scope| {
        let step = scope.spawn(|| session.run(&[], &["got:0"], &[]));
        thread::sleep(Duration::from_millis(300));
        server.signal("INT");
        let status = step.join().unwrap().unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status}");
    });
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_second_sigint_ends_at_once() {
    let mut server = Served::start(&["local", "--grace", "600"]);
    let session = waiting(&server.target);
    thread::scope(|scope| {
        let step = scope.spawn(|| session.run(&[], &["got:0"], &[]));
        thread::sleep(Duration::from_millis(300));
        assert_eq!(json(&["status", &server.target, "--json"])["sessions"], 1);
        server.signal("INT");
        thread::sleep(Duration::from_millis(200));
        server.signal("INT");
        assert_eq!(server.end().code(), Some(130));
        assert!(step.join().unwrap().is_err());
    });
}
