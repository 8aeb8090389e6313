//! Steps that take too long: the error says what was awaited.

use std::time::{Duration, Instant};

use tensorfleet_proto as pb;
use tensorfleet_rpc::{ConnectOptions, Session};
use tensorfleet_session::RunOptions;
use tensorfleet_status::{Code, Status};

use crate::cluster::{free_address, task};
use crate::common::{PATIENCE, Raw, assert_status, graph, queue, server, session};

fn within(millis: u64) -> RunOptions {
    RunOptions {
        timeout: Some(Duration::from_millis(millis)),
        ..RunOptions::default()
    }
}

#[track_caller]
fn assert_late<T>(result: Result<T, Status>, parts: &[&str]) {
    let status = result.map(drop).unwrap_err();
    assert!(status.message().starts_with("Deadline Exceeded"));
    for part in parts {
        assert_status(Err::<(), _>(status.clone()), Code::DeadlineExceeded, part);
    }
}

#[test]
fn the_node_that_waits_is_named() {
    let server = server();
    let session = session(server.target(), &queue("late"));
    let begin = Instant::now();
    let late = session.run_with(&within(1000), &[], &["got:0"], &[]);
    assert!(begin.elapsed() < PATIENCE);
    assert_late(late, &["nodes got (QueueDequeueV2)"]);
}

#[test]
fn a_step_with_a_timeout_of_its_own_needs_no_deadline_of_the_call() {
    let server = server();
    let raw = Raw::new(server.target());
    let request = pb::RunStepRequest {
        session_handle: raw.open(graph(&queue("late too"))),
        fetch: vec!["got:0".to_owned()],
        options: Some(pb::RunOptions {
            timeout_in_ms: 200,
            ..pb::RunOptions::default()
        }),
        store_errors_in_response_body: true,
        ..pb::RunStepRequest::default()
    };
    assert_late(raw.step(request), &["QueueDequeueV2"]);
}

#[test]
fn the_task_and_the_tensor_are_named() {
    let addresses = [free_address(), free_address()];
    let (master, _worker) = (task(&addresses, 0), task(&addresses, 1));
    let mut text = String::new();
    for line in queue("late elsewhere").lines() {
        let far = line.contains('(');
        let device = if far { " @/job:worker/task:1" } else { "" };
        text.push_str(&format!("{line}{device}\n"));
    }
    text.push_str("n = Neg(got) @/job:worker/task:0");
    let session = session(master.target(), &text);
    let late = session.run_with(&within(3000), &[], &["n:0"], &[]);
    assert_late(
        late,
        &[
            "/job:worker/replica:0/task:1 has not ended its part",
            "on /job:worker/replica:0/task:0 it waits for nodes",
            "from /job:worker/replica:0/task:1",
        ],
    );
}

#[test]
fn a_server_that_never_comes_is_named() {
    let address = free_address();
    let options = ConnectOptions {
        timeout: Some(Duration::from_millis(200)),
        ..ConnectOptions::default()
    };
    let opened = Session::connect_with(&format!("grpc://{address}"), options);
    assert_late(opened, &[&address, "refused"]);
}
