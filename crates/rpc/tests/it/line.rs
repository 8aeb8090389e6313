//! Tasks on one machine talk on a line of their own.

use std::thread;
use std::time::Duration;

use tensorfleet_rpc::{Server, ServerOptions};
use tensorfleet_status::Code;

use crate::cluster::{free_address, task, task_with};
use crate::common::{
    Raw, assert_status, put, queue, remote_queue, run, session, value, wait_until,
};

fn lines(server: &Server) -> u64 {
    Raw::new(server.target()).status().lines
}

/// Two tasks.
fn two() -> ([String; 2], [Server; 2]) {
    let addresses = [free_address(), free_address()];
    let servers = [task(&addresses, 0), task(&addresses, 1)];
    (addresses, servers)
}

#[test]
fn two_tasks_share_one_line_whoever_calls() {
    let (_, [first, second]) = two();
    assert_eq!((lines(&first), lines(&second)), (0, 0));
    let ours = session(first.target(), &remote_queue("line"));
    run(&ours, "init").unwrap();
    wait_until("a line", || {
        put(&ours, 2.0).unwrap();
        assert_eq!(value(&ours, "got:0").unwrap(), 2.0);
        lines(&first) == 1 && lines(&second) == 1
    });
    // What the second task asks of the first goes on the same line.
    let text = remote_queue("line").replace("task:1", "task:0");
    let theirs = session(second.target(), &text);
    run(&theirs, "init").unwrap();
    for _ in 0..20 {
        put(&theirs, 3.0).unwrap();
        assert_eq!(value(&theirs, "got:0").unwrap(), 3.0);
    }
    thread::sleep(Duration::from_millis(50));
    assert_eq!((lines(&first), lines(&second)), (1, 1));
}

#[test]
fn a_task_may_do_without_lines() {
    let addresses = [free_address(), free_address()];
    let options = ServerOptions {
        direct_transfers: false,
        ..ServerOptions::default()
    };
    let (first, second) = (task(&addresses, 0), task_with(&addresses, 1, options));
    let session = session(first.target(), &remote_queue("line"));
    run(&session, "init").unwrap();
    for _ in 0..20 {
        put(&session, 2.0).unwrap();
        assert_eq!(value(&session, "got:0").unwrap(), 2.0);
    }
    assert_eq!((lines(&first), lines(&second)), (0, 0));
}

#[test]
fn a_stopped_task_ends_its_line_and_a_new_one_has_a_new_one() {
    let (addresses, [first, second]) = two();
    let graph = remote_queue("line");
    let lost = session(first.target(), &graph);
    run(&lost, "init").unwrap();
    wait_until("a line", || {
        value(&lost, "count:0").is_ok() && lines(&first) == 1
    });
    thread::scope(|scope| {
        // It waits for something that nobody puts in.
        let step = scope.spawn(|| lost.run(&[], &["got:0"], &["started"]));
        wait_until("the step", || value(&lost, "count:0") == Ok(1.0));
        second.stop_within(Duration::from_millis(10));
        second.join();
        let ended = step.join().unwrap();
        assert!(ended.is_err(), "the step went on without its task");
    });
    wait_until("the end of the line", || lines(&first) == 0);
    assert_status(value(&lost, "count:0"), Code::Unavailable, "task:1");
    drop(second);
    let second = task(&addresses, 1);
    let next = session(first.target(), &graph);
    run(&next, "init").unwrap();
    wait_until("a line", || {
        value(&next, "count:0").is_ok() && lines(&first) == 1 && lines(&second) == 1
    });
}

#[test]
fn a_step_that_runs_when_its_task_stops_may_end() {
    let (_, [first, second]) = two();
    let session = session(first.target(), &remote_queue("line"));
    run(&session, "init").unwrap();
    wait_until("a line", || {
        value(&session, "count:0").is_ok() && lines(&first) == 1
    });
    thread::scope(|scope| {
        let step = scope.spawn(|| session.run(&[], &["got:0"], &["started"]));
        wait_until("the step", || value(&session, "count:0") == Ok(1.0));
        let stopping = scope.spawn(|| {
            second.stop_within(Duration::from_secs(60));
            second.join();
        });
        // No more steps are begun there, so only the one that runs can be waited for.
        wait_until("the refusal", || value(&session, "count:0").is_err());
        assert!(!step.is_finished() && !stopping.is_finished());
        // Letting it go ends the stop early.
        session.close().unwrap();
        assert!(step.join().unwrap().is_err());
        stopping.join().unwrap();
    });
}

#[test]
fn a_step_that_ends_while_its_task_stops_is_answered() {
    let (_, [first, second]) = two();
    let graph = queue("line")
        + "\n twice = Add(got, got) @/job:worker/task:1/device:CPU:0
         far = Add(one, one) @/job:worker/task:1/device:CPU:0";
    let session = session(first.target(), &graph);
    run(&session, "init").unwrap();
    wait_until("a line", || {
        value(&session, "far:0") == Ok(2.0) && lines(&first) == 1
    });
    thread::scope(|scope| {
        let step = scope.spawn(|| session.run(&[], &["twice:0"], &["started"]));
        wait_until("the step", || value(&session, "count:0") == Ok(1.0));
        let stopping = scope.spawn(|| {
            second.stop_within(Duration::from_secs(60));
            second.join();
        });
        wait_until("the refusal", || value(&session, "far:0").is_err());
        put(&session, 3.0).unwrap();
        let ended = step.join().unwrap().unwrap();
        assert_eq!(ended[0].to_scalar::<f32>(), Ok(6.0));
        stopping.join().unwrap();
    });
}
