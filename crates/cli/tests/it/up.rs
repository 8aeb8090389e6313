//! `up`: a cluster of processes that live and die together.

use std::net::TcpListener;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::binary::{Served, fails, json, signal, stdout, tensorfleet, until};
use crate::signals::waiting;

/// A cluster that is up, and what it said then.
struct Up {
    served: Served,
    ready: Value,
}

impl Up {
    #[track_caller]
    fn start(flags: &[&str]) -> Up {
        let served =
            Served::spawn(tensorfleet(&[&["up", "--json"], flags].concat()).stderr(Stdio::piped()));
        let ready = serde_json::from_str(&served.ready).unwrap();
        Up { served, ready }
    }

    /// What the task in this place said, such as its `target`.
    fn task(&self, place: usize, key: &str) -> &str {
        self.ready["tasks"][place][key].as_str().unwrap()
    }

    fn pid(&self, place: usize) -> u32 {
        let pid = self.ready["tasks"][place]["pid"].as_u64().unwrap();
        pid.try_into().unwrap()
    }

    fn pids(&self) -> Vec<u32> {
        let count = self.ready["tasks"].as_array().unwrap().len();
        (0..count).map(|place| self.pid(place)).collect()
    }

    fn event(&mut self) -> Value {
        serde_json::from_str(&self.served.line()).unwrap()
    }
}

/// Whether a process is there and no zombie whose parent does not care.
fn runs(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"),
        Err(_) => false,
    }
}

#[test]
fn tasks_are_processes_that_know_each_other() {
    let mut up = Up::start(&["--ps=1", "--workers=2", "--cpus=2", "--evaluator"]);
    assert_eq!(up.ready["event"], "ready");
    let target = up.task(2, "target").to_owned();
    assert_eq!(up.task(2, "task"), "/job:worker/task:1");
    let address = target.strip_prefix("grpc://").unwrap();
    assert_eq!(up.ready["cluster"]["worker"][1], address);
    let config = &up.ready["tasks"][2]["tf_config"];
    assert_eq!(config["cluster"], up.ready["cluster"]);
    assert_eq!(config["task"]["type"], "worker");
    assert_eq!(config["task"]["index"], 1);
    assert_eq!(
        up.ready["evaluator"]["tf_config"]["task"]["type"],
        "evaluator"
    );
    let flags = up.ready["tasks"][2]["flags"].as_array().unwrap();
    assert!(flags.contains(&"--job_name=worker".into()), "{flags:?}");
    let spec = up.ready["cluster_spec"].as_str().unwrap();
    assert!(spec.starts_with("tf.train.ClusterSpec({'ps': ['localhost:"));
    // Each has two CPUs, as the flag that is passed on says, and finds the others.
    let devices = json(&["devices", &target, "--json"]);
    assert_eq!(devices["devices"].as_array().unwrap().len(), 6);
    let pids = up.pids();
    assert!(pids.iter().all(|pid| runs(*pid)));
    up.served.signal("TERM");
    assert_eq!(up.event()["event"], "stopping");
    assert_eq!(up.served.end().code(), Some(0));
    assert!(!pids.iter().any(|pid| runs(*pid)));
}

#[test]
fn a_dead_task_ends_the_cluster() {
    let mut up = Up::start(&["--ps=1", "--workers=1"]);
    signal(up.pid(1), "KILL");
    let ended = up.event();
    assert_eq!(ended["event"], "ended");
    assert_eq!(ended["task"], "/job:worker/task:0");
    assert_eq!(ended["restart_in_seconds"], Value::Null);
    let errors = up.served.errors();
    assert_eq!(up.served.end().code(), Some(1), "{errors}");
    for word in ["error: /job:worker/task:0", "died", "SIGKILL"] {
        assert!(errors.contains(word), "'{word}' is not in: {errors}");
    }
    assert!(!runs(up.pid(0)));
}

#[test]
fn a_dead_task_is_started_again_if_asked() {
    let mut up = Up::start(&["--ps=1", "--workers=1", "--restart", "--log=info"]);
    signal(up.pid(0), "KILL");
    let ended = up.event();
    assert_eq!(ended["task"], "/job:ps/task:0");
    assert!(
        ended["how"].as_str().unwrap().contains("SIGKILL"),
        "{ended}"
    );
    // That it had started is not what it died of.
    assert_eq!(ended["last_words"], Value::Null);
    assert!(ended["restart_in_seconds"].as_f64().unwrap() > 0.0);
    let again = up.event();
    assert_eq!(again["event"], "restarted");
    assert_ne!(again["pid"], up.pid(0));
    // At the same address.
    let status = json(&["status", up.task(0, "target"), "--json"]);
    assert_eq!(status["pid"], again["pid"]);
    up.served.signal("INT");
    assert_eq!(up.served.end().code(), Some(0));
}

