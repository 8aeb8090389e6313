//! Asking a server: devices, status, reset, stop.

use std::process::Stdio;

use crate::binary::{Served, fails, free_port, json, output, stdout, tensorfleet};

const DEVICE: &str = "/job:local/replica:0/task:0/device:CPU:0";

#[test]
fn devices_and_status_in_text_and_json() {
    let server = Served::start(&["local"]);
    assert!(
        server
            .ready
            .starts_with("tensorfleet serves /job:local/task:0 at grpc://localhost:"),
        "{}",
        server.ready
    );
    let target = &server.target;
    assert!(stdout(&["devices", target]).starts_with(DEVICE));
    let devices = json(&["devices", target, "--json"]);
    assert_eq!(devices["devices"][0]["name"], DEVICE);
    assert_eq!(devices["devices"][0]["type"], "CPU");
    let text = stdout(&["status", target]);
    assert!(text.contains("/job:local/replica:0/task:0"), "{text}");
    let status = json(&["status", target, "--json"]);
    assert_eq!(status["server"], "tensorfleet");
    assert_eq!(status["sessions"], 0);
    assert_eq!(status["stopping"], false);
    assert_eq!(status["devices"][0], DEVICE);
    // Without the scheme it is the same server.
    let address = target.strip_prefix("grpc://").unwrap();
    assert_eq!(json(&["status", address, "--json"])["pid"], status["pid"]);
}

#[test]
fn reset_says_what_it_cleared() {
    let server = Served::start(&["local"]);
    let text = stdout(&["reset", &server.target]);
    assert!(text.contains("default containers cleared"), "{text}");
    let text = stdout(&[
        "reset",
        &server.target,
        "--container",
        "a",
        "--container",
        "b",
    ]);
    assert!(text.contains("cleared a, b"), "{text}");
}

#[test]
fn stop_from_this_machine() {
    let mut server = Served::start(&["local"]);
    assert!(stdout(&["stop", &server.target]).contains("is stopping"));
    assert_eq!(server.end().code(), Some(0));
    // Nobody is there any more.
    let address = server.target.strip_prefix("grpc://").unwrap();
    let nobody = format!("connection refused: nobody listens on {address}");
    let words = [&nobody, "tensorfleet serve"];
    fails(&mut tensorfleet(&["status", &server.target]), 1, &words);
}

#[test]
fn stop_wants_the_admin_token() {
    let mut server = Served::start(&["local", "--admin_token", "right"]);
    let target = server.target.clone();
    let words = ["PERMISSION_DENIED", "admin token"];
    fails(&mut tensorfleet(&["stop", &target]), 1, &words);
    fails(
        &mut tensorfleet(&["stop", &target, "--token", "wrong"]),
        1,
        &words,
    );
    assert_eq!(json(&["status", &target, "--json"])["stopping"], false);
    let stopped = tensorfleet(&["stop", &target])
        .env("TENSORFLEET_ADMIN_TOKEN", "right")
        .status();
    assert!(stopped.unwrap().success());
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn nobody_there_is_a_failure() {
    let target = format!("localhost:{}", free_port());
    for command in ["devices", "status", "reset", "stop"] {
        let output = output(&[command, &target, "--timeout", "2"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    for args in [&["ops"][..], &["ops", "--json"]] {
        let mut command = tensorfleet(args);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert!(child.wait().unwrap().success(), "{args:?}");
    }
}
