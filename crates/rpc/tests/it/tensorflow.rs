//! The lifecycle on TensorFlow's own server. Skipped, loudly, where there is none.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::lifecycle;

/// TensorFlow's server; it ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn the_lifecycle_is_the_same_on_tensorflow_s_server() {
    let Some(python) = std::env::var_os("TENSORFLEET_TF_PYTHON") else {
        eprintln!("SKIPPED: TENSORFLEET_TF_PYTHON is not set");
        return;
    };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/harness/tf_server.py");
    let port = TcpListener::bind("localhost:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port();
    let mut child = Command::new(python)
        .arg(program)
        .args([
            "--cluster",
            &format!(r#"{{"local": ["localhost:{port}"]}}"#),
        ])
        .args(["--job", "local", "--task", "0"])
        .env("TF_CPP_MIN_LOG_LEVEL", "3")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _process = Process(child);
    let ready = lines.next().expect("TensorFlow's server did not start");
    let ready = ready.unwrap();
    let target = ready.strip_prefix("ready ").unwrap();
    let mut wrong = Vec::new();
    for (name, check) in lifecycle::CHECKS {
        if let Err(panic) = std::panic::catch_unwind(|| check(target)) {
            let text = panic.downcast_ref::<String>().cloned();
            wrong.push(format!("{name}: {}", text.unwrap_or_default()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
