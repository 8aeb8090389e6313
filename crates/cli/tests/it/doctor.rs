//! `doctor`: well clusters, and every kind of sick one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

use crate::binary::{Served, fails, free_port, output, stdout, tensorfleet};

/// What it says in JSON; it must end with this code.
#[track_caller]
pub(crate) fn doctor(args: &[&str], code: i32) -> Value {
    let output = output(&[&["doctor", "--json"], args].concat());
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The findings of the task with this name: their kinds and texts.
pub(crate) fn findings(report: &Value, task: &str) -> String {
    let tasks = report["tasks"].as_array().unwrap();
    let patient = tasks.iter().find(|patient| patient["task"] == task);
    let list = patient.unwrap()["findings"].as_array().unwrap();
    let lines = list.iter().map(|finding| {
        format!(
            "{}: {} ({})\n",
            finding["kind"], finding["what"], finding["remedy"]
        )
    });
    lines.collect()
}

/// A port with something behind it that is no server of ours: does this with every caller.
fn impostor(behave: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with the process.
    thread::spawn(move || listener.incoming().flatten().for_each(behave));
    port
}

#[test]
fn a_well_cluster_by_any_name() {
    let up = Served::start(&["up", "--ps=1", "--workers=1", "--json"]);
    let ready: Value = serde_json::from_str(&up.ready).unwrap();
    let cluster = ready["cluster"].to_string();
    let target = ready["tasks"][0]["target"].as_str().unwrap();
    let ps = target.strip_prefix("grpc://").unwrap();
    let worker = ready["cluster"]["worker"][0].as_str().unwrap();
    let other_spelling = ps.replace("localhost", "127.0.0.1");
    let ways: [&[&str]; 5] = [
        &["--cluster", &cluster],
        &["--ps_hosts", ps, "--worker_hosts", worker],
        &["--ps_hosts", &other_spelling, "--worker_hosts", worker],
        // One server is enough: it knows the others.
        &[target],
        &[&other_spelling, worker],
    ];
    for way in ways {
        let report = doctor(way, 0);
        assert_eq!(report["well"], true, "{way:?}: {report}");
        assert_eq!(report["findings"], json!([]), "{way:?}: {report}");
        assert_eq!(
            report["tasks"].as_array().unwrap().len(),
            2,
            "{way:?}: {report}"
        );
        assert_eq!(findings(&report, "/job:worker/task:0"), "");
    }
    let report = doctor(&[target], 0);
    let patient = &report["tasks"][0];
    assert_eq!(patient["task"], "/job:ps/task:0");
    assert_eq!(patient["server"], "tensorfleet");
    assert_eq!(patient["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        patient["devices"][0],
        "/job:ps/replica:0/task:0/device:CPU:0"
    );
    assert!(patient["round_trip_seconds"].as_f64().unwrap() > 0.0);
    assert!(patient["clock_ahead_seconds"].as_f64().unwrap().abs() < 1.0);
    let text = stdout(&["doctor", target]);
    assert!(text.ends_with("the cluster is well: 2 tasks\n"), "{text}");
    let text = tensorfleet(&["doctor"])
        .env("TF_CONFIG", ready["tasks"][0]["tf_config"].to_string())
        .output();
    assert!(text.unwrap().status.success());
}

#[test]
fn a_missing_task_is_named_with_what_to_do() {
    let (here, missing) = (free_port(), free_port());
    let cluster = format!(r#"{{"ps": ["localhost:{here}"], "worker": ["localhost:{missing}"]}}"#);
    let _ps = Served::start(&["serve", "--cluster", &cluster, "--job_name=ps"]);
    let report = doctor(&["--cluster", &cluster], 1);
    assert_eq!(report["well"], false);
    assert_eq!(findings(&report, "/job:ps/task:0"), "");
    let found = findings(&report, "/job:worker/task:0");
    let refused = format!("connection refused: nobody listens on localhost:{missing}");
    assert!(found.contains(&refused), "{found}");
    assert!(
        found.contains("--job_name=worker --task_index=0"),
        "{found}"
    );
    // For people as well.
    let output = output(&["doctor", "--cluster", &cluster]);
    let text = String::from_utf8(output.stdout).unwrap();
    let problem = format!("problem: /job:worker/task:0 at localhost:{missing}: {refused}");
    assert!(text.contains(&problem), "{text}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error, "error: the cluster is not well: 1 of 2 tasks\n");
    // Nobody knows who should be at a mere address.
    let output = crate::binary::output(&["doctor", &format!("localhost:{missing}")]);
    let text = String::from_utf8(output.stdout).unwrap();
    let problem = format!("problem: localhost:{missing}: {refused}");
    assert!(text.contains(&problem), "{text}");
    assert!(text.contains("tensorfleet serve"), "{text}");
}

#[test]
fn exchanged_tasks_are_found_out() {
    let (a, b) = (free_port(), free_port());
    let hosts = |first: u16, second: u16| format!("localhost:{first},localhost:{second}");
    let started = hosts(a, b);
    let serve = |index: &str| {
        Served::start(&[
            "serve",
            "--worker_hosts",
            &started,
            "--job_name=worker",
            index,
        ])
    };
    let _servers = ["--task_index=0", "--task_index=1"].map(serve);
    let report = doctor(&["--worker_hosts", &hosts(b, a)], 1);
    let found = findings(&report, "/job:worker/task:0");
    let wrong =
        "/job:worker/replica:0/task:1 answers here, the cluster says /job:worker/replica:0/task:0";
    assert!(found.contains(wrong), "{found}");
    let other =
        format!("its own cluster has /job:worker/task:0 at localhost:{a}, not at localhost:{b}");
    assert!(found.contains(&other), "{found}");
}

#[test]
fn whoever_else_has_the_port() {
    let http = impostor(|mut stream| {
        let mut request = [0; 64];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let held = std::sync::Mutex::new(Vec::new());
    let silent = impostor(move |stream| held.lock().unwrap().push(stream));
    let hanging_up = impostor(drop);
    let hosts = format!(
        "localhost:{http},localhost:{silent},localhost:{hanging_up},no-such-host.invalid:1"
    );
    let report = doctor(&["--worker_hosts", &hosts, "--timeout=2"], 1);
    for (index, word) in [
        "speaks HTTP/1",
        "says nothing",
        "not gRPC",
        "does not resolve",
    ]
    .iter()
    .enumerate()
    {
        let found = findings(&report, &format!("/job:worker/task:{index}"));
        // Who hangs up may do so in the middle of our greeting.
        let reset = index == 2 && found.contains("no connection");
        assert!(found.contains(word) || reset, "'{word}' is not in: {found}");
    }
}

#[test]
fn a_task_that_cannot_reach_the_others() {
    // The server believes in a worker that is not there; the one who asks does not.
    let (here, missing) = (free_port(), free_port());
    let believes = format!(r#"{{"ps": ["localhost:{here}"], "worker": ["localhost:{missing}"]}}"#);
    let _ps = Served::start(&["serve", "--cluster", &believes, "--job_name=ps"]);
    let asked = format!(r#"{{"ps": ["localhost:{here}"]}}"#);
    let report = doctor(&["--cluster", &asked, "--timeout=2"], 1);
    let found = findings(&report, "/job:ps/task:0");
    assert!(found.contains("also has /job:worker"), "{found}");
    assert!(found.contains("does not reach all other tasks"), "{found}");
}

#[test]
fn misuse_exits_with_two() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["doctor"], &["no cluster", "TF_CONFIG"]),
        (&["doctor", "a:1", "--ps_hosts=b:1"], &["not both"]),
        (&["doctor", "nowhere"], &["nowhere", "port"]),
        (
            &["doctor", "--ps_hosts=a:1,a:1"],
            &["a:1", "every task needs its own"],
        ),
        (&["doctor", "a:1", "--timeout=-1"], &["--timeout"]),
    ];
    for (args, words) in cases {
        fails(&mut tensorfleet(args), 2, words);
    }
}
