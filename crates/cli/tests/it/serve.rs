//! The ways to say which task a server is.

use std::net::TcpListener;
use std::path::Path;

use crate::binary::{Served, fails, free_port, json, tensorfleet};

/// The server says its task and target, and answers there.
#[track_caller]
fn serves(server: &Served, task: &str, port: u16) {
    let target = format!("grpc://localhost:{port}");
    let ready = format!("tensorfleet serves {task} at {target}");
    assert_eq!(server.ready, ready);
    let status = json(&["status", &target, "--json"]);
    let full = task.replace("/task", "/replica:0/task");
    assert_eq!(status["task"], full.as_str());
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn hosts_in_both_spellings() {
    let (ps, worker) = (free_port(), free_port());
    let (ps_host, workers) = (
        format!("localhost:{ps}"),
        format!("localhost:1,localhost:{worker}"),
    );
    let first = Served::start(&[
        "serve",
        &format!("--ps_hosts={ps_host}"),
        &format!("--worker_hosts={workers}"),
        "--job_name=worker",
        "--task_index=1",
    ]);
    serves(&first, "/job:worker/task:1", worker);
    let second = Served::start(&[
        "serve",
        "--ps-hosts",
        &ps_host,
        "--worker-hosts",
        &workers,
        "--job-name",
        "ps",
    ]);
    serves(&second, "/job:ps/task:0", ps);
}

#[test]
fn clusters_as_json_text_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let list = format!(r#"{{"worker": ["localhost:{port}"]}}"#);
    serves(
        &Served::start(&["serve", "--cluster", &list]),
        "/job:worker/task:0",
        port,
    );
    let port = free_port();
    let object = format!(r#"{{"worker": {{"3": "localhost:{port}", "5": "localhost:1"}}}}"#);
    let file = write(folder.path(), "cluster.json", &object);
    let server = Served::start(&["serve", "--cluster", &file, "--task_index", "3"]);
    serves(&server, "/job:worker/task:3", port);
}

#[test]
fn tf_config() {
    let port = free_port();
    let config = format!(
        r#"{{"cluster": {{"chief": ["localhost:1"], "worker": ["localhost:2", "localhost:{port}"]}},
            "task": {{"type": "worker", "index": 1}}}}"#
    );
    let server = Served::spawn(tensorfleet(&["serve"]).env("TF_CONFIG", config));
    serves(&server, "/job:worker/task:1", port);
}

#[test]
fn a_taken_port_is_named_with_what_to_do() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let address = format!("localhost:{port}");
    let who = format!("ss -ltnp 'sport = :{port}'");
    let words = [&address, "another process listens there", &who, "--bind"];
    let hosts = format!("--worker_hosts={address}");
    fails(&mut tensorfleet(&["serve", &hosts]), 1, &words);
    let port = port.to_string();
    fails(&mut tensorfleet(&["local", "--port", &port]), 1, &words);
}

#[test]
fn server_defs_as_text_and_file() {
    let folder = tempfile::tempdir().unwrap();
    for from_file in [false, true] {
        let port = free_port();
        let def = format!(
            "cluster {{ job {{ name: 'ps' tasks {{ key: 0 value: 'localhost:{port}' }} }} }}
             job_name: 'ps' task_index: 0 protocol: 'grpc'"
        );
        let def = if from_file {
            write(folder.path(), "server.pbtxt", &def)
        } else {
            def
        };
        let server = Served::start(&["serve", "--server_def", &def]);
        serves(&server, "/job:ps/task:0", port);
    }
}

#[test]
fn configs_as_text_and_file_and_none() {
    let folder = tempfile::tempdir().unwrap();
    let text = "device_count { key: 'CPU' value: 2 }";
    let file = write(folder.path(), "config.pbtxt", text);
    for (config, devices) in [("", 1), (text, 2), (file.as_str(), 2)] {
        let server = Served::start(&["local", "--config", config]);
        let listed = json(&["devices", &server.target, "--json"]);
        assert_eq!(listed["devices"].as_array().unwrap().len(), devices);
    }
    let server = Served::start(&["local", &format!("--config={file}"), "--cpus", "3"]);
    let listed = json(&["devices", &server.target, "--json"]);
    assert_eq!(listed["devices"].as_array().unwrap().len(), 3);
}

#[test]
fn misuse_is_said_and_exits_with_two() {
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["serve"],
            &["no cluster", "--ps_hosts", "TF_CONFIG", "local"],
        ),
        (
            &["serve", "--ps_hosts", "a:1", "--job_name", "wroker"],
            &["wroker"],
        ),
        (
            &[
                "serve",
                "--ps_hosts=a:1,b:2",
                "--job_name=ps",
                "--task_index=7",
            ],
            &["7", "ps"],
        ),
        (&["serve", "--ps_hosts", "nowhere"], &["nowhere", "port"]),
        (&["serve", "--cluster", "{\"ps\": 1}"], &["ps"]),
        (&["serve", "--cluster", "{"], &[]),
        (&["serve", "--cluster", "/no/such/file"], &["/no/such/file"]),
        (&["serve", "--server_def", "job: }"], &["--server_def"]),
        (&["local", "--config", "no_such_field: 1"], &["--config"]),
        (&["local", "--grace=-1"], &["--grace"]),
        (&["local", "--log", "a=b=c"], &["--log"]),
        (&["serve", "--task_index", "x"], &["task_index"]),
        (&["status", "http://localhost:1"], &["http://localhost:1"]),
        (&["status", "localhost"], &["localhost", "port"]),
        (&["serve", "--no_such_flag"], &["--no_such_flag"]),
    ];
    for (args, words) in cases {
        fails(&mut tensorfleet(args), 2, words);
    }
    let task = |job: &str| format!(r#"{{"task": {{"type": "{job}", "index": 0}}}}"#);
    for (config, words) in [
        ("{".to_owned(), &["TF_CONFIG"][..]),
        // It was set, so whoever set it hears what it lacks.
        (task("worker"), &["TF_CONFIG is set but has no \"cluster\""]),
        (task("ps"), &["no \"cluster\"", "/job:ps/task:0"]),
    ] {
        fails(tensorfleet(&["serve"]).env("TF_CONFIG", config), 2, words);
    }
}