#[test]
fn a_task_that_is_told_to_stop_may_leave() {
    let mut up = Up::start(&["--ps=1", "--workers=1", "--restart"]);
    for place in [0, 1] {
        let target = up.task(place, "target").to_owned();
        stdout(&["stop", &target]);
        let ended = up.event();
        assert_eq!(ended["event"], "ended");
        assert_eq!(ended["restart_in_seconds"], Value::Null);
    }
    // The last one has left.
    assert_eq!(up.served.end().code(), Some(0));
}

#[test]
fn tasks_do_not_outlive_a_killed_parent() {
    let mut up = Up::start(&["--ps=1", "--workers=1"]);
    up.served.signal("KILL");
    up.served.end();
    for pid in up.pids() {
        until("the end of a task", || !runs(pid));
    }
}

#[test]
fn a_second_sigint_ends_at_once() {
    let mut up = Up::start(&["--ps=1", "--workers=1", "--grace=600"]);
    let session = waiting(up.task(0, "target"));
    thread::scope(|scope| {
        let step = scope.spawn(|| session.run(&[], &["got:0"], &[]));
        thread::sleep(Duration::from_millis(300));
        up.served.signal("INT");
        assert_eq!(up.event()["event"], "stopping");
        up.served.signal("INT");
        assert_eq!(up.served.end().code(), Some(130));
        assert!(step.join().unwrap().is_err());
    });
    assert!(!up.pids().into_iter().any(runs));
}

#[test]
fn a_task_that_does_not_stop_is_killed() {
    let mut up = Up::start(&["--ps=1", "--workers=1", "--grace=0"]);
    signal(up.pid(0), "STOP");
    up.served.signal("TERM");
    assert_eq!(up.event()["event"], "stopping");
    assert_eq!(up.event()["event"], "killing");
    assert_eq!(up.served.end().code(), Some(0));
    assert!(!up.pids().into_iter().any(runs));
}

#[test]
fn a_taken_port_is_reported_with_its_address() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let base = format!("--base_port={port}");
    let address = format!("localhost:{port}");
    let words = [
        "/job:ps/task:0",
        "did not come up",
        &address,
        "another process listens there",
    ];
    // With --restart too: it does not get better by itself.
    fails(&mut tensorfleet(&["up", "--ps=1", &base]), 1, &words);
    fails(
        &mut tensorfleet(&["up", "--ps=1", &base, "--restart"]),
        1,
        &words,
    );
    fails(
        &mut tensorfleet(&["up", "--ps=1", &base, "--in-process"]),
        1,
        &["cannot listen", &address],
    );
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn ipv6_addresses_are_hosts_too() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    let up = Up::start(&["--ps=1", "--workers=1", "--host=[::1]"]);
    let target = up.task(0, "target");
    assert!(target.starts_with("grpc://[::1]:"), "{target}");
    let text = stdout(&["doctor", target]);
    assert!(text.ends_with("the cluster is well: 2 tasks\n"), "{text}");
}

#[test]
fn people_get_lines_to_paste() {
    for mode in ["--restart", "--in-process"] {
        let flags = ["up", "--ps=1", "--workers=1", "--log=info", mode];
        let mut up = Served::spawn(tensorfleet(&flags).stderr(Stdio::piped()));
        let mut text = up.ready.clone();
        let mut line = String::new();
        while !line.starts_with("tensorfleet is up") {
            line = up.line();
            text = format!("{text}\n{line}");
        }
        assert_eq!(line, "tensorfleet is up: 1 ps, 1 worker; Ctrl-C stops it");
        for word in [
            "/job:ps/task:0      grpc://localhost:",
            "cluster = tf.train.ClusterSpec({'ps': ['localhost:",
            "TF_CONFIG='{\"cluster\":",
            "--ps_hosts=localhost:",
        ] {
            assert!(text.contains(word), "'{word}' is not in: {text}");
        }
        let target = text.split_whitespace().nth(1).unwrap();
        let devices = stdout(&["devices", target]);
        assert_eq!(devices.lines().count(), 2, "{devices}");
        up.signal("INT");
        let errors = up.errors();
        assert_eq!(up.end().code(), Some(0), "{errors}");
        // Logs of processes say whose they are.
        let prefixed = errors.contains("[/job:ps/task:0] ");
        assert_eq!(prefixed, mode == "--restart", "{errors}");
        assert!(errors.contains("Started server"), "{errors}");
    }
}

#[test]
fn misuse_exits_with_two() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["up", "--job=reader"], &["--job reader", "reader=2"]),
        (&["up", "--ps=1", "--job=ps=1"], &["Duplicate job"]),
        (&["up", "--job=ps=0"], &["0 tasks", "--workers 1"]),
        (&["up", "--ps=0", "--workers=0"], &["0 tasks"]),
        (&["up", "--grace=-1"], &["--grace"]),
        (&["up", "--config=no_such_field: 1"], &["--config"]),
        (&["up", "--in-process", "--restart"], &["--restart"]),
        (&["up", "--base_port=65535"], &["65535"]),
    ];
    for (args, words) in cases {
        fails(&mut tensorfleet(args), 2, words);
    }
}
